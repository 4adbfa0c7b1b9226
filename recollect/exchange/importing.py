"""Reading an export into a store: in pages, each one transaction; again, and nothing comes twice.

What refers to something that comes later in the file is sent once more at the end; until then it
waits in a temporary file, so that a file of any length needs little memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any

import msgspec

from recollect.client import MemoryClient
from recollect.exchange.files import STANDARD
from recollect.exchange.format import Header, encoded, records_of, verified
from recollect.protocol.records import RecordProblem, RecordsImported

PAGE_RECORDS = 500
PAGE_BYTES = 4_000_000
PAGE_S = 120.0
PROBLEMS_KEPT = 100
Progress = Callable[[int, int | None], object]
"""Told how many records were sent, and how many there are if that is known."""
Record = tuple[int, dict[str, Any]]


class Problem(msgspec.Struct, frozen=True):
    """A record that was not taken in: where it is, and why."""

    line: int
    kind: str
    id: str
    outcome: str
    code: str
    message: str


class Imported(msgspec.Struct):
    """What became of the records of a file."""

    header: Header | None = None
    records: int = 0
    added: int = 0
    present: int = 0
    completed: int = 0
    conflicts: int = 0
    refused: int = 0
    unresolved: int = 0
    """Refer to what is in neither the file nor the store; they came without that."""
    problems: list[Problem] = []
    """The first of them."""
    dry_run: bool = False


def import_file(
    client: MemoryClient,
    path: str,
    *,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> Imported:
    """Take the records of an export in. A file is read through first, and refused if it was cut or
    changed; of a stream that is only known at the end."""
    total = None
    if path != STANDARD:
        _, trailer = verified(path)
        total = trailer.records
    told = Imported(dry_run=dry_run)
    with tempfile.TemporaryFile() as later:
        sending = _Sending(client, told, later)
        for page in _pages(_records(path, told)):
            sending.send(page)
            progress(told.records, total)
        sending.send_again()
    return told


def _records(path: str, told: Imported) -> Iterator[Record]:
    for header, number, record in records_of(path):
        told.header = header
        yield number, record


def _pages(records: Iterator[Record]) -> Iterator[list[Record]]:
    page: list[Record] = []
    size = 0
    for number, record in records:
        length = len(msgspec.json.encode(record))
        if page and (len(page) >= PAGE_RECORDS or size + length > PAGE_BYTES):
            yield page
            page, size = [], 0
        page.append((number, record))
        size += length
    if page:
        yield page


class _Sending:
    """Pages on their way, and what is to be remembered from one to the next."""

    def __init__(self, client: MemoryClient, told: Imported, later: IO[bytes]) -> None:
        self._client = client
        self._told = told
        self._later = later
        # A memory that was not taken in, if it was the last one: the rest of its history, which
        # comes right behind it, is not sent.
        self._stranger: str | None = None

    def send(self, page: list[Record]) -> None:
        """Send one page, and count what became of it."""
        told = self._told
        told.records += len(page)
        page = [one for one in page if not self._is_of_stranger(one[1])]
        if not page:
            return
        answer = self._import([record for _, record in page], dry_run=told.dry_run)
        told.added += answer["added"]
        told.present += answer["present"]
        told.completed += answer["completed"]
        told.conflicts += answer["conflicts"]
        told.refused += answer["refused"]
        for place in answer["waiting"]:
            self._later.write(encoded(page[place][1]))
        for problem in answer["problems"]:
            number, record = page[problem["item"]]
            if record.get("kind") == "memory":
                self._stranger = str(record.get("id"))
            if len(told.problems) < PROBLEMS_KEPT:
                told.problems.append(_problem(number, record, problem))

    def send_again(self) -> None:
        """Send what referred to something that was to come later; by now that is there."""
        self._later.seek(0)
        waiting = ((number, msgspec.json.decode(line)) for number, line in enumerate(self._later))
        for page in _pages(waiting):
            answer = self._import([record for _, record in page], dry_run=False)
            self._told.unresolved += len(answer["waiting"])

    def _is_of_stranger(self, record: dict[str, Any]) -> bool:
        if record.get("kind") != "versions" or record.get("memory_id") != self._stranger:
            return False
        self._told.refused += 1
        return True

    def _import(self, records: list[dict[str, Any]], *, dry_run: bool) -> RecordsImported:
        return self._client.import_records(records, dry_run=dry_run, timeout=PAGE_S)


def _problem(number: int, record: dict[str, Any], told: RecordProblem) -> Problem:
    return Problem(
        line=number,
        kind=told["kind"] or str(record.get("kind")),
        id=told["id"] or str(record.get("id", "")),
        outcome=told["outcome"],
        code=told["error"]["code"],
        message=told["error"]["message"],
    )
