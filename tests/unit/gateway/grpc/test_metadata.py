"""Whom the metadata of a call names."""

from __future__ import annotations

import pytest

from recollect.gateway.callers import Doorman
from recollect.gateway.grpc.metadata import said_in
from recollect.protocol.errors import Unauthenticated

OPEN = Doorman(keys_needed=False)


def test_a_call_with_two_keys_is_nobodys() -> None:
    one, other = ("authorization", "Bearer one"), ("authorization", "Bearer other")
    assert said_in([one], OPEN).speaker.bearer == "one"
    assert said_in([("x", "1"), one, ("x", "2")], OPEN).speaker.bearer == "one"
    with pytest.raises(Unauthenticated):
        said_in([one, ("x", "1"), other], OPEN)
