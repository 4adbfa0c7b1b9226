"""The export format, version 1: a header, records, and a trailer by which a cut file is noticed.

Every line is one JSON object with its `kind`. The trailer has the number of records of each kind
and the SHA-256 of all lines before it, newlines included.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from recollect.exchange.files import lines_of
from recollect.exchange.problems import BadFile

VERSION = 1
EXPECTED = "An export begins with a header; `recollect export FILE` makes one."
CUT = "It was cut or changed since it was made: export again, or use another copy."

_encode = msgspec.json.Encoder().encode


class Header(msgspec.Struct, frozen=True, tag_field="kind", tag="header"):
    """What the file is, and of what."""

    format: Literal["recollect-export"]
    version: int
    recollect: str
    exported_at: str
    seq: int
    """The last change that the export is sure to have."""
    store_id: str | None = None
    namespace: str | None = None
    """Only this namespace and those below it; everything if absent."""


class Trailer(msgspec.Struct, frozen=True, tag_field="kind", tag="trailer"):
    """By what it is known that the file is whole."""

    records: int
    counts: dict[str, int]
    sha256: str


def encoded(line: Any) -> bytes:
    """A line of the file."""
    return _encode(line) + b"\n"


class Tally:
    """What a trailer says, gathered line by line."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()

    def header(self, line: bytes) -> None:
        self._digest.update(line)

    def record(self, kind: str, line: bytes) -> None:
        self._digest.update(line)
        self.counts[kind] += 1

    def trailer(self) -> Trailer:
        return Trailer(self.counts.total(), dict(self.counts), self._digest.hexdigest())


def read_header(path: str, line: bytes) -> Header:
    """The header in the first line of a file."""
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadFile(path, f"it is no export of Recollect ({error}).", EXPECTED, line=1) from None
    if header.version > VERSION:
        raise BadFile(
            path,
            f"it has version {header.version} of the format; this program reads up to {VERSION}.",
            "Install a newer Recollect.",
            line=1,
        )
    return header


def records_of(path: str) -> Iterator[tuple[Header, int, dict[str, Any]]]:
    """The records of an export with their line, and at the end whether the file is whole.

    What is wrong with a file that is read from a stream is only known then.
    """
    tally, header, ended = Tally(), None, False
    for number, line in lines_of(path):
        if header is None:
            header = read_header(path, line)
            tally.header(line)
            continue
        if ended:
            raise BadFile(path, "something follows the trailer.", CUT, line=number)
        record = _decoded(path, number, line)
        kind = record.get("kind")
        if not isinstance(kind, str):
            raise BadFile(path, "this record has no kind.", EXPECTED, line=number)
        if kind == "trailer":
            _check(path, number, line, tally)
            ended = True
            continue
        tally.record(kind, line)
        yield header, number, record
    if header is None:
        raise BadFile(path, "it is empty.", EXPECTED)
    if not ended:
        raise BadFile(path, "it ends without a trailer, so it is not whole.", CUT)


def _decoded(path: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadFile(path, f"this line is no JSON object ({error}).", CUT, line=number) from None


def _check(path: str, number: int, line: bytes, tally: Tally) -> None:
    try:
        trailer = msgspec.json.decode(line, type=Trailer)
    except msgspec.MsgspecError as error:
        raise BadFile(path, f"the trailer cannot be read ({error}).", CUT, line=number) from None
    found = tally.trailer()
    if trailer.counts != found.counts:
        raise BadFile(
            path,
            f"it has {found.records:,} records, and its trailer says {trailer.records:,}.",
            CUT,
            line=number,
        )
    if trailer.sha256 != found.sha256:
        raise BadFile(path, "its lines are not those that its trailer is of.", CUT, line=number)


def verified(path: str) -> tuple[Header, Trailer]:
    """Header and trailer of a file that was read through once and is whole."""
    tally_header: Header | None = None
    counts: Counter[str] = Counter()
    for header, _, record in records_of(path):
        tally_header = header
        counts[record["kind"]] += 1
    if tally_header is None:
        # Whole, and of an empty store.
        _, first = next(iter(lines_of(path)))
        tally_header = read_header(path, first)
    return tally_header, Trailer(counts.total(), dict(counts), "")
