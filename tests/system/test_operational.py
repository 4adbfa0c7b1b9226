"""Two orchestrators over one store and one Redis have one operational memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.faults.polling import wait_for
from tests.harness.postgres import new_database
from tests.harness.processes import OrchestratorProcess
from tests.harness.redis import RedisServer

WITHIN_S = 20.0


def test_two_orchestrators_have_one_operational_memory(tmp_path: Path) -> None:
    with RedisServer() as server:
        env = {
            "RECOLLECT_STORAGE_URL": new_database(),
            "RECOLLECT_REDIS_URL": server.url,
            "RECOLLECT_REDIS_TIMEOUT_MS": "5000",
        }
        with (
            OrchestratorProcess(tmp_path / "one", env=env) as one,
            OrchestratorProcess(tmp_path / "other", env=env) as other,
            one.client() as here,
            other.client() as there,
        ):
            critical = here.push_event("outage", "the pump", True)
            here.push_event("build", {"ok": True}, idempotency_key="k-1")
            # As a client does that goes to another orchestrator with the same request.
            there.push_event("build", {"ok": True}, idempotency_key="k-1")
            there.update_metric("water_l", 12)
            there.set_active_task("dig", {"depth_cm": 4})
            for client in (here, there):
                wait_for(
                    lambda client=client: client.system_snapshot()["events"]["kept"] == 2,  # type: ignore[misc]
                    within_s=WITHIN_S,
                    what="both events",
                )
                snapshot = client.system_snapshot()
                assert snapshot["kept_in"] == "redis"
                assert snapshot["events"]["by_category"] == {"outage": 1, "build": 1}
                assert [metric["value"] for metric in snapshot["metrics"]] == [12]
                assert [task["task_id"] for task in snapshot["active_tasks"]] == ["dig"]
            here.add_memory("one here")
            there.batch_add_memories([{"content": "two"}, {"content": "there"}])

            def together() -> dict[str, Any]:
                redis = here.stats()["redis"]
                return {"orchestrators": redis["orchestrators"], **(redis["together"] or {})}

            wait_for(
                lambda: together().get("memories_added") == 4, within_s=WITHIN_S, what="the sums"
            )
            assert together()["orchestrators"] == 2
            assert together()["served"] > here.stats()["requests"]["served"]["stats"]
            there.purge(critical["memory_id"])
            wait_for(
                lambda: here.recent_events()["count"] == 1, within_s=WITHIN_S, what="the purge"
            )
            assert other.stop() == 0
            wait_for(
                lambda: together()["orchestrators"] == 1, within_s=WITHIN_S, what="who is left"
            )
