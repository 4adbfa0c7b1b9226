"""`recollect up`: the programs of this machine under one supervisor, and what it says."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.text import Text

from recollect._version import VERSION
from recollect.cli.failures import FAILED, USAGE, Failure
from recollect.cli.local_key import local_key_in, reachable
from recollect.cli.output import clean, err, out
from recollect.cli.supervisor import Program, StartFailed, Supervisor
from recollect.client import AsyncMemoryClient, Retry
from recollect.client.settings import DEFAULT_ENDPOINT
from recollect.config import Settings
from recollect.orchestrator.data_folder import announcement, keep_to_owner
from recollect.protocol.errors import RecollectError

PING_S = 1.0
# Over the time that the orchestrator gives itself to answer what it has accepted.
STOP_SLACK_S = 10.0
REMARK_AFTER_ENDS = 5
LOG_LINES_SHOWN = 10
LOG_TAIL_BYTES = 64 * 1024
LIGHT_MODEL = "hashed-"


class Orchestrator:
    """How the orchestrator is started, and how one sees that it is ready."""

    def __init__(self, settings: Settings, folder: Path, config: str | None) -> None:
        self.folder = folder
        self.log_path = folder / "logs" / "orchestrator.log"
        self.endpoint = settings.network.bind
        self.wanted_model = settings.embedding.model
        self.wants_local = settings.embedding.provider == "local"
        # What it says of its embedding, and whether it asks for keys, once it is ready.
        self.embedding: dict[str, Any] | None = None
        self.asks_for_keys = False
        self._config = ["--config", config] if config else []
        self._stop_s = settings.network.drain_s + STOP_SLACK_S

    def program(self) -> Program:
        return Program(
            "orchestrator", self.command, self.log_path, self.is_ready, stop_s=self._stop_s
        )

    def command(self) -> Sequence[str]:
        # The endpoint that was announced: a port that the system chose stays the same from then on.
        return (
            *(sys.executable, "-m", "recollect", "orchestrator", "--supervised"),
            *("--data", str(self.folder), "--bind", self.endpoint, *self._config),
        )

    async def is_ready(self, pid: int) -> bool:
        announced = announcement(self.folder)
        if announced is None or announced.get("pid") != pid:
            return False
        endpoint = str(announced["endpoint"])
        key_file = local_key_in(self.folder) if announced.get("keys") else None
        try:
            async with AsyncMemoryClient(
                reachable(endpoint), key_file=key_file, retry=Retry(attempts_max=1)
            ) as client:
                await client.ping(timeout=PING_S)
                self.embedding = await _embedding(client)
        except RecollectError:
            return False
        self.endpoint = endpoint
        self.asks_for_keys = key_file is not None
        return True


async def _embedding(client: AsyncMemoryClient) -> dict[str, Any] | None:
    try:
        return (await client.stats(timeout=PING_S))["embedding"]
    except RecollectError:
        return None  # It serves all the same; `recollect stats` will tell.


class Narrator:
    """Tells people at the terminal what the supervisor does."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        self._orchestrator = orchestrator

    def ready(self, program: Program, pid: int, *, again: bool) -> None:
        if again:
            _say(f"The {program.name} runs again (process {pid}).", "green")
        else:
            out.print(welcome(self._orchestrator), soft_wrap=True)

    def slow(self, program: Program, waited_s: float) -> None:
        _say(
            f"The {program.name} is still starting after {waited_s:.0f} s; its log: "
            f"{program.log_path}"
        )

    def ended(self, program: Program, how: str, ends_in_a_row: int, pause_s: float) -> None:
        _say(f"The {program.name} {how}; starting it again in {pause_s:.1f} s.", "yellow")
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


def own_command() -> str:
    """How to call this program again: by its name if a shell finds it, else as it was called."""
    if shutil.which("recollect"):
        return "recollect"
    called = Path(sys.argv[0])
    return "python -m recollect" if called.name == "__main__.py" else str(called)


