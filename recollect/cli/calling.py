"""Commands that ask the orchestrator: one call, one answer, shown in one of two ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from recollect.cli.failures import Failure, reporting
from recollect.cli.output import SHORT_ID_CHARS, clean, short_id, show_failure
from recollect.client import MemoryClient, Retry

AGENT_ID = "cli"
# Somebody is waiting at a terminal: one more try covers a restart, and then they should know.
RETRY = Retry(attempts_max=2)
ID_LIKE = re.compile(r"[0-9a-f-]{4,35}")
CANDIDATES_MAX = 20


@contextmanager
def calling(endpoint: str | None, *, as_json: bool) -> Iterator[MemoryClient]:
    """A client whose errors end the command with a message and the right exit code."""
    with (
        reporting(partial(show_failure, as_json=as_json)),
        MemoryClient(endpoint, agent_id=AGENT_ID, retry=RETRY) as client,
    ):
        yield client


def whole_id(client: MemoryClient, given: str) -> str:
    """The id meant by the end of one, as tables show it; anything else is left as it is."""
    if not ID_LIKE.fullmatch(given):
        return given
    found = client.list_memories(
        filters={"id": {"contains": given}}, limit=CANDIDATES_MAX, include_deleted=True
    )
    ids = [memory["id"] for memory in found["memories"] if memory["id"].endswith(given)]
    if len(ids) > 1:
        raise Failure(
            "ambiguous_id",
            f"{counted_ids(len(ids))} end in {clean(given)}: {', '.join(ids)}.",
            "Give more of the id.",
        )
    return ids[0] if ids else given


def counted_ids(count: int) -> str:
    return f"At least {count} ids" if count == CANDIDATES_MAX else f"{count} ids"


def id_shown(memory_id: str, *, full: bool) -> str:
    """An id for a table."""
    return memory_id if full or len(memory_id) <= SHORT_ID_CHARS else short_id(memory_id)
