"""The supervisor over small programs of its own."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.cli.up import log_files
from recollect.cli.up.supervisor import (
    Backoff,
    Program,
    StartFailed,
    Supervisor,
    how_it_ended,
)

# On a busy machine even a small program starts slowly, which only one test wants to hear of.
QUICK = Backoff(first_s=0.01, longest_s=0.02, slow_start_s=60)
WITHIN_S = 30.0


class Notes:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.pids: list[int] = []

    def ready(self, program: Program, pid: int, *, again: bool) -> None:
        self.told.append("again" if again else "ready")
        self.pids.append(pid)

    def slow(self, program: Program, waited_s: float) -> None:
        self.told.append("slow")

    def ended(self, program: Program, how: str, ends_in_a_row: int, pause_s: float) -> None:
        self.told.append(f"ended {ends_in_a_row}: {how}")

    def stopping(self) -> None:
        self.told.append("stopping")

    def killed(self, program: Program) -> None:
        self.told.append("killed")


def program(folder: Path, code: str, *, stop_s: float = 10.0) -> Program:
    """A program in Python that is ready once it has made the file `ready`."""
    flag = folder / "ready"

    async def is_ready(pid: int) -> bool:
        return flag.exists() and flag.read_text() == str(pid)

    prelude = (
        "import os, signal, sys, time\n"
        f"def ready():\n    open({str(folder / 'made')!r}, 'w').write(str(os.getpid()))\n"
        f"    os.replace({str(folder / 'made')!r}, {str(flag)!r})\n"
    )
    command = (sys.executable, "-c", prelude + code)
    return Program("sample", lambda: command, folder / "sample.log", is_ready, stop_s)


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not happened():
            await asyncio.sleep(0.005)


def test_it_restarts_what_ends_and_stops_what_runs(tmp_path: Path) -> None:
    async def scenario() -> Notes:
        notes = Notes()
        sample = program(tmp_path, "ready()\nsys.stdin.read()")
        supervisor = Supervisor([sample], notes, backoff=QUICK)
        running = asyncio.create_task(supervisor.run())
        for count in (1, 2, 3):
            await until(lambda count=count: len(notes.pids) == count)  # type: ignore[misc]
            if count < 3:
                os.kill(notes.pids[-1], signal.SIGKILL)
        supervisor.stop()
        await asyncio.wait_for(running, WITHIN_S)
        return notes

    notes = asyncio.run(scenario())
    killed = "was ended by SIGKILL"
    assert notes.told == [
        *("ready", f"ended 1: {killed}", "again", f"ended 2: {killed}", "again", "stopping"),
    ]
    assert len(set(notes.pids)) == 3


def test_a_program_that_never_was_ready_is_not_tried_again(tmp_path: Path) -> None:
    async def scenario() -> Notes:
        notes = Notes()
        with pytest.raises(StartFailed) as failed:
            sample = program(tmp_path, "print('no', flush=True)\nsys.exit(7)")
            await Supervisor([sample], notes, backoff=QUICK).run()
        assert failed.value.code == 7
        assert "exit code 7" in str(failed.value)
        return notes

    assert asyncio.run(scenario()).told == []
    assert (tmp_path / "sample.log").read_text() == "no\n"


def test_what_a_quick_program_wrote_is_found_behind_its_beginning(tmp_path: Path) -> None:
    async def is_ready(pid: int) -> bool:
        return False

    quick = Program("quick", lambda: ("echo", "why"), tmp_path / "quick.log", is_ready, 10.0)

    async def offset() -> int:
        before = quick.log_path.stat().st_size if quick.log_path.exists() else 0
        with pytest.raises(StartFailed) as failed:
            await Supervisor([quick], Notes(), backoff=QUICK).run()
        return failed.value.log_offset - before

    # It may be quicker than whoever starts it, or not.
    assert [asyncio.run(offset()) for _ in range(20)] == [0] * 20


def test_what_does_not_stop_in_time_is_killed(tmp_path: Path) -> None:
    async def scenario() -> Notes:
        notes = Notes()
        stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nready()\ntime.sleep(60)"
        supervisor = Supervisor([program(tmp_path, stubborn, stop_s=0.1)], notes, backoff=QUICK)
        running = asyncio.create_task(supervisor.run())
        await until(lambda: bool(notes.pids))
        supervisor.stop()
        await asyncio.wait_for(running, WITHIN_S)
        return notes

    assert asyncio.run(scenario()).told == ["ready", "stopping", "killed"]


def test_a_slow_start_is_worth_a_remark(tmp_path: Path) -> None:
    async def scenario() -> Notes:
        notes = Notes()
        impatient = QUICK._replace(slow_start_s=0.1)
        supervisor = Supervisor([program(tmp_path, "time.sleep(60)")], notes, backoff=impatient)
        running = asyncio.create_task(supervisor.run())
        await until(lambda: "slow" in notes.told)
        supervisor.stop()
        await asyncio.wait_for(running, WITHIN_S)
        return notes

    assert asyncio.run(scenario()).told[-1] == "stopping"


def test_pauses_grow_to_a_bound_and_never_in_step() -> None:
    backoff, randomness = Backoff(first_s=1, factor=2, longest_s=30), random.Random(7)
    for ends, full in ((1, 1), (2, 2), (3, 4), (6, 30), (10_000, 30)):
        pauses = {backoff.pause_s(ends, randomness) for _ in range(50)}
        assert len(pauses) > 1
        assert all(full / 2 <= pause <= full for pause in pauses)


def test_exit_codes_are_told_in_words() -> None:
    assert how_it_ended(3) == "ended with exit code 3"
    assert how_it_ended(-9) == "was ended by SIGKILL"
    assert how_it_ended(-63) == "was ended by signal 63"


def test_stages_start_in_order_and_stop_in_reverse(tmp_path: Path) -> None:
    told = tmp_path / "told"

    def stage(number: int) -> Program:
        folder = tmp_path / str(number)
        folder.mkdir()
        note = f"open({str(told)!r}, 'a').write"
        code = (
            f"def end(*_):\n    {note}('-{number}'); os._exit(0)\n"
            f"signal.signal(signal.SIGTERM, end)\n{note}('+{number}')\nready()\ntime.sleep(60)"
        )
        return program(folder, code)._replace(name=f"s{number}", stage=number)

    async def scenario() -> None:
        supervisor = Supervisor([stage(1), stage(0)], notes := Notes(), backoff=QUICK)
        running = asyncio.create_task(supervisor.run())
        await until(lambda: len(notes.pids) == 2)
        assert [standing.state for standing in supervisor.standings] == ["ready", "ready"]
        supervisor.stop()
        await asyncio.wait_for(running, WITHIN_S)
        assert [standing.state for standing in supervisor.standings] == ["stopped", "stopped"]

    asyncio.run(scenario())
    assert told.read_text() == "+0+1-1-0"


def test_what_is_not_essential_is_tried_again_and_stops_nobody(tmp_path: Path) -> None:
    async def scenario() -> Notes:
        notes = Notes()
        failing = program(tmp_path, "sys.exit(3)")._replace(essential=False)
        supervisor = Supervisor([failing], notes, backoff=QUICK)
        running = asyncio.create_task(supervisor.run())
        await until(lambda: len(notes.told) >= 2)
        assert not running.done()
        supervisor.stop()
        await asyncio.wait_for(running, WITHIN_S)
        return notes

    ended = "ended with exit code 3"
    assert asyncio.run(scenario()).told[:2] == [f"ended 1: {ended}", f"ended 2: {ended}"]


def test_what_the_supervisor_itself_writes_is_bounded_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "up.log"
    own.write_text("Long. " * 100)
    monkeypatch.setattr(log_files.bound, "__defaults__", (50,))

    async def run() -> None:
        sample = program(tmp_path, "time.sleep(60)")
        supervisor = Supervisor([sample], Notes(), backoff=QUICK, own_log=own)
        running = asyncio.create_task(supervisor.run())
        async with asyncio.timeout(WITHIN_S):
            while own.stat().st_size:
                await asyncio.sleep(0.01)
        supervisor.stop()
        await running

    asyncio.run(run())
    assert log_files.older(own).read_text() == "Long. " * 100


def test_a_log_that_grows_too_long_moves_aside_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "grown.log"
    with path.open("ab", buffering=0) as log:
        log.write(b"x" * 50)
        assert not log_files.bound(path, 50)
        log.write(b"y" * 50)
        assert log_files.bound(path, 50)
        log.write(b"z")
    assert path.read_bytes() == b"z"
    assert log_files.older(path).read_bytes() == b"x" * 50 + b"y" * 50
