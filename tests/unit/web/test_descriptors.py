"""How many files may be open: as many as are wanted, if the system may be asked for them."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from recollect.web.descriptors import allow_descriptors


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_it_is_raised_and_never_lowered(limits: tuple[int, int]) -> None:
    soft = 512
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, limits[1]))
    assert allow_descriptors(600) == 600
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (600, limits[1])
    assert allow_descriptors(100) == 600
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (600, limits[1])


def test_more_than_the_system_allows_is_not_had(limits: tuple[int, int]) -> None:
    if limits[1] == resource.RLIM_INFINITY:
        pytest.skip("this system allows any number")
    assert allow_descriptors(limits[1] + 1) == limits[1]
