"""Every test of a running system runs on every storage, but for those that are named here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.storages import CHOSEN, SQLITE, STORAGES

ON_SQLITE_ALONE: dict[str, str] = {}
"""Why some do not, by their file or by their file and name."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds = STORAGES if _on_every_storage(metafunc.definition.nodeid) else (SQLITE,)
    metafunc.parametrize("storage", kinds, indirect=True, scope="module")


def _on_every_storage(nodeid: str) -> bool:
    file, _, name = nodeid.removeprefix("tests/system/").partition("::")
    return not {file, f"{file}::{name}"} & ON_SQLITE_ALONE.keys()


@pytest.fixture(scope="module", autouse=True)
def storage(request: pytest.FixtureRequest) -> Iterator[str]:
    """The storage that all orchestrators of the test work on."""
    with CHOSEN.on(request.param):
        yield request.param
