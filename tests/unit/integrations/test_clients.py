"""Which clients an adapter works with."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import AsyncMemoryClient
from recollect.integrations.clients import Clients, check_given
from recollect.protocol.errors import InvalidArgument


@pytest.mark.parametrize("options", [{"outbox": "outbox.db"}, {"raise_errors": False}])
def test_an_adapter_refuses_what_would_take_the_place_of_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object]
) -> None:
    monkeypatch.chdir(tmp_path)
    (name,) = options
    with pytest.raises(InvalidArgument, match=name) as caught:
        Clients(None, options)
    assert caught.value.details["field"] == name
    given = AsyncMemoryClient(None, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=name):
        check_given(given)


def test_an_adapter_takes_any_other_client() -> None:
    Clients(None, {"outbox": None, "raise_errors": True, "agent_id": "planner"})
    check_given(AsyncMemoryClient(None, agent_id="planner"))
