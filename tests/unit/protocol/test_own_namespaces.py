"""Which namespaces are those of Recollect itself."""

from __future__ import annotations

import pytest

from recollect.protocol.own_namespaces import HEALTH_NAMESPACE, is_own


@pytest.mark.parametrize(
    ("namespace", "own"),
    [
        (HEALTH_NAMESPACE, True),
        (f"{HEALTH_NAMESPACE}:0190", True),
        (f"{HEALTH_NAMESPACE}2", False),
        ("user:recollect-health", False),
    ],
)
def test_they_are_told_by_their_whole_parts(namespace: str, own: bool) -> None:
    assert is_own(namespace) is own