def welcome(orchestrator: Orchestrator) -> Text:
    """Where everything is, and what to do first; without a frame, so that it can be copied."""
    endpoint = reachable(orchestrator.endpoint)
    usual = endpoint == DEFAULT_ENDPOINT
    text = Text.assemble((f"Recollect {VERSION} is up.\n", "bold green"))
    for name, value in (
        ("endpoint", orchestrator.endpoint),
        ("data", str(orchestrator.folder)),
        ("log", str(orchestrator.log_path)),
    ):
        text.append(f"  {name:<10}", "dim").append(f"{value}\n")
    if orchestrator.embedding is not None:
        text.append(f"  {'model':<10}", "dim")
        text.append(_model_line(orchestrator, orchestrator.embedding)).append("\n")
    if orchestrator.asks_for_keys:
        text.append(f"  {'keys':<10}", "dim")
        text.append("asked for; `recollect keys new NAME` makes one for somebody else\n")
    text.append("\nTry it in another terminal:\n", "dim")
    if not usual:
        text.append(f"  export RECOLLECT_ENDPOINT={endpoint}\n")
    if orchestrator.asks_for_keys:
        text.append(f"  export RECOLLECT_KEY_FILE={local_key_in(orchestrator.folder)}\n")
    command = own_command()
    text.append(f'  {command} add "The build is green since Tuesday."\n')
    text.append(f'  {command} recall "How is the build?"\n')
    text.append("\nOr from Python:\n", "dim")
    given = [] if usual else [f'"{endpoint}"']
    if orchestrator.asks_for_keys:
        given.append(f'key_file="{local_key_in(orchestrator.folder)}"')
    text.append(
        "  from recollect import MemoryClient\n"
        f"  with MemoryClient({', '.join(given)}) as memory:\n"
        '      memory.add_memory("The build is green since Tuesday.")\n'
        '      print(memory.recall("How is the build?")["results"])\n'
    )
    return text.append("\nCtrl-C stops it.", "dim")


def _model_line(orchestrator: Orchestrator, embedding: dict[str, Any]) -> Text:
    """What it embeds with; in yellow where that is only the light embedder, against the wish."""
    model = clean(embedding["model"]).partition("@")[0]
    progress = embedding["reembedding"]
    if progress["state"] in ("running", "waiting"):
        target = clean(progress["target"]).partition("@")[0]
        return Text(f"{model}, being exchanged for {target}; `recollect stats` shows how far")
    if orchestrator.wants_local and model.startswith(LIGHT_MODEL):
        return Text(
            f"the light embedder ({model}), in place of {orchestrator.wanted_model}", "yellow"
        )
    return Text(model)


async def keep_up(settings: Settings, folder: Path, config: str | None) -> None:
    """Run everything until SIGINT, SIGTERM or SIGHUP. Raises Failure if it cannot start."""
    orchestrator = Orchestrator(settings, folder, config)
    keep_to_owner()
    orchestrator.log_path.parent.mkdir(parents=True, exist_ok=True)
    supervisor = Supervisor([orchestrator.program()], Narrator(orchestrator))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.stop)
    try:
        await supervisor.run()
    except StartFailed as failed:
        raise _explained(failed) from failed


def _explained(failed: StartFailed) -> Failure:
    """The failure that a process wrote into its log as its last word, or the log's end."""
    path = failed.program.log_path
    with path.open("rb") as log:
        log.seek(max(failed.log_offset, path.stat().st_size - LOG_TAIL_BYTES))
        lines = deque(log.read().decode(errors="replace").splitlines(), LOG_LINES_SHOWN)
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("action") == "fail":
            exit_code = USAGE if failed.code == USAGE else FAILED
            return Failure(entry["code"], entry["event"], entry["advice"], exit_code=exit_code)
    last = "".join(f"\n  {clean(line)}" for line in lines)
    return Failure("start_failed", f"The {failed}.{last}", f"Its whole log: {path}")
