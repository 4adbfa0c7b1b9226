"""The live end of the feed: takes on what is committed, and wakes those who wait for it.

What this orchestrator commits it is told of. Where others may write to the same storage, the rest
is read from there, at a bounded interval and only while somebody waits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from recollect.orchestrator.calls import Call
from recollect.orchestrator.feed.pages import Page, ahead, cut_page, read_page
from recollect.orchestrator.feed.tail import CHANGES_MAX, Tail
from recollect.orchestrator.feed.waiting import Waiter, WaitingRoom
from recollect.orchestrator.feed.wanted import Wanted
from recollect.orchestrator.storage.interface import Committed, Storage
from recollect.orchestrator.troubles.trouble import Trouble, unheard
from recollect.protocol.errors import ChangesGone, RecollectError

log = structlog.get_logger()

LOOK_S = 0.1
"""How often the storage is asked what others have written, while somebody waits."""
LOOK_S_MIN = 0.01
# Waking many takes long. After it, the next waking is put off so many times as long: what was
# committed meanwhile is told at once, and those who write are not held up.
REST_FACTOR = 4
REST_S_MAX = 0.1
EVERYTHING = Wanted(homes=None)


class LiveFeed:
    """Answers from memory where it can. Lives on the event loop."""

    def __init__(self, storage: Storage, room: WaitingRoom) -> None:
        self._storage = storage
        self.trouble: Trouble = unheard
        self.room = room
        self.tail = Tail(storage.committed_seq)
        self._alone = storage.inline_reads
        self._loop = asyncio.get_running_loop()
        # All changes up to here were offered to those who wait.
        self._offered_seq = self.tail.seq
        self._waking = False
        self._rest_until_s = 0.0
        # Set when somebody begins to wait, and when others wrote before a commit of one's own.
        self._entered, self._overtaken = asyncio.Event(), asyncio.Event()
        storage.watch(self.committed)

    def committed(self, commit: Committed) -> None:
        """Take on a commit of this orchestrator."""
        if commit.before == commit.seq:
            return self._go_back(commit.seq)
        if commit.before == self.tail.seq:
            self._take(commit)
        elif self._alone:
            self.tail.restart(commit.before)
            self._take(commit)
        elif commit.seq > self.tail.seq:
            # Others wrote in between; the storage has all of it in order.
            if self.room:
                self._overtaken.set()
            else:
                self.tail.restart(commit.seq)
                self._offered_seq = commit.seq

    def _go_back(self, seq: int) -> None:
        """Begin anew where the journal ends; whoever waits behind that is told so."""
        self.tail.restart(seq)
        self._offered_seq = seq
        self.room.wake_all()

    def _take(self, commit: Committed) -> None:
        self.tail.extend(commit.changes, commit.seq)
        if not self.room:
            self._offered_seq = commit.seq
        elif not self._waking:
            self._waking = True
            rest_s = self._rest_until_s - self._loop.time()
            if rest_s > 0:
                self._loop.call_later(rest_s, self._wake)
            else:
                self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        """Offer what came to those who wait, after those who wrote it were answered."""
        began_s = self._loop.time()
        if self.tail.covers(self._offered_seq):
            self.room.offer(self.tail.since(self._offered_seq))
        else:
            self.room.wake_all()
        self._offered_seq = self.tail.seq
        self._waking = False
        # Those who were woken are answered in the next two turns of the loop.
        self._loop.call_soon(self._loop.call_soon, self._rest, began_s)

    def _rest(self, began_s: float) -> None:
        now_s = self._loop.time()
        self._rest_until_s = now_s + min(REST_S_MAX, REST_FACTOR * (now_s - began_s))

    async def page(self, after: int | None, wanted: Wanted, limit: int) -> Page:
        """The changes behind a number, or behind the present end."""
        if self._alone:
            if after is None:
                return Page([], self.tail.seq, self.tail.seq)
            if after > self._storage.committed_seq:
                raise ahead(after, self._storage.committed_seq)
            if self.tail.covers(after):
                return self._at_hand(after, wanted, limit)
        return await self._storage.read(lambda session: read_page(session, after, wanted, limit))

    def _at_hand(self, after: int, wanted: Wanted, limit: int) -> Page:
        return cut_page(self.tail.since(after), after, self.tail.seq, wanted, limit)

    async def next_page(
        self, call: Call, after: int, wanted: Wanted, limit: int, wait_s: float
    ) -> Page:
        """The first changes behind a number that is the end, or none if none comes in time."""
        until_s = self._loop.time() + wait_s
        self.room.enter()
        try:
            while True:
                page = (
                    self._at_hand(after, wanted, limit)
                    if self.tail.covers(after) and after <= self.tail.seq
                    else await self.page(after, wanted, limit)
                )
                if page.changes:
                    return page
                after = page.next_seq
                waiter = Waiter(call, wanted, after)
                self._entered.set()
                if not await self.room.wait(waiter, until_s - self._loop.time()):
                    # What was offered and did not wake it did not fit.
                    after = max(after, min(self._offered_seq, self.tail.seq))
                    return Page([], after, max(after, self.tail.seq))
        finally:
            self.room.leave()

    async def follow(self) -> None:
        """Where others may write to the same storage, look again and again while one waits."""
        while not self._alone:
            await self._entered.wait()
            self._entered.clear()
            while self.room:
                self._overtaken.clear()
                try:
                    await self._catch_up()
                except RecollectError as error:
                    log.warning("Changes were not read.", action="feed", reason=error.message)
                    self.trouble(error.code, error.message)
                await asyncio.sleep(LOOK_S_MIN)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._overtaken.wait()

    async def _catch_up(self) -> None:
        after = self.tail.seq
        try:
            page = await self._storage.read(
                lambda session: read_page(session, after, EVERYTHING, CHANGES_MAX)
            )
        except ChangesGone as gone:
            page = Page([], after, gone.details["seq"])
        if after != self.tail.seq:
            self._overtaken.set()  # by a commit of one's own
        elif not page.complete:
            self.tail.restart(page.seq)
            self._offered_seq = page.seq
            self.room.wake_all()
        elif page.next_seq > after:
            self._take(Committed(after, page.next_seq, page.changes))
