"""The vectors in this process: a head for what is new, sealed segments for the rest.

The event loop only appends notes of changes, and so never waits. Whoever looks at the index next, a
search or a builder, takes the notes in, under a lock that nobody holds for longer than that. A
search then works on a view that does not change. Notes leave the queue only when the view that
includes them is in place: a search that finds the queue empty sees all that was noted before.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.json_paths import Condition
from recollect.orchestrator.search.vectors import scoring
from recollect.orchestrator.search.vectors.allowed import AllowedCache
from recollect.orchestrator.search.vectors.builders import Builders, Sizes
from recollect.orchestrator.search.vectors.interface import Numbers, Upkeep
from recollect.orchestrator.search.vectors.snapshots import SnapshotFolder
from recollect.orchestrator.search.vectors.state import State, View
from recollect.orchestrator.search.vectors.worker import Stopped
from recollect.orchestrator.storage.interface import Row, Session
from recollect.orchestrator.troubles.trouble import Trouble, unheard

log = structlog.get_logger()

HEAD_ROWS_MAX = 2_048
LOAD_ROWS_MAX = 65_536
CHUNK_ROWS = 1_024
IVF_ROWS_MIN = 4_096
NOTES_MAX = 256
PAUSE_S = 0.25
CLOSE_TIMEOUT_S = 10.0


class FaissIndex:
    """Nearest neighbours by inner product among the vectors of the living memories."""

    brings_rows = False

    def __init__(
        self,
        dimensions: int,
        *,
        folder: Path | None = None,
        model: str = "",
        head_max: int = HEAD_ROWS_MAX,
        load_max: int = LOAD_ROWS_MAX,
        ivf_min: int = IVF_ROWS_MIN,
        pause_s: float = PAUSE_S,
        build_threads: int = 1,
        seed: int = 0,
        trouble: Trouble = unheard,
    ) -> None:
        """`trouble` is told of what goes wrong in the background, in whatever thread that is."""
        self._dimensions = dimensions
        self._load_max = load_max
        self._files = None if folder is None else SnapshotFolder(folder, model, dimensions)
        self._allowed = AllowedCache()
        # Appended by the event loop; emptied, in order, under the lock.
        self._notes: deque[tuple[int, Vectors | None, int]] = deque()
        self._lock = threading.Lock()
        # Changed under the lock. Its view may be read at any time.
        self._state = State(dimensions, min(CHUNK_ROWS, head_max))
        sizes = Sizes(head_max, load_max, ivf_min, pause_s, build_threads, seed)
        self._builders = Builders(
            dimensions, sizes, self._files, self._state, self._lock, self._take_notes, trouble
        )

    def seen_by(self, session: Session) -> FaissIndex:
        # It follows every commit of this orchestrator, and sees what it sees.
        return self

    def __len__(self) -> int:
        return self.count()

    def count(self) -> int:
        """How many memories have a vector, with every noted change taken in."""
        return self._view().count

    def open(self) -> None:
        """Load the segments that verify; reconcile is to be called before any search."""
        if self._files is None:
            return
        started = time.monotonic()
        with self._builders.resting():
            try:
                segments = self._files.open()
            except OSError as error:
                log.error("The folder of the index is of no use.", action="open", reason=str(error))
                segments = []
            with self._lock:
                self._state.open(segments)
        log.info(
            "The vector index is open.",
            action="open",
            segments=len(segments),
            vectors=sum(len(segment) for segment in segments),
            seconds=round(time.monotonic() - started, 3),
        )

    def reconcile(
        self, nums: Numbers, seqs: Numbers, trusted: Callable[[Numbers], bool] | None = None
    ) -> Numbers:
        """Keep exactly these vectors of these sequence numbers; returns the numbers missing.

        Equal numbers do not prove equal vectors: the files may be of another store, or of a
        history that a restored backup has undone. `trusted` is asked about what is kept, and if it
        says no, nothing is.
        """
        nums = np.asarray(nums, dtype=np.int64)
        with self._lock:
            self._take_notes()
            missing = self._state.keep_only(nums, np.asarray(seqs, dtype=np.int64))
        kept = np.setdiff1d(nums, missing)
        if trusted is not None and len(kept) and not trusted(kept):
            log.warning("The saved index is not of this store; it is made anew.", action="open")
            self._forget()
            missing = nums
        self._builders.look_at_segments()
        return missing

    def load(self, nums: Numbers, seqs: Numbers, vectors: Vectors) -> None:
        """Take in many vectors at once; one that is there with the same or a later seq stays.

        Not for the event loop: when the head has grown large, this waits until it is sealed.
        """
        nums, seqs = np.asarray(nums, dtype=np.int64), np.asarray(seqs, dtype=np.int64)
        vectors = np.asarray(vectors, dtype=np.float32).reshape(len(nums), self._dimensions)
        for start in range(0, len(nums), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            with self._lock:
                self._take_notes()
                self._load(nums[part], seqs[part], vectors[part])
                rows = self._state.view.head_rows
            if rows >= self._load_max:
                with contextlib.suppress(Stopped):
                    self._builders.seal(self._load_max, patiently=True)
        self._builders.look_at_head(patiently=True)

    def put(self, num: int, vector: Vectors, seq: int) -> None:
        """Note a new or changed vector, which the caller does not change afterwards."""
        if vector.size != self._dimensions:
            raise ValueError(f"the vector has {vector.size} dimensions, not {self._dimensions}")
        self._note(num, vector, seq)

    def remove(self, num: int) -> None:
        """Note that a memory is gone."""
        self._note(num, None, 0)

    def expunge(self, nums: Numbers | None = None) -> bool:
        """Leave nothing in the files of memories that are gone: of all of them, or of these.

        Not for the event loop: it rewrites the segments that have some. Whether that was done.
        """
        nums = None if nums is None else np.asarray(nums, dtype=np.int64)
        try:
            return self._builders.expunge(nums)
        except Stopped:
            return False

    def search(
        self, vector: Vectors, k: int, allowed: Numbers | None = None
    ) -> list[tuple[int, float]]:
        """Numbers and cosine similarities of the k nearest, of all or of the allowed ones.

        A read-only array of allowed numbers is taken never to change: when the same array comes
        again, what was derived from it is used again.
        """
        view = self._view()
        if k <= 0 or not view.count:
            return []
        scoring.one_thread()
        query = np.ascontiguousarray(vector, dtype=np.float32).reshape(-1)
        among = None if allowed is None else self._allowed.prepared(allowed)
        if among is not None and not len(among.nums):
            return []
        return scoring.best(view.search(query, k, among), k)

    def search_rows(
        self, vector: Vectors, k: int, alive: Condition
    ) -> list[tuple[Row, float]] | None:
        raise AssertionError("an index in memory has no rows")

    def similarities(self, vector: Vectors, nums: Numbers) -> npt.NDArray[np.float32]:
        """The cosine similarity with each of these memories; nan where there is no vector."""
        query = np.ascontiguousarray(vector, dtype=np.float32).reshape(-1)
        nums = np.asarray(nums, dtype=np.int64)
        scores = np.full(len(nums), np.nan, dtype=np.float32)
        for part in self._view().parts:
            positions = part.located(nums)
            known = np.flatnonzero(positions >= 0)
            scores[known] = scoring.scores_at(part.vectors, positions[known], query)
        return scores

    def describe(self) -> dict[str, Any]:
        """What the index consists of."""
        view = self._view()
        segments = [
            {
                "kind": living.segment.kind,
                "vectors": living.living,
                "tombstones": len(living.segment) - living.living,
                "bytes": living.segment.size_bytes,
                "saved": living.segment.name is not None,
            }
            for living in view.segments
        ]
        return {
            "vectors": view.count,
            "segments": segments,
            "head": sum(part.living for part in view.head),
            "building": self._builders.busy,
        }

    def settle(self, timeout_s: float) -> bool:
        """Wait until no build or merge is under way or due; whether that was in time."""
        self._builders.look_if_full(self._view())
        return self._builders.settle(timeout_s)

    def maintain(self, timeout_s: float) -> Upkeep:
        """Seal the head, however small, then merge and rewrite as if all were quiet.

        Not for the event loop: it waits for that, and what is not done in time goes on behind.
        """
        rows = sum(part.living for part in self._view().head)
        merged, compacted = self._builders.merged, self._builders.compacted
        try:
            sealed = rows if rows and self._builders.seal(1) else 0
        except (OSError, Stopped):
            sealed = 0
        complete = self._builders.settle(timeout_s)
        builders = self._builders
        return Upkeep(sealed, builders.merged - merged, builders.compacted - compacted, complete)

    def upkeep_due(self) -> Upkeep:
        """What `maintain` would begin with."""
        rows = sum(part.living for part in self._view().head)
        due = self._builders.due()
        merged = len(due) if len(due) > 1 else 0
        return Upkeep(rows, merged, len(due) - merged, not rows and not due)

    def pairs(self, after: int, upto: int) -> tuple[Numbers, Numbers]:
        """The numbers behind one and up to another that have a vector, ascending, each with its
        sequence number."""
        nums, seqs = [scoring.NO_NUMBERS], [scoring.NO_NUMBERS]
        for part in self._view().parts:
            living = part.living_positions()
            wanted = living[(part.nums[living] > after) & (part.nums[living] <= upto)]
            nums.append(part.nums[wanted])
            seqs.append(part.seqs[wanted])
        found = np.concatenate(nums)
        order = np.argsort(found)
        return found[order], np.concatenate(seqs)[order]

    def close(self) -> None:
        """Give up the work in the background; what was saved stays, the rest is made anew."""
        self._builders.stop(CLOSE_TIMEOUT_S)

    def discard(self) -> None:
        """Close, and remove the files; for an index that another has replaced."""
        self.close()
        self._forget()

    def _forget(self) -> None:
        with self._builders.resting():
            with self._lock:
                segments = [living.segment for living in self._state.view.segments]
                self._notes.clear()
                self._state.open(())
            self._builders.remove_files(segments)

    def _note(self, num: int, vector: Vectors | None, seq: int) -> None:
        self._notes.append((num, vector, seq))
        if len(self._notes) % NOTES_MAX == 0:
            self._builders.look_at_head()

    def _view(self) -> View:
        """The present view, with every noted change taken in."""
        if self._notes:
            with self._lock:
                self._take_notes()
            self._builders.look_if_full(self._state.view)
        return self._state.view

    def _take_notes(self) -> None:
        """Make the noted changes; under the lock."""
        notes = self._notes.copy()
        if not notes:
            return
        latest = {num: (vector, seq) for num, vector, seq in notes}
        fresh = [(num, vector, seq) for num, (vector, seq) in latest.items() if vector is not None]
        vectors = np.empty((len(fresh), self._dimensions), dtype=np.float32)
        for row, (_, vector, _) in enumerate(fresh):
            vectors[row] = vector.reshape(-1)
        self._state.change(
            np.fromiter(latest, dtype=np.int64, count=len(latest)),
            np.array([num for num, _, _ in fresh], dtype=np.int64),
            np.array([seq for _, _, seq in fresh], dtype=np.int64),
            vectors,
        )
        for _ in notes:
            self._notes.popleft()

    def _load(self, nums: Numbers, seqs: Numbers, vectors: Vectors) -> None:
        """Take in the rows that are newer than what is there; under the lock."""
        # Of a number that comes twice, the last row counts.
        nums, last = np.unique(nums[::-1], return_index=True)
        rows = len(seqs) - 1 - last
        newer = np.flatnonzero(seqs[rows] > self._state.seqs_of(nums))
        nums, rows = nums[newer], rows[newer]
        self._state.change(nums, nums, seqs[rows], vectors[rows])
