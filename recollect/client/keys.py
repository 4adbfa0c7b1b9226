"""The keys of a client: its own pair, and the one by which it knows the orchestrator."""

from __future__ import annotations

import os

import msgspec
import zmq

from recollect.client.settings import KEY_FILE_VARIABLE
from recollect.protocol import key_files
from recollect.protocol.errors import InvalidArgument


class Keys(msgspec.Struct, frozen=True):
    """What a client needs to be let in."""

    path: str
    public_key: bytes
    secret_key: bytes
    server_key: bytes
    endpoint: str | None

    def __repr__(self) -> str:
        return f"Keys(path={self.path!r})"


def keys_from(key_file: str | os.PathLike[str] | None) -> Keys | None:
    """The keys in the file given, else in the one that the environment names; None without one."""
    path = key_file or os.environ.get(KEY_FILE_VARIABLE)
    if not path:
        return None
    named = os.fspath(path)
    try:
        found = key_files.read(named)
    except key_files.BadKeyFile as error:
        raise _refused(str(error)) from None
    if found.server_key is None:
        raise _refused(
            f"The key file {named} has no server_key, so the orchestrator could be anybody: add "
            "the one that `recollect keys list` shows where it is served."
        )
    if not zmq.has("curve"):
        raise _refused("This build of ZeroMQ has no CURVE: install pyzmq from its own wheels.")
    secret = found.secret_key.encode()
    if zmq.curve_public(secret) != found.public_key.encode():
        raise _refused(f"In the key file {named}, secret_key and public_key are not a pair.")
    return Keys(named, found.public_key.encode(), secret, found.server_key.encode(), found.endpoint)


def _refused(message: str) -> InvalidArgument:
    return InvalidArgument(message, field="key_file")
