"""How the common dialect is said to PostgreSQL."""

from __future__ import annotations

import pytest

pytest.importorskip("psycopg")

from recollect.orchestrator.storage.postgres.session import in_dialect


def test_parameters_are_numbered_and_nothing_else_is_touched() -> None:
    asked = "SELECT 5 % 2 FROM memories WHERE id = ? AND content LIKE '%s' AND num IN (?, ?)"
    assert in_dialect(asked) == (
        "SELECT 5 % 2 FROM memories WHERE id = $1 AND content LIKE '%s' AND num IN ($2, $3)"
    )
    assert in_dialect("SELECT 1") == "SELECT 1"
