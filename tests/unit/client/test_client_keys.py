"""A client and its key file: read when it is made, and refused by name when it is no good."""

from __future__ import annotations

from pathlib import Path

import pytest
import zmq

from recollect.client import AsyncMemoryClient, MemoryClient
from recollect.client.keys import keys_from
from recollect.protocol import key_files
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.key_files import KeyFile

CLIENTS = [MemoryClient, AsyncMemoryClient]
Client = type[MemoryClient] | type[AsyncMemoryClient]


def pair() -> tuple[str, str]:
    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()


def written(path: Path, *, server: bool = True, endpoint: str | None = None) -> Path:
    key_files.write_new(path, KeyFile("alice", *pair(), pair()[0] if server else None, endpoint))
    return path


@pytest.mark.parametrize("client", CLIENTS)
def test_the_key_file_is_given_or_from_the_environment(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECOLLECT_KEY_FILE", raising=False)
    path = written(tmp_path / "alice.key")
    assert not client().has_key
    assert client(key_file=path).has_key
    monkeypatch.setenv("RECOLLECT_KEY_FILE", str(path))
    assert client().has_key


@pytest.mark.parametrize("client", CLIENTS)
def test_the_endpoint_of_the_file_is_used_where_no_other_is_named(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECOLLECT_ENDPOINT", raising=False)
    path = written(tmp_path / "alice.key", endpoint="tcp://10.0.0.7:1")
    assert client(key_file=path).endpoint == "tcp://10.0.0.7:1"
    assert client("tcp://10.0.0.8:1", key_file=path).endpoint == "tcp://10.0.0.8:1"
    monkeypatch.setenv("RECOLLECT_ENDPOINT", "tcp://10.0.0.9:1")
    assert client(key_file=path).endpoint == "tcp://10.0.0.9:1"


def test_a_file_that_is_no_good_is_refused_by_name(tmp_path: Path) -> None:
    unmatched = tmp_path / "unmatched.key"
    key_files.write_new(unmatched, KeyFile("alice", pair()[0], pair()[1], pair()[0]))
    for path, reason in (
        (tmp_path / "absent.key", "cannot be read"),
        (written(tmp_path / "serverless.key", server=False), "no server_key"),
        (unmatched, "not a pair"),
    ):
        with pytest.raises(InvalidArgument, match=reason) as caught:
            MemoryClient(key_file=path)
        assert path.name in caught.value.message
        assert caught.value.details == {"field": "key_file"}


def test_the_secret_is_never_shown_by_accident(tmp_path: Path) -> None:
    keys = keys_from(written(tmp_path / "alice.key"))
    assert keys is not None
    assert keys.secret_key.decode() not in repr(keys)
