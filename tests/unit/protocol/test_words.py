"""Words of somebody's own: kinds of memories, of tasks and of events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from recollect.protocol.operation import Operation
from recollect.protocol.operations import AddMemory, PushEvent, SaveTask

WORDS: list[tuple[type[Operation[Any]], str, dict[str, Any]]] = [
    (AddMemory, "memory_type", {"content": "x"}),
    (SaveTask, "task_type", {"description": "x"}),
    (PushEvent, "category", {}),
]


@pytest.mark.parametrize(("operation", "field", "rest"), WORDS)
def test_a_word_is_taken_and_one_with_a_line_end_is_not(
    operation: type[Operation[Any]], field: str, rest: dict[str, Any]
) -> None:
    assert msgspec.convert({**rest, field: "disk.full-2"}, operation)
    for wrong in ("general\n", "general\r\n", "\ngeneral", "two words", "General", ""):
        with pytest.raises(msgspec.ValidationError, match="regex"):
            msgspec.convert({**rest, field: wrong}, operation)
