"""The work in the background: sealing the head, and merging segments.

Each has a thread of its own, so that the head is sealed in time while a long merge is under way.
What is built is read from views that do not change; only to put it in place is the lock taken, and
then what was removed in the meantime is removed from it as well.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import structlog

from recollect.orchestrator.search.vectors.building import Memory, Source, build
from recollect.orchestrator.search.vectors.merging import to_merge
from recollect.orchestrator.search.vectors.scoring import Numbers
from recollect.orchestrator.search.vectors.segment import Living, Segment
from recollect.orchestrator.search.vectors.snapshots import SnapshotFolder
from recollect.orchestrator.search.vectors.state import State, View
from recollect.orchestrator.search.vectors.worker import Worker, remaining_s
from recollect.orchestrator.troubles.trouble import Trouble, unheard

log = structlog.get_logger()


class Sizes(msgspec.Struct, frozen=True):
    """When what is built, and with how much effort."""

    head_max: int
    """The head is sealed when it has so many rows."""
    load_max: int
    """While many vectors are loaded at once, it may grow up to this."""
    ivf_min: int
    """Segments of so many rows have an index; smaller ones are compared row by row."""
    pause_s: float
    """Work begins when nothing new has come for so long."""
    threads: int
    """How many threads train an index."""
    seed: int


class Builders:
    """Seals and merges when asked to; `take_notes` is called under the lock before it looks."""

    def __init__(
        self,
        dimensions: int,
        sizes: Sizes,
        files: SnapshotFolder | None,
        state: State,
        lock: threading.Lock,
        take_notes: Callable[[], None],
        trouble: Trouble = unheard,
    ) -> None:
        self._dimensions, self._sizes, self._files = dimensions, sizes, files
        self._state, self._lock, self._take_notes = state, lock, take_notes
        # Held while the head is being sealed; nobody waits for it with the other lock in hand.
        self._seal_lock = threading.Lock()
        # Held while segments are merged or rewritten; may be held with the seal lock within.
        self._merge_lock = threading.Lock()
        self._trouble = trouble
        self._sealer = Worker(
            "vector-sealing", self._seal_job, threads=1, pause_s=sizes.pause_s, trouble=trouble
        )
        # How many segments were merged with others or rewritten alone since the start; changed
        # under the merge lock.
        self.merged = self.compacted = 0
        self._merger = Worker(
            "vector-merging",
            self._merge_job,
            threads=sizes.threads,
            pause_s=sizes.pause_s,
            trouble=trouble,
        )

    @property
    def busy(self) -> bool:
        """Whether work is under way or about to begin."""
        return self._sealer.busy or self._merger.busy

    def look_at_head(self, *, patiently: bool = False) -> None:
        """Have the head sealed if it is full; patiently, when loading has come to an end."""
        self._sealer.ask(patiently)

    def look_at_segments(self) -> None:
        """Have segments merged or rewritten where that is due."""
        self._merger.ask()

    def look_if_full(self, view: View) -> None:
        """Have the head sealed if that is due and not under way."""
        if view.head_rows >= self._sizes.head_max and not self._sealer.busy:
            self._sealer.ask()

    def settle(self, timeout_s: float) -> bool:
        """Wait until no work is under way or due; whether that was in time."""
        deadline = time.monotonic() + timeout_s
        while self._sealer.settled(remaining_s(deadline)):
            self._merger.ask(idly=True)
            if not self._merger.settled(remaining_s(deadline)):
                return False
            if not self.busy:
                return True
        return False

    def due(self) -> list[Living]:
        """The segments that would be merged or rewritten next, if all were quiet."""
        with self._lock:
            self._take_notes()
            return to_merge(self._state.view.segments, self._sizes.ivf_min, idle=True)

    def stop(self, timeout_s: float) -> None:
        """Give up the work in hand."""
        for worker in (self._sealer, self._merger):
            if not worker.stop(timeout_s):
                log.warning("A builder of the vector index did not end in time.", action="close")
        # Whoever expunges is told to give up as well.
        if self._merge_lock.acquire(timeout=timeout_s):
            self._merge_lock.release()

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """While nothing is sealed or merged."""
        with self._merge_lock, self._seal_lock:
            yield

    def expunge(self, nums: Numbers | None) -> bool:
        """Rewrite the segments with rows that are gone, any or of these numbers; whether none has
        them any more. Raises Stopped when the index is closed."""
        with self._merge_lock:
            # What is being sealed just now may hold them; what is sealed from now on does not.
            with self._seal_lock:
                with self._lock:
                    self._take_notes()
                    segments = self._state.view.segments
                if self._files is not None:
                    self._files.remove_others({living.segment.name or "" for living in segments})
            for living in segments:
                self._merger.go_on()
                if living.holds_gone(nums) and not self._merge([living]):
                    return False
        return True

    def remove_files(self, segments: Iterable[Segment]) -> None:
        """Remove the files of segments that are not used any more."""
        for segment in segments:
            if self._files is not None and segment.name is not None:
                self._files.remove(segment.name)

    def _seal_job(self, idle: bool) -> bool:
        return self.seal(self._sizes.head_max)

    def seal(self, rows_min: int, *, patiently: bool = False) -> bool:
        """Make a segment of the head if it has that many rows; whether it had."""
        with self._seal_lock:
            with self._lock:
                self._take_notes()
                if self._state.view.head_rows < rows_min:
                    return False
                frozen = self._state.freeze()
            try:
                # Quick, since it only writes rows; indexes are trained when segments are merged.
                segment = self._build(frozen, sum(part.living for part in frozen), None)
                with self._lock:
                    self._state.seal(frozen, segment)
            finally:
                with self._lock:
                    self._state.thaw()
        self._merger.ask(patiently)
        return True

    def _merge_job(self, idle: bool) -> bool:
        with self._merge_lock:
            with self._lock:
                self._take_notes()
                sources = to_merge(self._state.view.segments, self._sizes.ivf_min, idle=idle)
            if not sources or not self._merge(sources):
                return False
            if len(sources) > 1:
                self.merged += len(sources)
            else:
                self.compacted += 1
            return True

    def _merge(self, sources: Sequence[Living]) -> bool:
        """Make one segment of what lives in some; whether that was possible."""
        if not self._whole(sources):
            return False
        rows = sum(source.living for source in sources)
        try:
            segment = self._build(sources, rows, self._sizes.ivf_min)
        except OSError:
            return False
        with self._lock:
            self._state.merge(sources, segment)
        self.remove_files(source.segment for source in sources)
        return True

    def _whole(self, sources: Sequence[Living]) -> bool:
        """Whether the files of some segments are as they were written: a merge would give damage a
        new checksum. A damaged one stays as it is until the next start, which makes it anew."""
        for source in sources:
            name = source.segment.name
            if self._files is not None and name is not None and not self._files.is_whole(name):
                log.error(
                    "The files of a segment were changed; restart the orchestrator.",
                    action="merge",
                    name=name,
                )
                self._trouble("segment_damaged", "The files of a segment were changed; restart.")
                return False
        return True

    def _build(self, sources: Sequence[Source], rows: int, ivf_min: int | None) -> Segment | None:
        """A segment of what lives in the sources, on disk if it can be; None if nothing does."""
        if not rows:
            return None
        worker = self._sealer if ivf_min is None else self._merger
        least = rows + 1 if ivf_min is None else ivf_min
        if self._files is not None:
            try:
                draft = self._files.draft()
                return build(
                    sources, draft, ivf_min=least, seed=self._sizes.seed, go_on=worker.go_on
                )
            except OSError as error:
                log.error("A segment could not be saved.", action="build", reason=str(error))
                self._trouble("segment_not_saved", f"A segment could not be saved: {error}.")
                if rows > max(self._sizes.load_max, self._sizes.head_max):
                    # Too many to be held in memory: the sources stay as they are.
                    raise
        room = Memory(rows, self._dimensions)
        return build(sources, room, ivf_min=least, seed=self._sizes.seed, go_on=worker.go_on)
