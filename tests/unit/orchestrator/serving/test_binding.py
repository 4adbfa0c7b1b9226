"""Where an orchestrator may listen: beyond its machine only where somebody has a key."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recollect.config.settings import NetworkSettings, Settings, StorageSettings
from recollect.orchestrator.access.own_keys import ensure_own_keys
from recollect.orchestrator.running.process import NobodyKnown, check_somebody_is_known, server_of
from recollect.orchestrator.running.stopped_store import StoppedStore
from recollect.orchestrator.serving.guarded_server import GuardedServer
from recollect.orchestrator.serving.server import Server
from recollect.protocol.operations import CreateIdentity, RevokeAccess

KEY = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        network=NetworkSettings(bind="tcp://0.0.0.0:7331"),
        storage=StorageSettings(data=str(tmp_path / "data")),
    )


async def asked(settings: Settings, *operations: CreateIdentity | RevokeAccess) -> None:
    store = StoppedStore(settings)
    await store.open()
    try:
        for operation in operations:
            await store.call(operation)
    finally:
        await store.close()


def test_beyond_loopback_somebody_must_have_a_key(settings: Settings) -> None:
    Path(settings.storage.data).mkdir()
    with pytest.raises(NobodyKnown, match="recollect keys new NAME"):
        asyncio.run(check_somebody_is_known(settings))
    asyncio.run(asked(settings, CreateIdentity("keyless")))
    with pytest.raises(NobodyKnown):
        asyncio.run(check_somebody_is_known(settings))
    asyncio.run(asked(settings, CreateIdentity("alice", KEY)))
    asyncio.run(check_somebody_is_known(settings))
    asyncio.run(asked(settings, RevokeAccess("alice")))
    with pytest.raises(NobodyKnown):
        asyncio.run(check_somebody_is_known(settings))


@pytest.mark.parametrize("guarded", [False, True])
def test_the_gate_stands_only_where_keys_are_asked_for(tmp_path: Path, guarded: bool) -> None:
    here = Settings(network=NetworkSettings(bind="tcp://127.0.0.1:*"))
    server = server_of(here, ensure_own_keys(tmp_path), guarded=guarded)
    try:
        assert type(server) is (GuardedServer if guarded else Server)
    finally:
        server.close()
