"""`recollect up` at work: everything runs until it is told to stop, and people see how it goes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from rich.console import Group
from rich.live import Live
from rich.text import Text

from recollect.cli.failures import FAILED, USAGE, Failure
from recollect.cli.output import clean, err, out
from recollect.cli.up.programs import COMPANIONS, Companion, Orchestrator, log_path
from recollect.cli.up.supervisor import Program, StartFailed, Supervisor
from recollect.cli.up.table import process_table
from recollect.cli.up.welcome import welcome
from recollect.config import Settings
from recollect.orchestrator.running.data_folder import DataFolder, keep_to_owner

UP = "up"
"""The role in which the supervisor holds a data folder."""
REMARK_AFTER_ENDS = 5
LOG_LINES_SHOWN = 10
LOG_TAIL_BYTES = 64 * 1024
COMPANIONS_WITHIN_S = 15.0
"""So long the welcome waits for the others, to tell of them as well."""
REFRESHED_PER_S = 2


class Narrator:
    """Tells people at the terminal what the supervisor does."""

    def __init__(self, orchestrator: Orchestrator, companions: Sequence[Companion]) -> None:
        self._orchestrator = orchestrator
        self._companions = companions

    def ready(self, program: Program, pid: int, *, again: bool) -> None:
        if again:
            _say(f"The {program.name} runs again (process {pid}).", "green")

    def all_ready(self) -> None:
        out.print(welcome(self._orchestrator, self._companions), soft_wrap=True)

    def slow(self, program: Program, waited_s: float) -> None:
        _say(
            f"The {program.name} is still starting after {waited_s:.0f} s; its log: "
            f"{program.log_path}"
        )

    def ended(self, program: Program, how: str, ends_in_a_row: int, pause_s: float) -> None:
        _say(f"The {program.name} {how}; starting it again in {pause_s:.1f} s.", "yellow")
        if ends_in_a_row == REMARK_AFTER_ENDS or not (program.essential or ends_in_a_row > 1):
            last = _last_word(program.log_path, 0)
            if last is not None:
                _say(f"{last.message} {last.advice}".strip(), "yellow")
        if ends_in_a_row == REMARK_AFTER_ENDS:
            _say(
                f"That was {ends_in_a_row} times in a row. It will be tried for as long as this "
                f"runs; the reason may be in {program.log_path}",
                "red",
            )

    def stopping(self) -> None:
        _say("Stopping: what was accepted is still answered. Ctrl-C again ends it at once.")

    def killed(self, program: Program) -> None:
        _say(f"The {program.name} did not end in time and was killed; nothing is lost.", "yellow")


def _say(message: str, style: str = "") -> None:
    line = Text.assemble((f"{datetime.now():%H:%M:%S} ", "dim"), (message, style))
    err.print(line, soft_wrap=True)


async def keep_up(
    settings: Settings, folder: Path, config: str | None, without: Collection[str] = ()
) -> None:
    """Run everything until SIGINT, SIGTERM or SIGHUP, unless that is ignored. Raises Failure if it
    cannot start."""
    keep_to_owner()
    orchestrator = Orchestrator(settings, folder, config)
    companions = [Companion(n, orchestrator, config) for n in COMPANIONS if n not in without]
    orchestrator.log_path.parent.mkdir(parents=True, exist_ok=True)
    held = DataFolder(folder, UP)
    narrator = Narrator(orchestrator, companions)
    programs = [orchestrator.program(), *(one.program() for one in companions)]
    supervisor = Supervisor(programs, narrator, own_log=log_path(folder, UP))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Under nohup the end of the terminal is to end nothing.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, supervisor.stop)
    greeting = asyncio.create_task(_greet(supervisor, narrator, held, orchestrator, companions))
    try:
        with _shown(supervisor, orchestrator, companions):
            await supervisor.run()
    except StartFailed as failed:
        raise _explained(failed) from failed
    finally:
        greeting.cancel()
        held.release()


async def _greet(
    supervisor: Supervisor,
    narrator: Narrator,
    held: DataFolder,
    orchestrator: Orchestrator,
    companions: Sequence[Companion],
) -> None:
    """Say where everything is once it is there; who is late is not waited for."""
    essential = [s for s in supervisor.standings if s.program.essential]
    await asyncio.gather(*(standing.ever_ready.wait() for standing in essential))
    ready = [asyncio.create_task(s.ever_ready.wait()) for s in supervisor.standings]
    _, late = await asyncio.wait(ready, timeout=COMPANIONS_WITHIN_S)
    for task in late:
        task.cancel()
    narrator.all_ready()
    held.announce(
        {
            "pid": os.getpid(),
            "endpoint": orchestrator.endpoint,
            "keys": orchestrator.asks_for_keys,
            "companions": {one.name: one.said for one in companions if one.said},
        }
    )


@contextmanager
def _shown(
    supervisor: Supervisor, orchestrator: Orchestrator, companions: Sequence[Companion]
) -> Iterator[None]:
    """A live table of the processes, where there is a terminal to show it."""
    if not err.is_terminal:
        yield
        return
    loop = asyncio.get_running_loop()
    places = {one.name: one for one in companions}

    def where(name: str) -> str | None:
        return places[name].url if name in places else orchestrator.endpoint

    def render() -> Group:
        return Group("", process_table(supervisor.standings, loop.time(), where))

    with Live(
        console=err, get_renderable=render, refresh_per_second=REFRESHED_PER_S, transient=True
    ):
        yield


def _explained(failed: StartFailed) -> Failure:
    """The failure that a process wrote into its log as its last word, or the log's end."""
    path = failed.program.log_path
    said = _last_word(path, failed.log_offset)
    if said is not None:
        said.exit_code = USAGE if failed.code == USAGE else FAILED
        return said
    last = "".join(f"\n  {clean(line)}" for line in _tail(path, failed.log_offset))
    return Failure("start_failed", f"The {failed}.{last}", f"Its whole log: {path}")


def _last_word(path: Path, offset: int) -> Failure | None:
    """Why a process gave up, if the last lines of its log say so."""
    for line in reversed(_tail(path, offset)):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("action") == "fail":
            return Failure(entry["code"], entry["event"], entry["advice"])
    return None


def _tail(path: Path, offset: int) -> deque[str]:
    with path.open("rb") as log:
        log.seek(max(offset, path.stat().st_size - LOG_TAIL_BYTES))
        return deque(log.read().decode(errors="replace").splitlines(), LOG_LINES_SHOWN)
