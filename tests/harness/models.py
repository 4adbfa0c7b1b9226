"""The real model, as tests use it: installed once in the user's own place, and kept there."""

from __future__ import annotations

import os
from functools import cache

import pytest

from recollect.models.catalogue import DEFAULT, entry_of
from recollect.models.errors import ModelError
from recollect.models.installing import install
from recollect.models.locating import Installed, find, models_folder


@cache
def _installed() -> Installed | str:
    """The model, or why there is none."""
    found = find(DEFAULT)
    if found is not None:
        return found
    try:
        return install(entry_of(DEFAULT), models_folder()).model
    except ModelError as error:
        return error.message


def real_model() -> Installed:
    """The default model; without it a test is skipped on a laptop, and fails in CI."""
    installed = _installed()
    if isinstance(installed, str):
        if os.environ.get("CI"):
            pytest.fail(installed)
        pytest.skip(installed)
    return installed
