"""Key files: a key pair as a short text, with what its holder needs to come in.

    # The Recollect key of alice. Whoever has this file is alice: keep it to yourself.
    name: alice
    public_key: Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID
    secret_key: D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs
    server_key: rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7
    endpoint: tcp://memory.example:7331

Keys are in Z85, 40 characters each. The server key and the endpoint may be absent.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

KEY_RULE = "a key is 40 characters of Z85"
FILE_BYTES_MAX = 4_096
MODE = 0o600
_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_HEADING = "# The Recollect key of {name}. Whoever has this file is {name}: keep it to yourself.\n"


class BadKeyFile(Exception):
    """The file is not there, or is not a key file; the message names it and says why."""


class KeyFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a key file says."""

    name: str
    public_key: str
    secret_key: str
    server_key: str | None = None
    endpoint: str | None = None

    def __repr__(self) -> str:
        return f"KeyFile(name={self.name!r}, public_key={self.public_key!r})"

    def text(self) -> str:
        """The file's whole text."""
        lines = (f"{name}: {value}\n" for name, value in msgspec.to_builtins(self).items())
        return _HEADING.format(name=self.name) + "".join(lines)


def is_key(text: object) -> bool:
    """Whether a text can be a key."""
    return isinstance(text, str) and _KEY.fullmatch(text) is not None


def parse(text: str) -> KeyFile:
    """The key file that a text is; ValueError if it is none."""
    given = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, colon, value = line.partition(":")
            if not colon:
                raise ValueError("a line has no colon")
            given[name.strip()] = value.strip()
    try:
        parsed = msgspec.convert(given, KeyFile)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    for name in ("public_key", "secret_key", "server_key"):
        value = getattr(parsed, name)
        if value is not None and not is_key(value):
            raise ValueError(f"{name} is not a key: {KEY_RULE}")
    return parsed


def read(path: str | os.PathLike[str]) -> KeyFile:
    """The key file at a path."""
    try:
        with Path(path).open("rb") as file:
            return parse(file.read(FILE_BYTES_MAX).decode())
    except OSError as error:
        raise BadKeyFile(
            f"The key file {os.fspath(path)} cannot be read: {error.strerror}. `recollect keys new "
            "NAME`, run where the orchestrator is served, makes one."
        ) from None
    except ValueError as error:
        # Of a text that is not UTF-8 nothing is repeated: it may be a secret.
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise BadKeyFile(f"{os.fspath(path)} is not a key file: {reason}.") from None


def write_new(path: str | os.PathLike[str], keys: KeyFile) -> None:
    """Write a key file that only its owner may read; FileExistsError if something is there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(keys.text())
        file.flush()
        os.fsync(file.fileno())
