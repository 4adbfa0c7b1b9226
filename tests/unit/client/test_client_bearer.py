"""The bearer key of a client: given or from the environment, sent with all, and never shown."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.client import AsyncMemoryClient, MemoryClient
from recollect.client.encoding import Call, Speaker, frame_of, prepare
from recollect.client.outbox import OutboxFile
from recollect.protocol.bearer_keys import KEY_ID_CHARS, hash_of, key_id_of, new_bearer_key
from recollect.protocol.envelope import PROTOCOL_VERSION, Request, decode_request
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operations import AddMemory, Ping, ReadChanges

CLIENTS = [MemoryClient, AsyncMemoryClient]
Client = type[MemoryClient] | type[AsyncMemoryClient]
KEY = "rk_" + "k" * 43


def call_of(client: MemoryClient | AsyncMemoryClient) -> Call:
    return client._prepare(Ping())


def bearer_of(client: MemoryClient | AsyncMemoryClient) -> str | None:
    """What a request of the client carries."""
    return decode_request(frame_of(call_of(client), 1, 0, client._speaker)).bearer


@pytest.mark.parametrize("client", CLIENTS)
def test_it_is_given_or_from_the_environment_or_there_is_none(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECOLLECT_BEARER", raising=False)
    assert bearer_of(client()) is None
    assert bearer_of(client(bearer=KEY)) == KEY
    monkeypatch.setenv("RECOLLECT_BEARER", "rk_other")
    assert bearer_of(client()) == "rk_other"
    assert bearer_of(client(bearer=KEY)) == KEY
    monkeypatch.setenv("RECOLLECT_BEARER", "")
    assert bearer_of(client()) is None


@pytest.mark.parametrize("client", CLIENTS)
def test_it_stays_when_the_client_speaks_for_another_agent(client: Client) -> None:
    made = client(bearer=KEY)
    made.set_agent_id("planner")
    made.set_session_id("s")
    made.set_task_id("t")
    made.set_fence("scheduler", 1)
    made.clear_fence()
    assert bearer_of(made) == KEY


@pytest.mark.parametrize("client", CLIENTS)
def test_a_subscription_carries_it_too(client: Client) -> None:
    follower = client(bearer=KEY)._follower(ReadChanges(0))
    assert decode_request(follower.ask().frame).bearer == KEY
    assert decode_request(client()._follower(ReadChanges(0)).ask().frame).bearer is None


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("bearer", ["", "x" * 257, "a\nb", "clé", f"{KEY}\n", 5, b"rk_x", "\ud800"])
def test_what_is_no_key_is_refused_without_being_repeated(client: Client, bearer: Any) -> None:
    with pytest.raises(InvalidArgument, match="bearer is no bearer key") as caught:
        client(bearer=bearer)
    assert KEY not in str(caught.value) and "xxx" not in str(caught.value)


def test_it_is_keyword_only() -> None:
    with pytest.raises(TypeError):
        MemoryClient("tcp://127.0.0.1:1", KEY)  # type: ignore[call-arg]


def test_it_is_in_no_repr() -> None:
    client = MemoryClient(bearer=KEY)
    request = Request(PROTOCOL_VERSION, 1, "ping", bearer=KEY)
    for shown in (client, client._speaker, Speaker(bearer=KEY), request, vars(client)):
        assert KEY not in repr(shown)
    assert pickle.loads(pickle.dumps(Speaker("a", bearer=KEY))).bearer == KEY


def test_an_outbox_keeps_no_key(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    file = OutboxFile(path, wall=lambda: 0.0)
    call = prepare(AddMemory("tea"), now_ms=lambda: 0, randomness=MemoryClient()._randomness)
    file.put(call, Speaker("planner", bearer=KEY))
    item = file.head()
    assert item is not None and item.speaker == Speaker("planner")
    file.close()
    assert KEY.encode() not in path.read_bytes()


def test_a_new_key_has_256_random_bits_and_is_known_by_its_hash() -> None:
    keys = {new_bearer_key() for _ in range(1_000)}
    assert len(keys) == 1_000
    for key in keys:
        assert key.startswith("rk_") and len(key) == 46 and key.isascii()
    # As `printf %s rk_ | sha256sum` has it, which is how others make theirs.
    assert hash_of("rk_") == "c5217b69767218f40b43aa82177b9e80c320bb86c4462217e83fc6ab2202f407"
    assert key_id_of(hash_of(KEY)) == hash_of(KEY)[:KEY_ID_CHARS]


def test_who_has_none_sends_nothing_of_it() -> None:
    plain = {"v": 1, "id": 1, "op": "ping"}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Request(1, 1, "ping"))) == plain
