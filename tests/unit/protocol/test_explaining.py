"""What is wrong with an argument, in words that help."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from recollect.protocol.explaining import explain
from recollect.protocol.operation import Operation
from recollect.protocol.operations import (
    AssembleContext,
    Consolidate,
    ListDocuments,
    ListSessions,
    SetState,
    UpdateTaskStatus,
)

WORDS: list[tuple[type[Operation[Any]], dict[str, Any], str]] = [
    (
        ListDocuments,
        {"document_status": "bad"},
        "'bad'; it is one of pending, synced, failed, stale",
    ),
    (ListSessions, {"status": "bad"}, "created, active, paused, terminated, archived"),
    (Consolidate, {"namespace": "user:a", "strategy": "bad"}, "keep_latest, keep_most_trusted,"),
    (
        AssembleContext,
        {"task_description": "a", "tiers": ["working", "long-term"]},
        "'long-term'; it is one of operational, working, longterm, knowledge",
    ),
]


@pytest.mark.parametrize(("operation", "body", "told"), WORDS)
def test_a_word_that_is_not_known_is_answered_with_those_that_are(
    operation: type[Operation[Any]], body: dict[str, Any], told: str
) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(body, operation)
    error = explain(caught.value, operation, operation.spec.name)
    assert told in error.message and "enum" not in error.message


def test_the_words_that_are_known_are_told_once() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"task_id": "t", "status": "done"}, UpdateTaskStatus)
    message = explain(caught.value, UpdateTaskStatus, "update_task_status").message
    assert message == (
        "update_task_status: status is refused: unknown value 'done'; it is one of pending, "
        "in_progress, blocked, completed, failed, cancelled."
    )


def test_a_key_that_is_no_text_is_told_with_the_field_that_has_it() -> None:
    sent = msgspec.msgpack.encode({"session_id": "x", "state_delta": {1: 2}})
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.msgpack.decode(sent, type=SetState)
    error = explain(caught.value, SetState, "set_state")
    assert "state_delta has a key that is refused: expected str, got int." in error.message
    assert error.details["field"] == "state_delta"
