"""P1 and P5 for operational memory: what is critical is not lost, and Redis may die or hang."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recollect import MemoryClient, RecollectError
from recollect.client import Retry, Timeouts
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.polling import wait_for
from tests.faults.repeating import Load
from tests.faults.tools.redis_away import WAYS, Way
from tests.faults.tools.writers import ANSWERED_WITHIN_S, patient_client
from tests.harness.processes import OrchestratorProcess
from tests.harness.redis import RedisServer

KILLS = counts.pick(4, 100)
ACKNOWLEDGEMENTS_MAX = 60
ASKED_MEANWHILE = 40
WITHIN_S = 30.0


@pytest.mark.timeout(counts.timeout_s(120))
def test_no_acknowledged_critical_event_is_lost_to_kill_9(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    chance = random.Random(counts.SEED)
    acknowledged: dict[str, str] = {}

    def pushing(name: str) -> Callable[[], None]:
        client = patient_client(process.endpoint, name)
        numbers = iter(range(1_000_000))

        def push() -> None:
            number = next(numbers)
            text, key = f"{name} {number}", f"{name}-{number}"
            give_up_s = time.monotonic() + ANSWERED_WITHIN_S
            while True:
                try:
                    pushed = client.push_event("trial", text, True, idempotency_key=key)
                    break
                except RecollectError as error:
                    if not error.retryable or time.monotonic() > give_up_s:
                        raise
            acknowledged[pushed["event_id"]] = text

        return push

    with Trial("P1") as trial:
        try:
            with Load([pushing("one"), pushing("two")]) as load:
                for _ in range(KILLS):
                    process.start(wait=False)
                    load.wait_for_more(chance.randint(1, ACKNOWLEDGEMENTS_MAX))
                    process.kill()
                    trial.case()
                process.start()
            for failure in load.failures:
                trial.violated(failure)
            assert len(acknowledged) >= KILLS
            with process.client(timeout=30.0) as client:
                asked = list(acknowledged)[-900:]
                found = client.batch_get_memories(asked)
                for memory in found["memories"]:
                    right = acknowledged[memory["id"]] in memory["content"]
                    trial.check(right, f"changed: {memory}")
                trial.check(not found["missing_ids"], f"lost: {found['missing_ids']}")
                events = client.recent_events(1000, "trial")["events"]
                shown = {event["id"]: event["data"] for event in events}
                for event_id in asked:
                    same = shown.get(event_id) == acknowledged[event_id]
                    trial.check(same, f"not in the ring: {event_id}")
                texts = [event["data"] for event in events]
                trial.check(len(texts) == len(set(texts)), "an event was pushed twice")
            assert process.stop() == 0
        finally:
            process.close()


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RedisServer, OrchestratorProcess]]:
    folder = tmp_path_factory.mktemp("operational")
    with RedisServer() as server:
        env = {
            "RECOLLECT_REDIS_URL": server.url,
            "RECOLLECT_CIRCUIT_BREAKER_RESET_TIMEOUT_S": "0.1",
        }
        with OrchestratorProcess(folder / "data", env=env) as process:
            yield server, process


@pytest.mark.timeout(120)
@pytest.mark.parametrize("failing", WAYS)
def test_no_request_fails_while_redis_is_away(
    served: tuple[RedisServer, OrchestratorProcess], failing: Way
) -> None:
    server, process = served

    def client() -> MemoryClient:
        # Whatever fails is seen: nothing is tried twice.
        return process.client(timeouts=Timeouts(call_s=20.0), retry=Retry(attempts_max=1))

    name = failing.__name__
    with client() as pushing, client() as reading, client() as asking, Trial("P5") as trial:
        pushed: list[str] = []

        def push() -> None:
            pushed.append(pushing.push_event(name, len(pushed))["event_id"])

        def read() -> None:
            reading.recent_events(5, name)
            reading.update_metric(name, len(pushed))
            reading.set_active_task(name, {"pushed": len(pushed)})
            reading.get_metrics()
            reading.active_tasks()

        def degraded() -> bool:
            return "degraded" in asking.system_snapshot()

        wait_for(lambda: not degraded(), within_s=WITHIN_S, what="Redis to be in use")
        with Load([push, read]) as load:
            load.wait_for_more(ASKED_MEANWHILE)
            with failing(server):
                wait_for(degraded, within_s=WITHIN_S, what="Redis to be missed")
                load.wait_for_more(ASKED_MEANWHILE)
            wait_for(lambda: not degraded(), within_s=WITHIN_S, what="Redis to be back")
            load.wait_for_more(ASKED_MEANWHILE)
        trial.case(load.done)
        for failure in load.failures:
            trial.violated(failure)
        shown = [event["id"] for event in asking.recent_events(1000, name)["events"]]
        trial.check(shown == pushed[:-1001:-1], "events are missing or in another order")
        [metric] = asking.get_metrics([name])["metrics"]
        assert isinstance(metric["value"], int)


def test_a_restart_finds_what_redis_kept(
    served: tuple[RedisServer, OrchestratorProcess],
) -> None:
    _, process = served
    with process.client() as client:
        client.push_event("before", 1)
        client.update_metric("before", 2)
        client.set_active_task("before", {"step": 3})
    assert process.stop() == 0
    process.start()
    with process.client() as client:
        assert client.system_snapshot()["kept_in"] == "redis"
        [event] = client.recent_events(1, "before")["events"]
        assert event["data"] == 1
        assert [m["value"] for m in client.get_metrics(["before"])["metrics"]] == [2]
        states = {t["task_id"]: t["state"] for t in client.active_tasks()["tasks"]}
        assert states["before"] == {"step": 3}
