"""What the tests of promises share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.storages import CHOSEN, STORAGES


@pytest.fixture(scope="module", params=STORAGES)
def storage(request: pytest.FixtureRequest) -> Iterator[str]:
    """The storage that all orchestrators of the test work on; for promises that hold on each."""
    with CHOSEN.on(request.param):
        yield request.param
