"""How large the integers of operations may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from recollect.protocol.operation import CALL_OPTIONS
from recollect.protocol.operations import REGISTRY
from recollect.protocol.operations.fields import INTEGER_MAX

# A metric is no column: it is kept as the JSON that it is.
UNBOUNDED = {"update_metric.value"}


def integers_in(path: str, kind: Any) -> Iterator[tuple[str, msgspec.inspect.IntType]]:
    """Every integer that a type may have inside."""
    if isinstance(kind, msgspec.inspect.IntType):
        yield path, kind
    elif isinstance(kind, msgspec.inspect.Metadata):
        yield from integers_in(path, kind.type)
    elif isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            yield from integers_in(path, one)
    elif isinstance(kind, msgspec.inspect.ListType):
        yield from integers_in(path, kind.item_type)
    elif isinstance(kind, msgspec.inspect.DictType):
        yield from integers_in(path, kind.value_type)
    elif isinstance(kind, msgspec.inspect.StructType):
        for field in kind.fields:
            if field.name not in CALL_OPTIONS:
                yield from integers_in(f"{path}.{field.name}", field.type)


@pytest.mark.parametrize("name", REGISTRY)
def test_no_integer_is_larger_than_a_column(name: str) -> None:
    for path, kind in integers_in(name, msgspec.inspect.type_info(REGISTRY[name])):
        if path not in UNBOUNDED:
            assert kind.ge is not None, path
            assert kind.le is not None, path
            assert 0 <= kind.ge <= kind.le <= INTEGER_MAX, path
