"""Writing an export: page by page to a file beside its name, which it gets when it is whole.

After each page it is noted how far the export is, so that one that was broken off goes on from
there. A packed file is one member a page: it can be cut between any two.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from recollect._version import VERSION as RECOLLECT
from recollect.client import MemoryClient
from recollect.exchange import format
from recollect.exchange.files import STANDARD, is_gzip
from recollect.exchange.format import Header, Tally, encoded
from recollect.exchange.problems import BadFile

PAGE_RECORDS = 500
PAGE_S = 60.0
OWNER_ONLY = 0o600
Progress = Callable[[int, int | None], object]
"""Told after each page how many memories are written, and about how many there are."""


class Reached(msgspec.Struct, frozen=True):
    """How far an export is that may be broken off."""

    header: Header
    cursor: str
    bytes: int
    memories: int | None


class Exported(msgspec.Struct, frozen=True):
    """What was written."""

    path: str
    header: Header
    records: int
    counts: dict[str, int]
    bytes: int


def export(
    client: MemoryClient,
    path: str,
    *,
    namespace: str | None = None,
    resume: bool = False,
    progress: Progress = lambda done, total: None,
) -> Exported:
    """Write all there is, or a namespace, to a file or to standard output."""
    if path == STANDARD:
        return _streamed(client, namespace, progress)
    target = Path(path)
    part, note = Path(f"{path}.part"), Path(f"{path}.part.state")
    reached = _begin(target, part, note, namespace, resume=resume)
    tally = Tally()
    with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, OWNER_ONLY), "r+b") as file:
        if reached is not None:
            _count_again(part, path, file, reached, tally)
        else:
            file.truncate(0)
        writing = _Writing(client, file, tally, namespace, packed=is_gzip(path))
        for state in writing.pages(reached, progress):
            file.flush()
            _write_note(note, state)
        writing.end()
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    part.rename(target)
    note.unlink(missing_ok=True)
    assert writing.header is not None
    counts = dict(tally.counts)
    return Exported(path, writing.header, tally.counts.total(), counts, size)


def _streamed(client: MemoryClient, namespace: str | None, progress: Progress) -> Exported:
    writing = _Writing(client, sys.stdout.buffer, Tally(), namespace, packed=False)
    for _ in writing.pages(None, progress):
        sys.stdout.buffer.flush()
    writing.end()
    sys.stdout.buffer.flush()
    assert writing.header is not None
    counts = dict(writing.tally.counts)
    return Exported(STANDARD, writing.header, sum(counts.values()), counts, writing.written)


class _Writing:
    """One export under way."""

    def __init__(
        self,
        client: MemoryClient,
        file: IO[bytes],
        tally: Tally,
        namespace: str | None,
        *,
        packed: bool,
    ) -> None:
        self._client = client
        self._file = file
        self._namespace = namespace
        self._packed = packed
        self.tally = tally
        self.header: Header | None = None
        self.written = 0

    def pages(self, reached: Reached | None, progress: Progress) -> Any:
        """Write page after page; yields how far it is after each but the last."""
        cursor = None if reached is None else reached.cursor
        total = None if reached is None else reached.memories
        if reached is not None:
            self.header, self.written = reached.header, reached.bytes
        while True:
            page = self._client.export_records(
                cursor=cursor, limit=PAGE_RECORDS, namespace=self._namespace, timeout=PAGE_S
            )
            lines = list[bytes]()
            if self.header is None:
                self.header, total = _header(page, self._namespace), page["memories"]
                line = encoded(self.header)
                self.tally.header(line)
                lines.append(line)
            elif page["store_id"] != self.header.store_id:
                raise BadFile(
                    "The export", "was begun with another store.", "Begin anew without --resume."
                )
            for record in page["records"]:
                line = encoded(record)
                self.tally.record(record["kind"], line)
                lines.append(line)
            self._write(b"".join(lines))
            progress(self.tally.counts["memory"], total)
            cursor = page["cursor"]
            if cursor is None:
                return
            yield Reached(self.header, cursor, self.written, total)

    def end(self) -> None:
        """Write the trailer."""
        self._write(encoded(self.tally.trailer()))

    def _write(self, lines: bytes) -> None:
        if self._packed:
            packed = io.BytesIO()
            with gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as member:
                member.write(lines)
            lines = packed.getvalue()
        self._file.write(lines)
        self.written += len(lines)


def _header(page: Any, namespace: str | None) -> Header:
    return Header(
        format="recollect-export",
        version=format.VERSION,
        recollect=RECOLLECT,
        exported_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seq=page["seq"],
        store_id=page["store_id"],
        namespace=namespace,
    )


def _begin(
    target: Path, part: Path, note: Path, namespace: str | None, *, resume: bool
) -> Reached | None:
    """Where to go on, if so; refuses to write over anything."""
    if target.exists():
        raise BadFile(str(target), "it exists already.", "Name another file, or move it away.")
    if not resume:
        if note.exists():
            raise BadFile(
                str(part),
                "an export to this file was broken off.",
                "`--resume` goes on with it; to begin anew, remove that file and its .state.",
            )
        return None
    if not part.exists() or not note.exists():
        return None
    try:
        reached = msgspec.json.decode(note.read_bytes(), type=Reached)
    except msgspec.MsgspecError as error:
        raise BadFile(
            str(note), f"it cannot be read ({error}).", "Remove it and begin anew."
        ) from None
    if reached.header.namespace != namespace:
        raise BadFile(
            str(part),
            f"that export is of {reached.header.namespace or 'everything'}.",
            "Go on with the same --namespace, or remove the file and begin anew.",
        )
    if part.stat().st_size < reached.bytes:
        raise BadFile(str(part), "it is shorter than it was.", "Remove it and begin anew.")
    return reached


def _count_again(part: Path, path: str, file: IO[bytes], reached: Reached, tally: Tally) -> None:
    """Cut off what came behind the last page that was noted, and count what is there."""
    file.truncate(reached.bytes)
    with gzip.open(part, "rb") if is_gzip(path) else open(part, "rb") as there:
        for number, line in enumerate(there):
            if number == 0:
                tally.header(line)
            else:
                tally.record(msgspec.json.decode(line, type=_Kind).kind, line)
    file.seek(0, io.SEEK_END)


class _Kind(msgspec.Struct):
    kind: str


def _write_note(note: Path, state: Reached) -> None:
    new = note.with_name(note.name + ".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "wb") as file:
        file.write(msgspec.json.encode(state))
    new.replace(note)
