"""Ids that are meant by their end, which is what tables show of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from recollect.cli.failures import Failure
from recollect.client import MemoryClient

ID_LIKE = re.compile(r"[0-9a-f-]{4,35}")
MEMORIES_MAX = 20
RUNS_SEARCHED = 200
DOCUMENTS_PAGE = 500
IDS_SHOWN = 20


def memory_id_from(client: MemoryClient, given: str) -> str:
    """The memory that is meant, also a deleted one."""
    if not ID_LIKE.fullmatch(given):
        return given
    found = client.list_memories(
        filters={"id": {"contains": given}}, limit=MEMORIES_MAX, include_deleted=True
    )
    return _meant(given, (memory["id"] for memory in found["memories"]), MEMORIES_MAX)


def run_id_from(client: MemoryClient, given: str) -> str:
    """The run that is meant, among the latest."""
    if not ID_LIKE.fullmatch(given):
        return given
    latest = client.list_runs(limit=RUNS_SEARCHED)["runs"]
    return _meant(given, (run["run_id"] for run in latest))


def job_run_id_from(client: MemoryClient, given: str) -> str:
    """The run of a job that is meant, among the latest."""
    if not ID_LIKE.fullmatch(given):
        return given
    latest = client.job_history(limit=RUNS_SEARCHED)["runs"]
    return _meant(given, (run["job_run_id"] for run in latest))


def document_id_from(client: MemoryClient, given: str) -> str:
    """The document that is meant."""
    if not ID_LIKE.fullmatch(given):
        return given
    return _meant(given, _document_ids(client))


def _document_ids(client: MemoryClient) -> Iterator[str]:
    cursor = None
    while True:
        page = client.list_documents(limit=DOCUMENTS_PAGE, cursor=cursor)
        yield from (document["id"] for document in page["documents"])
        if (cursor := page["cursor"]) is None:
            return


def _meant(given: str, ids: Iterable[str], cut_at: int | None = None) -> str:
    """The one id that ends so; what none ends in is left as it is, for the answer to say so.

    `cut_at`: how many were asked for; if as many fit, there may be more.
    """
    fitting = [whole for whole in ids if whole.endswith(given)]
    if len(fitting) > 1:
        more = "or more " if len(fitting) == cut_at else ""
        raise Failure(
            "ambiguous_id",
            f"{len(fitting)} {more}ids end in {given}: {', '.join(fitting[:IDS_SHOWN])}.",
            "Give more of the id.",
        )
    return fitting[0] if fitting else given
