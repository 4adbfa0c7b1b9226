"""What a process writes, syncs and sends, in the order in which it does.

Two ways to look: from outside by strace, where there is one that may attach; and from inside by a
file layer of SQLite that notes what passes through it, which needs nothing but Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tests.faults.polling import wait_for
from tests.harness.processes import OrchestratorProcess

Kind = Literal["write", "sync", "reply"]
LOG_SUFFIX = "-wal"
ATTACHED_WITHIN_S = 10.0
NOTES = "WATCHED_NOTES"
WATCH = f"{__name__}:note_what_passes"


class Event(NamedTuple):
    """One thing that happened. Of a write and a reply, what was written or sent."""

    kind: Kind
    data: str = ""


def early(events: list[Event], names: list[str]) -> list[str]:
    """Those names that were sent in a reply before they were written and that was synced."""
    written: set[str] = set()
    durable: set[str] = set()
    replied: set[str] = set()
    wrong: list[str] = []
    wanted = set(names)
    pattern = re.compile("|".join(map(re.escape, names)))
    for event in events:
        held = set(pattern.findall(event.data)) & wanted
        if event.kind == "write":
            written |= held
        elif event.kind == "sync":
            durable |= written
        else:
            wrong += sorted(held - replied - durable)
            replied |= held
    return wrong + sorted(wanted - replied)


# From outside.

CALLS = "fdatasync,fsync,pwrite64,sendto,sendmsg"
SHOWN_BYTES = 8_192  # a page, and what stands around it


def can_trace() -> bool:
    """Whether there is a strace that may attach to a process that is not its child."""
    if shutil.which("strace") is None:
        return False
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
    except OSError:
        scope = "0"
    return os.geteuid() == 0 or scope == "0"


@contextmanager
def traced(process: OrchestratorProcess, folder: Path) -> Iterator[list[Event]]:
    """Watch a running process; what it did is in the list afterwards."""
    path = folder / "trace"
    command = ["strace", "-f", "-y", "-s", str(SHOWN_BYTES), "-e", f"trace={CALLS}"]
    tracer = subprocess.Popen(
        [*command, "-o", str(path), "-p", str(process.pid)], stderr=subprocess.PIPE, text=True
    )
    events: list[Event] = []
    try:
        assert tracer.stderr is not None
        assert "attached" in tracer.stderr.readline(), "strace could not attach"
        wait_for(path.exists, within_s=ATTACHED_WITHIN_S, what="a trace")
        yield events
    finally:
        tracer.terminate()
        tracer.wait(ATTACHED_WITHIN_S)
        if tracer.stderr is not None:
            tracer.stderr.close()
    events += of_trace(path.read_text(errors="replace").splitlines())
    path.unlink()


def of_trace(lines: list[str]) -> Iterator[Event]:
    """What the lines of strace say of the log of the database and of the network."""
    syncing: dict[str, bool] = {}
    for line in lines:
        thread, _, call = line.partition(" ")
        call = call.strip()
        if call.startswith(("fdatasync(", "fsync(")):
            ours = LOG_SUFFIX in call
            syncing[thread] = ours
            if ours and call.endswith("= 0"):
                yield Event("sync")
        elif call.startswith(("<... fdatasync resumed>", "<... fsync resumed>")):
            if syncing.get(thread) and call.endswith("= 0"):
                yield Event("sync")
        elif call.startswith("pwrite64("):
            if LOG_SUFFIX in call.partition(">")[0]:
                yield Event("write", call)
        elif call.startswith("send"):
            yield Event("reply", call)


# From inside.


def note_what_passes() -> None:
    """To be called in the process itself: have SQLite and the socket note what they do."""
    import apsw

    from recollect.orchestrator.serving.server import Server

    notes = os.open(os.environ[NOTES], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    [below, *_] = apsw.vfs_names()

    def note(kind: Kind, data: bytes = b"") -> None:
        os.write(notes, kind.encode() + b" " + printable(data) + b"\n")

    class File(apsw.VFSFile):
        def __init__(self, name: Any, flags: list[int]) -> None:
            self._noted = str(getattr(name, "filename", lambda: name)()).endswith(LOG_SUFFIX)
            super().__init__(below, name, flags)

        def xWrite(self, data: bytes, offset: int) -> None:
            if self._noted:
                note("write", bytes(data))
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:
            super().xSync(flags)
            if self._noted:
                note("sync")

    class Files(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("noting", below, makedefault=True)

        def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
            return File(name, flags)

    globals()["_kept"] = Files()  # it lasts as long as it is referred to
    send = Server._send

    def noted_send(self: Server, envelope: tuple[bytes, ...], reply: bytes) -> None:
        note("reply", reply)
        send(self, envelope, reply)

    Server._send = noted_send  # type: ignore[method-assign]


def printable(data: bytes) -> bytes:
    return re.sub(rb"[^\x20-\x7e]", b".", data)


def noted(path: Path) -> list[Event]:
    """What a process that notes has done so far."""
    events = []
    for line in path.read_text().splitlines():
        kind, _, data = line.partition(" ")
        events.append(Event(kind, data))  # type: ignore[arg-type]
    return events
