"""P16: a restart under 500 connected clients: nearly all are soon back, and nothing is lost."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from recollect import AsyncMemoryClient, RecollectError
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.tools.acknowledgements import Acknowledged, AcknowledgementLog
from tests.harness.processes import OrchestratorProcess

CLIENTS = 500
BACK_WITHIN_S = 10.0
BACK_SHARE = 0.95
PAUSE_S = 0.5
"""Between two writes of a client, so that all of them together leave the machine some air."""
GIVE_UP_S = 60.0


class Crowd:
    """Clients as an agent would have them, each with the settings that it gets by itself."""

    def __init__(self, endpoint: str, log: AcknowledgementLog) -> None:
        self._endpoint = endpoint
        self._log = log
        self.answered_s = [0.0] * CLIENTS
        """When each one was last answered."""
        self.refused: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._run(number)) for number in range(CLIENTS)]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def all_since(self, moment_s: float, share: float = 1.0) -> list[float]:
        """How long each took to be answered after a moment, once enough were or time is up."""
        give_up_s = time.monotonic() + GIVE_UP_S
        while True:
            back = [answered - moment_s for answered in self.answered_s if answered > moment_s]
            if len(back) >= share * CLIENTS or time.monotonic() > give_up_s:
                return back
            await asyncio.sleep(0.02)

    async def _run(self, number: int) -> None:
        async with AsyncMemoryClient(self._endpoint, agent_id=f"agent-{number}") as client:
            # Not all in the same moment.
            await asyncio.sleep(PAUSE_S * number / CLIENTS)
            for written in range(1_000_000):
                content = f"a{number}w{written} was written"
                await self._write(client, number, content, f"{number}-{written}")
                await asyncio.sleep(PAUSE_S)

    async def _write(self, client: AsyncMemoryClient, number: int, content: str, key: str) -> None:
        while True:
            try:
                added = await client.add_memory(content, idempotency_key=key)
            except RecollectError as error:
                if not error.retryable:
                    self.refused.append(f"{error.code}: {error}")
                    return
                await asyncio.sleep(0.1)
                continue
            self._log.add(Acknowledged(added["memory_id"], added["version"], content))
            self.answered_s[number] = time.monotonic()
            return


@pytest.mark.timeout(counts.timeout_s(240))
def test_a_restart_brings_the_clients_back_and_loses_nothing(storage: str, tmp_path: Path) -> None:
    log = AcknowledgementLog()
    restarts = counts.on(storage, counts.RESTARTS)
    with Trial("P16") as trial, OrchestratorProcess(tmp_path / "data") as process:
        asyncio.run(restart(trial, process, log, restarts))
        for complaint in log.check(process.endpoint, search=False):
            trial.violated(complaint)


async def restart(
    trial: Trial, process: OrchestratorProcess, log: AcknowledgementLog, restarts: int
) -> None:
    crowd = Crowd(process.endpoint, log)
    crowd.start()
    try:
        for number in range(restarts):
            connected = await crowd.all_since(time.monotonic())
            assert len(connected) == CLIENTS, "not everybody was connected to begin with"
            # By turns as an operator does it, and as a crash does.
            await asyncio.to_thread(process.stop if number % 2 == 0 else process.kill)
            await asyncio.to_thread(process.start)
            back = await crowd.all_since(time.monotonic(), BACK_SHARE)
            trial.case()
            in_time = sum(took_s <= BACK_WITHIN_S for took_s in back)
            trial.check(
                in_time >= BACK_SHARE * CLIENTS,
                f"restart {number}: {in_time} of {CLIENTS} were back within {BACK_WITHIN_S:.0f} s",
            )
        back = await crowd.all_since(time.monotonic())
        trial.check(len(back) == CLIENTS, f"{CLIENTS - len(back)} clients never came back")
    finally:
        await crowd.stop()
    for refusal in crowd.refused:
        trial.violated(refusal)
