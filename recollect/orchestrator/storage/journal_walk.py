"""Whether the journal is as it was written, found out in bounded steps.

Each step reads one page in a snapshot of its own, so that a long journal holds up neither the
writer nor those who read. What the chain alone cannot show, that its end was cut off or all of it
was written anew, shows against a head that was noted earlier.

A journal whose oldest entries were trimmed begins behind its anchor: the number and the hash of the
last entry that is gone. The first one kept must follow from it, and an entry of the trimming say
the same: so a beginning that was cut off by somebody else does not pass for a trimmed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from recollect.orchestrator.storage.interface import Change, Row, Session
from recollect.orchestrator.storage.journal import GENESIS, READ_LEDGER, SCAN, chain
from recollect.orchestrator.storage.journal_trimming import READ_ANCHOR, says_trimmed

STEP_ROWS = 500
AHEAD_ROWS = 500
"""Where an entry that is not in its place is looked for."""
SHIFT_MAX = 16
SEQ_MIN = -(1 << 63)

Kind = Literal[
    "changed", "deleted", "reordered", "inserted", "truncated", "rewritten", "end", "trimmed"
]


class Misfit(msgspec.Struct, frozen=True):
    """The first thing that does not fit."""

    kind: Kind
    seq: int
    """The entry at which it shows."""
    text: str


class Entry(msgspec.Struct, frozen=True):
    """A row of the journal as it is now, whatever somebody made of it."""

    change: Change
    hash: Any

    @property
    def seq(self) -> int:
        return self.change.seq

    def follows(self, head: bytes, seq: int) -> bytes:
        """The hash that it would have, written behind `head` under a number."""
        return chain(head, msgspec.structs.replace(self.change, seq=seq))


class JournalWalk:
    """One walk from the first entry to the last. In the hands of one thread at a time."""

    def __init__(self, expected_seq: int | None = None, expected_head: bytes | None = None) -> None:
        self._expected_seq = expected_seq
        self._expected_head = expected_head
        self._met = expected_head is None or (not expected_seq and expected_head == GENESIS)
        self.entries = 0
        self.seq = 0
        self.head = GENESIS
        self.trimmed_seq = 0
        """The last entry that was trimmed."""
        self._trimmed_head = GENESIS
        self._trimming_said = True
        self.misfit: Misfit | None = None

    def step(self, session: Session) -> bool:
        """Go on by one page, in one snapshot; whether there may be more."""
        self.misfit = self._fault_of_anchor(session)
        if self.misfit is not None:
            return False
        start = self.seq + 1 if self.entries else SEQ_MIN
        count = 0
        for entry in _page(session, start, STEP_ROWS):
            count += 1
            self.misfit = self._fault(session, entry)
            if self.misfit is not None:
                return False
        if count == STEP_ROWS:
            return True
        self.misfit = (
            self._fault_at_end(session) or self._fault_of_trimming() or self._fault_of_expected()
        )
        return False

    def _fault_of_anchor(self, session: Session) -> Misfit | None:
        """Begin behind what was trimmed, also what is trimmed while this walk is under way."""
        found = session.execute(READ_ANCHOR)
        seq, head = found[0] if found else (0, None)
        if seq == self.trimmed_seq and head in (None, self._trimmed_head):
            return None
        if not isinstance(seq, int) or not isinstance(head, bytes) or seq <= self.trimmed_seq:
            return Misfit("end", self.seq, "the recorded beginning of the log was changed")
        self.trimmed_seq, self._trimmed_head, self._trimming_said = seq, head, False
        if seq > self.seq:
            self.seq, self.head = seq, head
            if self._expected_seq in (None, seq):
                self._met = self._met or head == self._expected_head
        return None

    def _fault_of_trimming(self) -> Misfit | None:
        if self._trimming_said:
            return None
        text = (
            f"the entries up to {self.trimmed_seq:,} are missing, and no entry says who took them"
        )
        return Misfit("deleted", self.trimmed_seq, text)

    def _fault(self, session: Session, entry: Entry | int) -> Misfit | None:
        """Take one entry on, unless it does not fit the one before it."""
        if isinstance(entry, int):
            return Misfit("changed", entry, f"entry {entry:,} cannot be read: it was changed")
        head = chain(self.head, entry.change)
        if entry.hash != head:
            return _explained(session, entry, self.head, self.seq + 1)
        self.entries += 1
        self.seq, self.head = entry.seq, head
        if says_trimmed(entry.change, self.trimmed_seq, self._trimmed_head):
            self._trimming_said = True
        if self._expected_seq is None:
            self._met = self._met or head == self._expected_head
        elif self.seq == self._expected_seq and self._expected_head is not None:
            self._met = head == self._expected_head
            if not self._met:
                return _rewritten(self.seq)
        return None

    def _fault_at_end(self, session: Session) -> Misfit | None:
        found = session.execute(READ_LEDGER)
        if not found:
            return Misfit("end", self.seq, "the recorded end of the log is gone")
        seq, head = found[0]
        if seq == self.seq and head == self.head:
            return None
        if isinstance(seq, int) and seq > self.seq:
            text = f"entry {seq:,} was the last one, but the log ends at {self.seq:,}: it was cut"
            return Misfit("truncated", self.seq, text)
        if isinstance(seq, int) and seq < self.seq:
            text = f"entry {seq:,} was the last one, but there are others behind it: inserted"
            return Misfit("inserted", seq + 1, text)
        text = f"the log ends at entry {self.seq:,}, but its recorded end differs"
        return Misfit("end", self.seq, text)

    def _fault_of_expected(self) -> Misfit | None:
        expected = self._expected_seq
        if expected is not None and expected > self.seq:
            text = (
                f"the log went on to entry {expected:,} at the earlier check and now ends at "
                f"{self.seq:,}: it was cut"
            )
            return Misfit("truncated", self.seq, text)
        if self._met:
            return None
        if self.trimmed_seq and (expected is None or expected < self.trimmed_seq):
            text = (
                f"the entries up to {self.trimmed_seq:,} were trimmed since the earlier check, so "
                "that it cannot be compared; the rest fits: keep its end from now on"
            )
            return Misfit("trimmed", self.trimmed_seq, text)
        return _rewritten(expected if expected is not None else self.seq)


def verify(session: Session) -> str | None:
    """What is wrong with the journal of one snapshot, or None if all of it fits."""
    walk = JournalWalk()
    while walk.step(session):
        pass
    return None if walk.misfit is None else walk.misfit.text


def _page(session: Session, start: int, rows_max: int) -> Iterator[Entry | int]:
    """Entries from a number on; the number alone of one that cannot be read, which is the last."""
    try:
        rows = session.execute(SCAN, (start, rows_max))
    except UnicodeDecodeError:
        yield from _singly(session, start, rows_max)
        return
    yield from map(_entry, rows)


def _singly(session: Session, start: int, rows_max: int) -> Iterator[Entry | int]:
    for _ in range(rows_max):
        try:
            rows = session.execute(SCAN, (start, 1))
        except UnicodeDecodeError:
            [(seq,)] = session.execute(
                "SELECT seq FROM journal WHERE seq >= ? ORDER BY seq LIMIT 1", (start,)
            )
            yield int(seq)
            return
        if not rows:
            return
        start = rows[0][0] + 1
        yield _entry(rows[0])


def _entry(row: Row) -> Entry:
    *fields, stored = row
    return Entry(Change(*fields), stored)


def _explained(session: Session, entry: Entry, head: bytes, expected: int) -> Misfit:
    """What became of the entry that was written under the expected number, behind `head`."""
    ahead = [e for e in _page(session, entry.seq + 1, AHEAD_ROWS) if isinstance(e, Entry)]
    if entry.seq < expected:
        return Misfit("inserted", entry.seq, f"entry {entry.seq:,} was inserted")
    before = None
    for moved in (entry, *ahead):
        made = moved.follows(head, expected)
        if made in (moved.hash, entry.hash):
            return _moved(entry, moved, expected, made if before is entry else _hash_of(before))
        before = moved
    if entry.seq > expected:
        which = (
            f"entry {expected:,} is"
            if entry.seq == expected + 1
            else (f"entries {expected:,} to {entry.seq - 1:,} are")
        )
        return Misfit("deleted", expected, f"{which} missing")
    if ahead and isinstance(entry.hash, bytes):
        following = ahead[0]
        for shift in range(1, SHIFT_MAX + 1):
            if following.follows(entry.hash, following.seq + shift) == following.hash:
                text = f"what was written as entry {expected:,} is missing, and the rest renumbered"
                return Misfit("deleted", expected, text)
    return Misfit("changed", entry.seq, f"entry {entry.seq:,} was changed")


def _moved(entry: Entry, moved: Entry, expected: int, before: bytes | None) -> Misfit:
    """The entry that belongs here was found elsewhere; `before` is the hash in front of it."""
    if moved is entry:
        text = f"what was written as entry {expected:,} is now number {entry.seq:,}"
        return Misfit("reordered", expected, text)
    made = None if before is None else entry.follows(before, moved.seq)
    if made in (entry.hash, moved.hash):
        text = f"entries {expected:,} and {moved.seq:,} changed places"
        return Misfit("reordered", expected, text)
    if moved.seq == expected + 1:
        return Misfit("inserted", expected, f"entry {expected:,} was inserted")
    text = f"what was written as entry {expected:,} is now number {moved.seq:,}"
    return Misfit("reordered", expected, text)


def _hash_of(entry: Entry | None) -> bytes | None:
    return entry.hash if entry is not None and isinstance(entry.hash, bytes) else None


def _rewritten(seq: int) -> Misfit:
    text = f"the log up to entry {seq:,} is not the one of the earlier check: it was written anew"
    return Misfit("rewritten", seq, text)
