"""Ids that are meant by their end, which is what tables show of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from recollect.cli.failures import Failure
from recollect.client import MemoryClient

ID_LIKE = re.compile(r"[0-9a-f-]{4,35}")
# Whole memories come with their ids, so of those a page is small.
MEMORIES_PAGE = 100
RUNS_PAGE = 200
DOCUMENTS_PAGE = 500
PAGES_MAX = 50
IDS_SHOWN = 20

Page = tuple[Iterable[str], str | None]
"""Ids, and the cursor to those that come next."""


def memory_id_from(client: MemoryClient, given: str) -> str:
    """The memory that is meant, also a deleted one."""

    def page(cursor: str | None) -> Page:
        # What has it anywhere: ids begin with their time, which many share.
        found = client.list_memories(
            filters={"id": {"contains": given}},
            limit=MEMORIES_PAGE,
            cursor=cursor,
            include_deleted=True,
        )
        return (memory["id"] for memory in found["memories"]), found["cursor"]

    return _meant(given, page)


def run_id_from(client: MemoryClient, given: str) -> str:
    """The run that is meant."""

    def page(cursor: str | None) -> Page:
        found = client.list_runs(limit=RUNS_PAGE, cursor=cursor)
        return (run["run_id"] for run in found["runs"]), found["cursor"]

    return _meant(given, page)


def job_run_id_from(client: MemoryClient, given: str) -> str:
    """The run of a job that is meant."""

    def page(cursor: str | None) -> Page:
        found = client.job_history(limit=RUNS_PAGE, cursor=cursor)
        return (run["job_run_id"] for run in found["runs"]), found["cursor"]

    return _meant(given, page)


def document_id_from(client: MemoryClient, given: str) -> str:
    """The document that is meant."""

    def page(cursor: str | None) -> Page:
        found = client.list_documents(limit=DOCUMENTS_PAGE, cursor=cursor)
        return (document["id"] for document in found["documents"]), found["cursor"]

    return _meant(given, page)


def _meant(given: str, page: Callable[[str | None], Page]) -> str:
    """The one id that ends so; what none ends in is left as it is, for the answer to say so."""
    if not ID_LIKE.fullmatch(given):
        return given
    fitting: list[str] = []
    for whole in _every(given, page):
        if whole.endswith(given):
            fitting.append(whole)
            if len(fitting) == IDS_SHOWN:
                break
    if len(fitting) > 1:
        more = "or more " if len(fitting) == IDS_SHOWN else ""
        raise Failure(
            "ambiguous_id",
            f"{len(fitting)} {more}ids end in {given}: {', '.join(fitting)}.",
            "Give more of the id.",
        )
    return fitting[0] if fitting else given


def _every(given: str, page: Callable[[str | None], Page]) -> Iterator[str]:
    """The ids of all pages. One that was found is not taken before all were looked at: others may
    end the same way."""
    cursor = None
    for _ in range(PAGES_MAX):
        ids, cursor = page(cursor)
        yield from ids
        if cursor is None:
            return
    raise Failure(
        "ambiguous_id",
        f"There are more ids than are looked through for those that end in {given}.",
        "Give the whole id.",
    )
