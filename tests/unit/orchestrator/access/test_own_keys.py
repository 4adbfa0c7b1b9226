"""The orchestrator's own keys: made once, kept, and kept from others."""

from __future__ import annotations

import stat
from pathlib import Path

import zmq

from recollect.orchestrator.access.own_keys import ensure_own_keys


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_they_are_made_once_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    own = ensure_own_keys(tmp_path / "data")
    folder = tmp_path / "data" / "keys"
    assert mode(folder) == 0o700
    assert {path.name: mode(path) for path in folder.iterdir()} == {
        "server.key": 0o600,
        "local.key": 0o600,
    }
    for pair in (own.server, own.local):
        assert zmq.curve_public(pair.secret_key.encode()).decode() == pair.public_key
    assert own.local.server_key == own.server.public_key
    assert own.server.public_key != own.local.public_key
    assert ensure_own_keys(tmp_path / "data") == own


def test_permissions_that_were_loosened_are_put_right(tmp_path: Path) -> None:
    own = ensure_own_keys(tmp_path)
    (tmp_path / "keys").chmod(0o755)
    (tmp_path / "keys" / "server.key").chmod(0o644)
    assert ensure_own_keys(tmp_path) == own
    assert mode(tmp_path / "keys") == 0o700
    assert mode(tmp_path / "keys" / "server.key") == 0o600


def test_an_exchanged_server_key_is_taken_over_by_the_local_one(tmp_path: Path) -> None:
    before = ensure_own_keys(tmp_path)
    (tmp_path / "keys" / "server.key").unlink()
    after = ensure_own_keys(tmp_path)
    assert after.server.public_key != before.server.public_key
    assert after.local.secret_key == before.local.secret_key
    assert after.local.server_key == after.server.public_key
