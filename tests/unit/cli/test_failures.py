"""Errors as people read them: each says what to do next."""

from __future__ import annotations

import pytest

from recollect.cli.failures import explained
from recollect.protocol.errors import NotFound


@pytest.mark.parametrize(
    ("details", "command"),
    [
        ({"memory_id": "x"}, "recollect list"),
        ({"namespace": "user:a", "key": "x"}, "recollect list"),
        ({"session_id": "x"}, "recollect sessions list"),
        ({"document_id": "x"}, "recollect documents list"),
        ({"run_id": "x"}, "recollect runs"),
        ({"namespace": "user:a", "task_id": "x"}, "recollect list --type task"),
    ],
)
def test_what_was_not_found_is_looked_for_where_such_things_are_shown(
    details: dict[str, str], command: str
) -> None:
    failure = explained(NotFound("There is none.", **details))
    assert failure is not None and failure.advice == f"`{command}` shows what there is."
