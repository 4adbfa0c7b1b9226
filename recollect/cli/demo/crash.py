"""A crash in mid-write: agents write, the orchestrator is killed, and everything is counted."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from recollect.cli.demo.system import DemoSystem
from recollect.cli.failures import Failure
from recollect.protocol.errors import RecollectError

WRITERS = 4
WRITES_EACH = 100
KILLED_AFTER = 120
"""So many acknowledgements come before the kill."""
WITHIN_S = 60.0
AGAIN_S = 0.02
NAMESPACE = "project:crash"
PAGE_ITEMS = 500
DURABLE = ("database", "audit")


class Counted(NamedTuple):
    """What the writers were promised, and what is there."""

    acknowledged_before: int
    repeated: int
    """Writes that had no answer and were sent again, by the same idempotency key."""
    acknowledged: int
    found: int
    lost: int
    twice: int
    away_s: float
    intact: bool
    """Of the database and the audit log; what is derived from them mends itself."""
    remarks: list[str]


def writer_names() -> list[str]:
    """The agents that write."""
    return [f"writer-{number}" for number in range(1, WRITERS + 1)]


class _Ledger:
    """What was acknowledged, kept outside of the memory. Any thread may write."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.texts: list[str] = []
        self.repeated: set[str] = set()
        self.enough = threading.Event()
        self.last_s = 0.0
        self.longest_gap_s = 0.0

    def acknowledge(self, text: str) -> None:
        with self.lock:
            now_s = time.monotonic()
            if self.last_s:
                self.longest_gap_s = max(self.longest_gap_s, now_s - self.last_s)
            self.last_s = now_s
            self.texts.append(text)
            if len(self.texts) >= KILLED_AFTER:
                self.enough.set()


def crash(system: DemoSystem) -> Counted:
    """Write, kill, go on writing, and count. Raises Failure if that takes too long."""
    ledger = _Ledger()
    writers = [
        threading.Thread(target=_write, args=(system, ledger, name), daemon=True)
        for name in writer_names()
    ]
    for writer in writers:
        writer.start()
    if not ledger.enough.wait(WITHIN_S):
        raise Failure("slow_start", "The writers of the demo did not get on.", "Try it again.")
    system.kill_orchestrator()
    with ledger.lock:
        before = len(ledger.texts)
    until_s = time.monotonic() + WITHIN_S
    for writer in writers:
        writer.join(max(0.0, until_s - time.monotonic()))
    if any(writer.is_alive() for writer in writers):
        raise Failure("slow_start", "The orchestrator did not come back in time.", "Try it again.")
    return _count(system, ledger, before)


def _write(system: DemoSystem, ledger: _Ledger, name: str) -> None:
    until_s = time.monotonic() + WITHIN_S
    pause = threading.Event()
    with system.client(name) as memory:
        for turn in range(1, WRITES_EACH + 1):
            text = f"Note {turn} of {name}: the tide stood at {turn * 7 % 400} cm."
            while time.monotonic() < until_s:
                try:
                    memory.add_memory(text, namespace=NAMESPACE, idempotency_key=text)
                except RecollectError as error:
                    if not error.retryable:
                        raise
                    ledger.repeated.add(text)
                    pause.wait(AGAIN_S)
                    continue
                ledger.acknowledge(text)
                break


def _count(system: DemoSystem, ledger: _Ledger, before: int) -> Counted:
    found: list[str] = []
    with system.client("auditor") as memory:
        cursor = None
        while True:
            page = memory.list_memories(namespace=NAMESPACE, limit=PAGE_ITEMS, cursor=cursor)
            found += [one["content"] for one in page["memories"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        problems = memory.check_integrity(timeout=WITHIN_S)["problems"]
    return Counted(
        acknowledged_before=before,
        repeated=len(ledger.repeated),
        acknowledged=len(ledger.texts),
        found=len(found),
        lost=len(set(ledger.texts) - set(found)),
        twice=len(found) - len(set(found)),
        away_s=ledger.longest_gap_s,
        intact=not any(problem["part"] in DURABLE for problem in problems),
        remarks=[problem["text"] for problem in problems],
    )
