"""What the index holds at one moment, and how it changes.

A `View` is immutable and what a search looks at. The `State` makes the next view out of the present
one; its methods are called under the index's lock, which is held for no build and no search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.vectors.allowed import Allowed
from recollect.orchestrator.search.vectors.bitmaps import Positions
from recollect.orchestrator.search.vectors.head import Chunk, HeadPart
from recollect.orchestrator.search.vectors.scoring import Found, Numbers
from recollect.orchestrator.search.vectors.segment import Living, Segment

Part = Living | HeadPart


class View:
    """The parts of the index; every number lives in one of them at most."""

    def __init__(self, segments: tuple[Living, ...] = (), head: tuple[HeadPart, ...] = ()) -> None:
        self.segments = segments
        self.head = head
        both: tuple[Part, ...] = (*segments, *head)
        self.parts = tuple(part for part in both if part.living)
        """Those in which anything lives."""
        self.count = sum(part.living for part in self.parts)
        """How many vectors live in all."""
        self.head_rows = sum(part.size for part in head)
        """How many rows wait in the head, gone ones included, since they take room as well."""

    def search(self, query: Vectors, k: int, allowed: Allowed | None) -> list[Found]:
        """What each part finds: more than enough for the k nearest of all."""
        found = [part.search(query, k, allowed) for part in self.head if part.living]
        segments = [(living, living.selection(allowed)) for living in self.segments]
        total = sum(selection.count for _, selection in segments)
        found += [living.search(query, k, chosen, total) for living, chosen in segments]
        return found


class State:
    """The present view, and the changes to it."""

    def __init__(self, dimensions: int, chunk_rows: int) -> None:
        self._dimensions = dimensions
        self._chunk_rows = chunk_rows
        self.view = View()
        # How many parts of the head, from its beginning, are being sealed and take no more rows.
        self._frozen = 0

    def change(self, removed: Numbers, nums: Numbers, seqs: Numbers, vectors: Vectors) -> None:
        """Remove numbers, then add rows whose numbers are among them or new; all at once."""
        segments, head = self._without(removed)
        self.view = View(segments, self._with_rows(head, nums, seqs, vectors))

    def seqs_of(self, nums: Numbers) -> Numbers:
        """The sequence number of each, or the least of all where there is no vector."""
        seqs = np.full(len(nums), np.iinfo(np.int64).min)
        for part in self.view.parts:
            positions = part.located(nums)
            known = positions >= 0
            seqs[known] = part.seqs[positions[known]]
        return seqs

    def keep_only(self, nums: Numbers, seqs: Numbers) -> Numbers:
        """Remove all but these pairs, and all but one of each; returns the numbers not found."""
        order = np.argsort(nums)
        wanted, wanted_seqs = nums[order], seqs[order]
        found = np.zeros(len(wanted), dtype=bool)
        segments: list[Living] = []
        head: list[HeadPart] = []
        parts: tuple[Part, ...] = (*self.view.segments, *self.view.head)
        for part in parts:
            living = part.living_positions()
            places: Positions = np.searchsorted(wanted, part.nums[living])
            places[places == len(wanted)] = 0
            fits = np.zeros(len(living), dtype=bool)
            if len(wanted):
                fits = wanted[places] == part.nums[living]
                fits &= wanted_seqs[places] == part.seqs[living]
                fits &= ~found[places]
            found[places[fits]] = True
            if isinstance(part, Living):
                segments.append(part.without(living[~fits]))
            else:
                head.append(part.without(part.nums[living[~fits]].tolist()))
        self.view = View(tuple(segments), tuple(head))
        return wanted[~found]

    def open(self, segments: Sequence[Segment]) -> None:
        """Begin with these segments and an empty head."""
        self._frozen = 0
        self.view = View(tuple(Living(segment) for segment in segments))

    def freeze(self) -> tuple[HeadPart, ...]:
        """The head as it is; what comes from now on goes behind it."""
        self._frozen = len(self.view.head)
        return self.view.head

    def thaw(self) -> None:
        """Nothing is being sealed any more."""
        self._frozen = 0

    def seal(self, frozen: Sequence[HeadPart], segment: Segment | None) -> None:
        """Put a segment in the place of the parts it was made of."""
        now = self.view.head[: len(frozen)]
        segments = self.view.segments
        if segment is not None:
            lost = [after.lost_since(part) for part, after in zip(frozen, now, strict=True)]
            segments = (*segments, _caught_up(segment, lost))
        self._frozen = 0
        self.view = View(segments, self.view.head[len(frozen) :])

    def merge(self, sources: Sequence[Living], segment: Segment | None) -> None:
        """Put a segment in the place of those it was made of."""
        merged = {id(source.segment) for source in sources}
        segments = self.view.segments
        now = {id(living.segment): living for living in segments if id(living.segment) in merged}
        kept = tuple(living for living in segments if id(living.segment) not in merged)
        if segment is not None:
            lost = [now[id(source.segment)].lost_since(source) for source in sources]
            kept = (_caught_up(segment, lost), *kept)
        self.view = View(kept, self.view.head)

    def _without(self, nums: Numbers) -> tuple[tuple[Living, ...], tuple[HeadPart, ...]]:
        segments, head = self.view.segments, self.view.head
        if len(nums):
            low, high = int(nums.min()), int(nums.max())
            segments = tuple(
                living if high < living.low or low > living.high else _without(living, nums)
                for living in segments
            )
            listed = nums.tolist()
            head = tuple(
                part if high < part.low or low > part.high else part.without(listed)
                for part in head
            )
        return segments, head

    def _with_rows(
        self, head: tuple[HeadPart, ...], nums: Numbers, seqs: Numbers, vectors: Vectors
    ) -> tuple[HeadPart, ...]:
        parts, done = list(head), 0
        while done < len(nums):
            if len(parts) <= self._frozen or not parts[-1].room:
                parts.append(HeadPart(Chunk(self._chunk_rows, self._dimensions)))
            stop = min(len(nums), done + parts[-1].room)
            parts[-1] = parts[-1].with_rows(nums[done:stop], seqs[done:stop], vectors[done:stop])
            done = stop
        return tuple(parts)


def _without(living: Living, nums: Numbers) -> Living:
    positions = living.located(nums)
    return living.without(positions[positions >= 0])


def _caught_up(segment: Segment, lost: list[Numbers]) -> Living:
    """The new segment without what was removed from its sources while it was built."""
    return _without(Living(segment), np.concatenate(lost))
