"""The threads that embed, and what waits for them.

Queries and documents wait apart. One thread serves queries alone, so that no amount of bulk work
can occupy it; the others serve queries first, then documents. Callers take turns, one text each, so
that a single text does not stand behind a caller with ten thousand. A thread that is free takes at
once what waits, up to a micro-batch, and leaves a fair share to the other free threads.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from recollect.orchestrator.embedding.interface import Kind

KINDS: tuple[Kind, ...] = ("query", "document")


class Wanted:
    """A text on its way to its vector."""

    __slots__ = ("key", "taken", "text")

    def __init__(self, key: bytes, text: str) -> None:
        self.key = key
        self.text = text
        self.taken = False
        """Whether it is in a micro-batch already. Changed under the lock of the threads."""


class Turns:
    """Texts of several callers, who are served in turn. Used under the lock of the threads.

    A text that two callers want stands in both their rows, and goes with whichever comes first.
    """

    def __init__(self) -> None:
        self._rows: OrderedDict[int, deque[Wanted]] = OrderedDict()
        self._tickets = 0
        self.length = 0
        """Texts that wait, each counted once however many want it."""

    def put(self, texts: Iterable[Wanted], *, new: int) -> int:
        """Queue a caller's texts, of which `new` do not wait already; the ticket withdraws them."""
        self._tickets += 1
        self._rows[self._tickets] = deque(texts)
        self.length += new
        return self._tickets

    def take(self, texts_max: int) -> list[Wanted]:
        batch: list[Wanted] = []
        while len(batch) < texts_max and self._rows:
            ticket, row = next(iter(self._rows.items()))
            wanted = row.popleft()
            if row:
                self._rows.move_to_end(ticket)
            else:
                del self._rows[ticket]
            if not wanted.taken:
                wanted.taken = True
                batch.append(wanted)
        self.length -= len(batch)
        return batch

    def withdraw(self, tickets: Iterable[int], unwanted: Iterable[Wanted]) -> list[Wanted]:
        """Take a caller out; of the texts that nobody else wants, those that were waiting."""
        for ticket in tickets:
            self._rows.pop(ticket, None)
        dropped = [wanted for wanted in unwanted if not wanted.taken]
        self.length -= len(dropped)
        return dropped

    def clear(self) -> None:
        self._rows.clear()
        self.length = 0


class Workers:
    """`threads` threads for everything, and one more for queries alone."""

    def __init__(
        self,
        run: Callable[[Kind, Sequence[Wanted]], None],
        *,
        threads: int,
        batch_texts_max: Mapping[Kind, int],
    ) -> None:
        self._run = run
        self._batch_texts_max = batch_texts_max
        self._turns: dict[Kind, Turns] = {kind: Turns() for kind in KINDS}
        # One lock guards all that waits. The thread of the queries and the others sleep on
        # conditions of their own, so that a query wakes one thread and not all.
        self._lock = threading.Lock()
        self._query_came = threading.Condition(self._lock)
        self._something_came = threading.Condition(self._lock)
        self._idle = {self._query_came: 0, self._something_came: 0}
        self._closing = False
        self._started = False
        self._threads = [
            threading.Thread(
                target=self._serve,
                args=(KINDS[:1], self._query_came),
                name="embedding-queries",
                daemon=True,
            )
        ]
        for number in range(threads):
            self._threads.append(
                threading.Thread(
                    target=self._serve,
                    args=(KINDS, self._something_came),
                    name=f"embedding-{number}",
                    daemon=True,
                )
            )

    def put(self, kind: Kind, texts: Iterable[Wanted], *, new: int) -> int:
        """Queue a caller's texts; the ticket withdraws them. The first call starts the threads."""
        with self._lock:
            if not self._started:
                self._started = True
                for thread in self._threads:
                    thread.start()
            ticket = self._turns[kind].put(texts, new=new)
            self._wake()
        return ticket

    def withdraw(
        self, kind: Kind, tickets: Iterable[int], unwanted: Iterable[Wanted]
    ) -> list[Wanted]:
        """Take a caller out; of the texts that nobody else wants, those that were waiting."""
        with self._lock:
            return [] if self._closing else self._turns[kind].withdraw(tickets, unwanted)

    def waiting(self, kind: Kind) -> int:
        """Texts that no thread has taken yet."""
        return self._turns[kind].length

    def close(self, wait_s_max: float) -> bool:
        """Begin no more batches; whether those that ran have ended in time."""
        with self._lock:
            self._closing = True
            for turns in self._turns.values():
                turns.clear()
            self._query_came.notify_all()
            self._something_came.notify_all()
        if not self._started:
            return True
        until_s = time.monotonic() + wait_s_max
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _serve(self, kinds: Sequence[Kind], came: threading.Condition) -> None:
        while True:
            with self._lock:
                while not any(self._turns[kind].length for kind in kinds):
                    if self._closing:
                        return
                    self._idle[came] += 1
                    came.wait()
                    self._idle[came] -= 1
                kind = next(kind for kind in kinds if self._turns[kind].length)
                batch = self._turns[kind].take(self._share(kind))
                # Whoever takes wakes the next one if something is left: a wake-up is never lost,
                # and a lone text wakes a single thread.
                self._wake()
            self._run(kind, batch)

    def _share(self, kind: Kind) -> int:
        hands = 1 + self._idle[self._something_came]
        if kind == "query":
            hands += self._idle[self._query_came]
        return min(self._batch_texts_max[kind], -(-self._turns[kind].length // hands))

    def _wake(self) -> None:
        if self._turns["query"].length:
            idle = self._idle[self._query_came]
            (self._query_came if idle else self._something_came).notify()
        if self._turns["document"].length:
            self._something_came.notify()
