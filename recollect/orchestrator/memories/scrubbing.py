"""After a purge: nothing of what was erased stays behind in files or in memory.

A purge removes the rows in its own transaction, and in it leaves a mark that files are still to be
scrubbed. That is done beside everything else, a bounded step at a time: caches are emptied, the
segments of the vector index that hold the vectors are rewritten, the words are merged out of the
full text, and then the storage wipes its own files. Purges that come meanwhile are scrubbed
together, next. Only when all of it is done is the mark taken away; a crash before that is made up
for at the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import structlog

from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.embedding.meaning import Meanings
from recollect.orchestrator.off_loop import to_the_end
from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.search.lexical import LexicalIndex, forget_surroundings
from recollect.orchestrator.search.ranking import forget_texts
from recollect.orchestrator.storage import unwiped
from recollect.orchestrator.storage.interface import Storage
from recollect.orchestrator.troubles.trouble import Trouble, unheard
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

WAIT_S_MAX = 5.0
"""How long a purge waits for its scrubbing before it is answered without."""
NUMBERS_MAX = 100_000  # beyond this, whatever is gone is looked for
# A merge that was under way when the words were deleted brings some of them into its result, and
# the second round takes them out of that.
ROUNDS = 2
STEPS_MAX = 1_000_000
STEP_PAUSE_S = 0.005
RETRY_S_MIN = 0.5
RETRY_S_MAX = 60.0


class Scrubbing:
    """Scrubs when something was erased. Lives on the event loop."""

    def __init__(
        self,
        storage: Storage,
        lexical: LexicalIndex,
        meanings: Meanings,
        clock: Clock,
        forget_vectors: Callable[[], Awaitable[None]],
    ) -> None:
        """`forget_vectors` forgets those of texts that are kept outside of this process."""
        self._storage, self._lexical, self._meanings = storage, lexical, meanings
        self._clock = clock
        self._forget_vectors = forget_vectors
        self.trouble: Trouble = unheard
        # How many purges there were, and how many of them are scrubbed.
        self._asked = self._done = 0
        # The numbers of the memories that were erased; None for whatever is gone.
        self._nums: set[int] | None = set()
        # The mark of the last of them. Purges are noted in the order of their commits.
        self._mark = ""
        self._wake = asyncio.Event()
        # Set, and replaced, whenever some scrubbing has ended, well or not.
        self._ended = asyncio.Event()
        self._stopped = False
        self._reason: str | None = None

    @property
    def wiped(self) -> bool:
        """Whether nothing is left of anything that was purged."""
        return self._done >= self._asked

    def describe(self) -> dict[str, Any]:
        """For `stats`."""
        return {"wiped": self.wiped, "reason": None if self.wiped else self._reason}

    async def take_up(self) -> bool:
        """At start: whether a scrubbing was not finished; then it will be."""
        mark = await self._storage.read(unwiped.marked)
        if mark is None:
            return False
        self.note(None, mark)
        return True

    def note(self, nums: Sequence[int] | None, mark: str) -> None:
        """Memories were erased, and their commit is on disk with this mark."""
        self._asked += 1
        self._mark = mark
        if nums is None or self._nums is None or len(self._nums) + len(nums) > NUMBERS_MAX:
            self._nums = None
        else:
            self._nums.update(nums)
        self._wake.set()

    async def finished(self, call: Call) -> bool:
        """Wait until all that was erased so far is scrubbed; whether that was in time for a call
        and within the bound."""
        asked = self._asked
        left_s = (call.deadline_us - self._clock.now_us()) / 2_000_000
        try:
            async with asyncio.timeout(max(0.0, min(WAIT_S_MAX, left_s))):
                while self._done < asked and not self._stopped:
                    await self._ended.wait()
        except TimeoutError:
            pass
        return self._done >= asked

    async def run(self) -> None:
        """Scrub whenever there is something to be scrubbed, and until it is."""
        retry_s = RETRY_S_MIN
        try:
            while True:
                await self._wake.wait()
                if await self._once():
                    retry_s = RETRY_S_MIN
                    continue
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, RETRY_S_MAX)
        finally:
            self._stopped = True
            self._ended.set()

    async def _once(self) -> bool:
        """One scrubbing; whether everything asked for so far is done."""
        asked, nums, mark = self._asked, self._nums, self._mark
        self._nums = set()
        self._wake.clear()
        try:
            self._reason = await self._scrub(nums, mark)
        except RecollectError as error:
            self._reason = error.message
        except Exception as error:  # nothing may end this while something is to be scrubbed
            log.exception("Scrubbing failed.", action="scrub")
            self._reason = repr(error)
        if self._reason is None:
            self._done = asked
        else:
            log.warning("Scrubbing is to be repeated.", action="scrub", reason=self._reason)
            self.trouble("scrubbing_failed", self._reason)
            self._nums = None if nums is None or self._nums is None else self._nums | nums
            self._wake.set()
        self._ended.set()
        self._ended = asyncio.Event()
        return self._reason is None

    async def _scrub(self, nums: set[int] | None, mark: str) -> str | None:
        """Leave nothing of some memories, or of any that is gone; why not, if that failed."""
        forget_texts()
        forget_surroundings()
        chosen = None if nums is None else np.array(sorted(nums), dtype=np.int64)
        for meaning in self._meanings.opened():
            meaning.embedding.forget()
            if not await to_the_end(meaning.index.expunge, chosen):
                return "a segment of the vector index could not be rewritten"
        # After those at hand, of which some might still be on their way there.
        await self._forget_vectors()
        failpoint("while_scrubbing")
        if self._meanings.leaving:
            return "the index of a model that was replaced is still being removed"
        await self._expunge_words()
        failpoint("while_scrubbing")
        if not await self._storage.scrub():
            return "the storage is too busy, or its file is not as expected: see the log"
        failpoint("while_scrubbing")
        # A purge that was committed meanwhile has put its own in place, and that one stays.
        await self._storage.write(partial(unwiped.unmark, mark))
        log.info("What was purged is wiped.", action="scrub")
        return None

    async def _expunge_words(self) -> None:
        for _ in range(ROUNDS):
            begin = True
            for _ in range(STEPS_MAX):
                if not await self._storage.write(partial(self._lexical.expunge, begin=begin)):
                    break
                begin = False
                await asyncio.sleep(STEP_PAUSE_S)
            if begin:
                return
