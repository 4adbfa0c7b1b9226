"""A background thread that does one kind of job whenever it is asked to look."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import faiss
import structlog

from recollect.orchestrator.troubles.trouble import Trouble, unheard
from recollect.orchestrator.yielding import yield_to_others

log = structlog.get_logger()

# While requests keep coming, the job is put off for at most this many pauses, and for at most that
# many while patient ones are among them.
PAUSES_MAX = 8
PATIENT_PAUSES_MAX = 1_000
# All is quiet when no request has come for so long.
IDLE_S = 30.0


class Stopped(Exception):
    """The work in hand is to be given up."""


class Worker:
    """Runs a job until it says that nothing is left to do, then waits to be asked again.

    The job is told whether all has been quiet for a while, and is run once more when it is.
    """

    def __init__(
        self,
        name: str,
        job: Callable[[bool], bool],
        *,
        threads: int,
        pause_s: float,
        trouble: Trouble = unheard,
    ) -> None:
        """`trouble` is told, in the thread of the work, of what goes wrong."""
        self._job = job
        self._threads = threads
        self._pause_s = pause_s
        self._trouble = trouble
        self._changed = threading.Condition()
        # Below: touched under the condition alone.
        self._asked = 0
        self._patient = 0
        self._idle = False
        self._answered = 0
        self._working = False
        self._started = False
        # Set once, by stop.
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def busy(self) -> bool:
        """Whether the job is being done or is asked for."""
        with self._changed:
            return not (self._at_rest or self._stopping.is_set())

    @property
    def _at_rest(self) -> bool:
        return self._answered >= self._asked and not self._working

    def ask(self, patiently: bool = False, *, idly: bool = False) -> None:
        """Have the job looked at soon, or patiently when no more such requests come.

        Idly means as if all had been quiet. The first request starts the thread.
        """
        with self._changed:
            if self._stopping.is_set():
                return
            self._asked += 1
            self._patient += patiently
            self._idle = idly
            if not self._started:
                self._started = True
                self._thread.start()
            self._changed.notify_all()

    def go_on(self) -> None:
        """Raise Stopped if the work in hand is to be given up."""
        if self._stopping.is_set():
            raise Stopped

    def settled(self, timeout_s: float) -> bool:
        """Wait until all requests so far are answered; whether that was in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._at_rest or self._stopping.is_set(), timeout_s
            )

    def stop(self, timeout_s: float) -> bool:
        """Have the thread end; whether it did in time."""
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
            started = self._started
        if started:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        yield_to_others()
        faiss.omp_set_num_threads(self._threads)
        idle = False
        while True:
            with self._changed:
                asked_again = self._changed.wait_for(
                    lambda: self._answered < self._asked or self._stopping.is_set(),
                    None if idle else IDLE_S,
                )
            asked = self._quiet()
            if self._stopping.is_set():
                return
            with self._changed:
                idle = self._idle or not asked_again
                self._working = True
            try:
                while self._job(idle):
                    self.go_on()
            except Stopped:
                return
            except Exception as error:
                log.exception("Work on the vector index failed.", action=self._thread.name)
                self._trouble("index_work_failed", f"{self._thread.name} failed: {error!r}.")
            with self._changed:
                self._answered = asked
                self._working = False
                self._changed.notify_all()

    def _quiet(self) -> int:
        """Wait until no request has come for a while; how many came by then."""
        pauses = 0
        for _ in range(PATIENT_PAUSES_MAX):
            with self._changed:
                asked, patient = self._asked, self._patient
                self._changed.wait_for(self._stopping.is_set, self._pause_s)
                quiet = self._asked == asked
                pauses = 0 if self._patient > patient else pauses + 1
            if quiet or pauses >= PAUSES_MAX or self._stopping.is_set():
                break
        return asked


def remaining_s(deadline: float) -> float:
    """The seconds until a moment of the monotonic clock, at least none."""
    return max(0.0, deadline - time.monotonic())
