"""The collections that there are, where people read of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recollect.orchestrator.memories.memory_store import TYPED
from recollect.protocol import operations as ops
from recollect.protocol.collection_names import COLLECTIONS
from recollect.protocol.operation import Operation, fields_of
from recollect.protocol.reference import description

GUIDE = Path(__file__).parents[3] / "docs" / "longterm.md"


@pytest.mark.parametrize("way", [ops.SearchMemory, ops.SemanticSearch, ops.Recall])
def test_the_reference_names_every_collection(way: type[Operation[object]]) -> None:
    [field] = [field for field in fields_of(way) if field.name == "collections"]
    named = re.findall(r"[a-z_]+", description(field.type).partition(": ")[2])
    assert tuple(name for name in named) == COLLECTIONS


def test_the_guide_names_every_collection() -> None:
    listed = GUIDE.read_text().rpartition("those that\nthere are:")[2]
    assert tuple(re.findall(r"`(\w+)`", listed)) == COLLECTIONS


def test_what_has_columns_of_its_own_is_a_collection() -> None:
    assert set(TYPED) <= set(COLLECTIONS)
