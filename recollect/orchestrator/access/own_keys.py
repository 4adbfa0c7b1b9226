"""The orchestrator's own keys: the one it is known by, and the one for its own machine.

Both are made at the first start and kept in files that only their owner may read. Whoever can read
the data folder can read the store itself, so the local key gives away nothing more.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import structlog
import zmq

from recollect.protocol import key_files
from recollect.protocol.key_files import KeyFile

log = structlog.get_logger()

FOLDER_NAME = "keys"
SERVER_NAME = "server.key"
LOCAL_NAME = "local.key"
FOLDER_MODE = 0o700


class OwnKeys(msgspec.Struct, frozen=True):
    """The keys of one data folder."""

    server: KeyFile
    local: KeyFile


def ensure_own_keys(data: Path) -> OwnKeys:
    """The keys of a data folder, made where they are not there yet."""
    folder = data / FOLDER_NAME
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    folder.chmod(FOLDER_MODE)
    server = _ensure(folder / SERVER_NAME, "server", None)
    local = _ensure(folder / LOCAL_NAME, "local", server.public_key)
    if local.server_key != server.public_key:
        # The server's key was exchanged; the local key stays as it is.
        local = msgspec.structs.replace(local, server_key=server.public_key)
        _put(folder / LOCAL_NAME, local)
    return OwnKeys(server, local)


def _ensure(path: Path, name: str, server_key: str | None) -> KeyFile:
    if path.exists():
        if path.stat().st_mode & 0o077:
            log.warning(
                "Others could read a key; that was put right. If they may have, delete the file "
                "and the next start makes another.",
                action="own_keys",
                path=str(path),
            )
            path.chmod(key_files.MODE)
        return key_files.read(path)
    made = new_pair(name, server_key)
    _put(path, made)
    return made


def _put(path: Path, keys: KeyFile) -> None:
    """Write it whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    key_files.write_new(partial, keys)
    os.replace(partial, path)


def new_pair(name: str, server_key: str | None = None, endpoint: str | None = None) -> KeyFile:
    """A new key pair."""
    public, secret = zmq.curve_keypair()
    return KeyFile(name, public.decode(), secret.decode(), server_key, endpoint)
