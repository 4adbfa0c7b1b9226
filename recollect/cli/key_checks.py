"""The part of a check-up that looks at keys: whether they can be read, and only by their owner."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from recollect.cli.findings import Finding, fail, ok, warn
from recollect.client.settings import KEY_FILE_VARIABLE
from recollect.protocol import key_files

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_keys(folder: Path, key_file: str | None) -> Iterator[Finding]:
    """A finding for each thing that is wrong with a key, or one that all is well with them."""
    own = folder / "keys"
    files = [own / "server.key", own / "local.key"]
    named = key_file or os.environ.get(KEY_FILE_VARIABLE)
    there = [path for path in files if path.exists()] + ([Path(named)] if named else [])
    if not there:
        return
    troubles = [finding for path in there for finding in _look_at(path)]
    if own.is_dir() and own.stat().st_mode & OTHERS:
        troubles.append(warn("keys", f"Others may look into {own}.", f"chmod 700 {own}"))
    yield from troubles
    if not troubles:
        count = f"{len(there)} key files" if len(there) > 1 else "The key file"
        yield ok("keys", f"{count} can be read, by their owner alone.")


def _look_at(path: Path) -> Iterator[Finding]:
    try:
        key_files.read(path)
    except key_files.BadKeyFile as error:
        yield fail("keys", str(error), "Bring it back, or have another made: `recollect keys new`.")
        return
    if path.stat().st_mode & OTHERS:
        yield fail(
            "keys",
            f"Others may read {path}, and whoever has read it can come in with it.",
            f"chmod 600 {path}; if somebody may have read it, revoke it and make another.",
        )
