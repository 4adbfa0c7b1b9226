"""Every operation used once, by whichever way: each call as it is made, and what must come back.

Who makes the calls is the clients over ZeroMQ, or somebody who carries the same calls to the
gateway; what is asked and expected is the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest

from recollect.protocol import errors


class Caller(Protocol):
    """Has a method an operation that blocks, returns the result and raises the typed error.

    And, as the clients do: set_agent_id, set_session_id, set_task_id, set_fence, clear_fence.
    """

    def __getattr__(self, name: str) -> Any: ...


def use_everything(client: Caller, tmp_path: Path) -> None:
    """Use every operation of an empty store that may read the documents in `tmp_path`."""
    client.set_agent_id("planner")
    use_keys(client)
    use_sessions(client)
    use_documents(client, documents_of(tmp_path))
    use_consolidation(client)
    use_tiers(client)
    use_access(client)
    use_audit(client)
    use_goals_and_tasks(client)
    use_names(client)
    use_decisions(client)
    use_longterm(client)
    use_learning(client)
    use_operational(client)
    use_context(client)
    use_jobs(client)
    use_memories(client, tmp_path)


def documents_of(tmp_path: Path) -> Path:
    """A folder with two documents."""
    folder = tmp_path / "documents"
    if not folder.exists():
        folder.mkdir()
        (folder / "ships.md").write_text("# Ships\n\nThe brig sails at dawn.\n")
        (folder / "tides.txt").write_text("The tide is low at noon.\n")
    return folder


def use_keys(client: Caller) -> None:
    put = client.put("user:alice", "editor", {"name": "vim"}, "episodic", {"since": 1991})
    assert (put["version"], put["created"]) == (1, True)
    assert client.get_by_key("user:alice", "editor")["memory"]["id"] == put["memory_id"]
    assert client.update_by_key("user:alice", "editor", {"name": "ed"})["version"] == 2
    assert client.diff("user:alice", "editor", 1)["changes"]["value"]["after"] == {"name": "ed"}
    assert client.history_by_key("user:alice", "editor")["count"] == 2
    assert client.delete_by_key("user:alice", "editor")["deleted_ids"] == [put["memory_id"]]
    assert client.restore_by_key("user:alice", "editor", 1)["version"] == 4
    [found] = client.search_namespace("user:alice", "episodic", 5)["memories"]
    assert (found["key"], found["value"]) == ("editor", {"name": "vim"})
    [namespace] = client.list_namespaces("user")["namespaces"]
    assert namespace == {"namespace": "user:alice", "memories": 1}
    squashed = client.squash_versions("user:alice", 0)
    assert (squashed["versions"], squashed["complete"]) == (3, True)
    assert client.history_by_key("user:alice", "editor")["count"] == 1


def use_sessions(client: Caller) -> None:
    session_id = client.create_session("bob", app="chess", state={"move": 1})["session_id"]
    appended = client.append_event(session_id, {"played": "e4"}, {"temp:clock": 9}, 1)
    assert (appended["position"], appended["version"]) == (1, 2)
    assert client.set_state(session_id, {"move": 2, "user:level": 3})["version"] == 3
    state = {"move": 2, "user:level": 3, "temp:clock": 9}
    assert client.get_state(session_id, min_seq=appended["seq"])["state"] == state
    assert client.list_events(session_id)["events"][0]["event"] == {"played": "e4"}
    assert client.update_status(session_id, "paused")["session_status"] == "paused"
    assert client.list_sessions("bob", "paused")["count"] == 1
    assert client.list_active_sessions("bob")["sessions"][0]["id"] == session_id
    assert client.terminate_session(session_id)["session_status"] == "terminated"
    assert client.archive_session(session_id)["session_status"] == "archived"
    assert client.get_session(session_id)["state"] == {"move": 2, "user:level": 3}
    assert client.delete_session(session_id)["events"] == 1


def use_documents(client: Caller, folder: Path) -> None:
    indexed = client.index_document(
        title="Harbour", namespace="project:port", text="The harbour has two piers."
    )
    assert indexed["added"] == 1
    synced = client.sync_documents(str(folder), "project:port")
    assert (synced["files"], synced["synced"], synced["complete"]) == (2, 2, True)
    assert client.list_documents("project:port", "synced")["count"] == 3
    [found] = client.search_documents("When does the brig sail?", 1)["results"]
    assert "sails at dawn" in found["content"]
    assert client.delete_document(indexed["document"]["id"])["removed"] == 1


def use_consolidation(client: Caller) -> None:
    for source in ("log", "chat"):
        client.add_memory(
            "The deploy of the website runs every Friday at noon",
            namespace="project:site",
            source=source,
        )
    conflicts = client.find_conflicts("project:site")
    assert [conflict["kind"] for conflict in conflicts["conflicts"]] == ["duplicate"]
    run = client.consolidate("project:site", "keep_latest")
    assert run["archived"] == 1
    assert client.get_run(run["run_id"])["run"]["run_status"] == "done"
    assert client.undo(run["run_id"])["restored"] == 1
    forgotten = client.forget_source("log", namespace="project:site")
    assert forgotten["forgotten"] == 1
    runs = client.list_runs("project:site")["runs"]
    assert [found["run_id"] for found in runs] == [forgotten["run_id"], run["run_id"]]


def use_tiers(client: Caller) -> None:
    rose = client.add_memory("The garden", memory_tier="long", namespace="project:garden")
    for month in ("April", "May", "June"):
        client.add_memory(
            f"The roses in the garden were watered in {month}. It was warm.",
            memory_tier="medium",
            parent_id=rose["memory_id"],
            namespace="project:garden",
        )
    would = client.migrate("project:garden", "working", True, older_than_days=0)
    assert (would["run_id"], would["summarised"]) == (None, 3)
    done = client.migrate("project:garden", "working", older_than_days=0)
    assert done["summaries"][0]["text"] == would["summaries"][0]["text"]
    assert client.undo(done["run_id"])["restored"] == 3


def use_access(client: Caller) -> None:
    me = client.who_am_i()
    assert me["grants"] == [{"pattern": "*", "access": "admin"}]
    created = client.create_identity("critic", "x" * 40, 10.0, 100)["identity"]
    assert (created["name"], created["grants"]) == ("critic", [])
    granted = client.grant_access("critic", "user:alice", "write")["identity"]
    assert granted["grants"] == [{"pattern": "user:alice", "access": "write"}]
    assert client.revoke_access("critic", "user:alice")["identity"]["grants"] == []
    bearing = client.create_bearer_key("critic", "1f" * 32, "the laptop")["identity"]
    [key] = bearing["bearer_keys"]
    assert (key["key_id"], key["label"], key["revoked_at"]) == ("1f" * 6, "the laptop", None)
    without = client.revoke_bearer_key("critic", key["key_id"])["identity"]
    assert without["bearer_keys"][0]["revoked_at"] is not None
    assert client.revoke_access("critic")["identity"]["revoked_at"] is not None
    assert "critic" in [found["name"] for found in client.list_identities()["identities"]]


def use_audit(client: Caller) -> None:
    entries = client.audit_log(namespace="user:alice", operation="put")["entries"]
    assert [(entry["agent"], entry["outcome"]) for entry in entries] == [("planner", "done")]
    assert client.verify_audit()["valid"] is True
    page = client.read_changes(0, 1, operations=["put"], wait_s=1.0)
    assert [(c["operation"], c["agent"]) for c in page["changes"]] == [("put", "planner")]
    assert page["next_seq"] == page["changes"][0]["seq"] and not page["complete"]


def use_goals_and_tasks(client: Caller) -> None:
    home = "project:bridge"
    goal_id = client.store_goal("Build a bridge", 0.7, "2027-01-01", namespace=home)["goal_id"]
    assert client.update_goal(goal_id, progress=0.5)["version"] == 2
    client.save_task("Survey the river", "survey", goal_id, "field", namespace=home)
    step = client.save_step("survey", 1, "measure", {"at": "ford"}, "x" * 30_000, namespace=home)
    assert step["truncated"] is True
    assert client.set_task_phase("survey", "requirements", namespace=home)["version"] == 2
    client.update_task_status("survey", "completed", "It is 40 m wide.", namespace=home)
    task = client.get_task("survey", namespace=home)
    assert (task["task"]["steps"], task["task"]["task_status"]) == (1, "completed")
    assert client.list_steps("survey", namespace=home)["steps"] == task["recent_steps"]
    assert client.tasks_for_goal(goal_id)["tasks"] == [task["task"]]
    assert client.get_goal(goal_id)["tasks"] == {"completed": 1}
    assert client.active_goals(namespace=home)["goals"][0]["progress"] == 0.5
    [summary] = client.recent_summaries(3, 2000, namespace=home)["summaries"]
    assert (summary["summary"], summary["truncated"]) == ("It is 40 m wide.", False)


def use_names(client: Caller) -> None:
    home = "user:carol"
    client.save_agent_state("surveyor", {"station": 4}, namespace=home)
    assert client.get_agent_state("surveyor", namespace=home)["state"] == {"station": 4}
    client.save_preference("units", "metric", namespace=home, confidence=0.9)
    preference = client.get_preference("units", namespace=home)["preference"]
    assert (preference["value"], preference["confidence"]) == ("metric", 0.9)
    assert client.list_preferences("un", namespace=home)["preferences"] == [preference]
    client.save_persona("guide", {"tone": "calm"}, namespace=home)
    assert client.get_persona("guide", namespace=home)["state"] == {"tone": "calm"}


def use_decisions(client: Caller) -> None:
    home = "project:shop"
    client.set_task_id("orders")
    logged = client.log_decision(
        "Which database keeps the orders?",
        ["a file", "PostgreSQL"],
        "PostgreSQL",
        "many write it",
        0.8,
        namespace=home,
    )
    client.set_task_id(None)
    decision_id = logged["decision_id"]
    assert client.record_outcome(decision_id, "no order was lost", True)["version"] == 2
    decision = client.get_decision(decision_id)["decision"]
    assert (decision["task_id"], decision["decided_by"]) == ("orders", "planner")
    assert (decision["outcome"], decision["success"]) == ("no order was lost", True)
    [similar] = client.find_similar_decisions("Which database keeps the bills?", 3)["decisions"]
    assert (similar["id"], similar["choice"]) == (decision_id, "PostgreSQL")
    assert client.list_decisions("orders")["decisions"][0]["id"] == decision_id


def use_learning(client: Caller) -> None:
    home = "project:learning"
    client.save_task("Deploy the shop", "T-1", namespace=home)
    for success, summary in ((True, "Took a backup first"), (False, "Skipped the backup")):
        stored = client.store_execution("T-1", summary, success, ["late"], namespace=home)
    [pattern_id] = stored["patterns"]
    [nearest] = client.search_similar("Deploy the shop", 1, 0.7, True, namespace=home)["results"]
    assert (nearest["execution_summary"], nearest["reuse_count"]) == ("Took a backup first", 1)
    extracted = client.extract_pattern("general", namespace=home)
    assert (extracted["examined"], extracted["created"]) == (2, 0)
    [pattern] = client.search_patterns("^gen", "mixed", namespace=home)["patterns"]
    assert "took a backup first" in pattern["success_indicators"]
    found = client.find_pattern("Deploy the shop again", namespace=home)["pattern"]
    assert found is not None
    assert found["id"] == pattern_id == pattern["id"]
    rated = client.pattern_feedback(pattern_id, True)
    assert (rated["confidence"], rated["usage_count"]) == (pytest.approx(0.6), 1)
    context = client.task_context("T-1", namespace=home)
    assert (len(context["executions"]), len(context["patterns"])) == (2, 1)


def use_operational(client: Caller) -> None:
    client.push_event("build", {"ok": True}, namespace="project:garden")
    critical = client.push_event("outage", "the pump", True, namespace="project:garden")
    assert client.get_memory(critical["memory_id"])["memory"]["collection"] == "events"
    recent = client.recent_events(5, "outage", namespace="project:garden")
    assert [event["id"] for event in recent["events"]] == [critical["event_id"]]
    client.update_metric("water_l", 12.5, namespace="project:garden")
    [metric] = client.get_metrics(["water_l"], namespace="project:garden")["metrics"]
    assert metric["value"] == 12.5
    assert client.set_active_task("dig", {"depth_cm": 4}, namespace="project:garden")["active"]
    [active] = client.active_tasks(5, namespace="project:garden")["tasks"]
    assert (active["task_id"], active["state"]) == ("dig", {"depth_cm": 4})
    snapshot = client.system_snapshot(namespace="project:garden")
    assert snapshot["events"]["by_category"] == {"build": 1, "outage": 1}
    assert (snapshot["kept_in"], len(snapshot["active_tasks"])) == ("process", 1)


def use_jobs(client: Caller) -> None:
    lease = client.acquire_lease("scheduler", "clockwork", 60.0)
    assert lease["acquired"]
    client.set_fence("scheduler", lease["token"])
    job = {"name": "decay", "description": "Lets fade.", "enabled": True, "schedule": "@hourly"}
    assert client.announce_jobs([job])["jobs"] == 1
    run_id = client.request_job("decay", dry_run=True)["job_run_id"]
    assert client.begin_job("decay", job_run_id=run_id)["begun"]
    assert client.report_job(run_id, {"step": 1})["run"]["progress"] == {"step": 1}
    assert client.list_jobs()["scheduler"]["holder"] == "clockwork"
    ended = client.finish_job(run_id, "done", counts={"archived": 1})["run"]
    assert client.get_job_run(run_id)["run"] == ended
    assert client.job_history("decay")["runs"] == [ended]
    assert client.renew_lease("scheduler", "clockwork", lease["token"])["holder"] == "clockwork"
    client.clear_fence()
    assert client.release_lease("scheduler", "clockwork", lease["token"])["released"]
    client.set_fence("scheduler", lease["token"])
    with pytest.raises(errors.LeaseLost):
        client.add_memory("too late")
    client.clear_fence()


def use_longterm(client: Caller) -> None:
    home = "project:shop"
    stored = client.store_procedure(
        "refund", ["find the order"], "For goods sent back", namespace=home
    )
    assert (stored["collection"], stored["created"]) == ("procedures", True)
    procedure = client.get_procedure("refund", namespace=home)["procedure"]
    assert procedure["steps"] == ["find the order"]
    incident = client.store_incident("Refunds were paid twice", severity="high", namespace=home)
    resolved = client.resolve_incident(incident["memory_id"], "Each order is locked", "A race")
    assert (resolved["version"], resolved["created"]) == (2, False)
    client.record_config_change("refunds", "days", 30, 60, "Christmas", namespace=home)
    [change] = client.config_history("refunds", "days")["changes"]
    assert (change["old_value"], change["new_value"], change["changed_by"]) == (30, 60, "planner")
    client.store_knowledge("Refunds", "They are paid within a week", namespace=home)
    found = client.semantic_search("refunds", 9, collections=["incidents", "knowledge"])["results"]
    assert {result["collection"] for result in found} == {"incidents", "knowledge"}


def use_context(client: Caller) -> None:
    client.add_memory("The kettle boils at noon", memory_tier="long", namespace="project:tea")
    given = client.assemble_context("Boil the kettle", 300, ["longterm"], namespace="project:tea")
    assert [chunk["text"] for chunk in given["chunks"]] == ["The kettle boils at noon"]
    assert given["chunks"][0]["text"] in given["context"]
    assert 0 < given["tokens"] <= 300
    again = client.replay_context(given["receipt_id"])
    assert (again["context"], again["complete"]) == (given["context"], True)


def use_memories(client: Caller, tmp_path: Path) -> None:
    before = client.stats()["memories"]["total"]
    session_id = client.create_session("alice", "conversation", {"channel": "cli"})["session_id"]
    client.set_session_id(session_id)
    assert client.ping()["ready"] is True

    tea = client.add_memory(
        "Anna prefers green tea", "semantic", "long", 0.9, {"by": "Anna"}, ["tea"]
    )
    tea_id = tea["memory_id"]
    batch = client.batch_add_memories(
        [
            {"content": "Tea is in the left cupboard", "parent_id": tea_id, "tags": ["kitchen"]},
            {"content": "Coffee is in the right cupboard", "tags": ["kitchen"]},
        ]
    )
    cupboard_id, coffee_id = batch["memory_ids"]

    memory = client.get_memory(tea_id, min_seq=tea["seq"])["memory"]
    assert memory["created_by"] == "planner"
    assert memory["session_id"] == session_id
    fetched = client.batch_get_memories([cupboard_id, coffee_id])["memories"]
    assert [m["id"] for m in fetched] == [cupboard_id, coffee_id]

    assert client.search_memory("cupboard", limit=1)["count"] == 1
    hits = client.search_memory("cupboard", None, 10, tea_id)["results"]
    assert [hit["id"] for hit in hits] == [cupboard_id]
    near = client.semantic_search("Where is the coffee cupboard?", 1, {"tags": "kitchen"})
    assert near["results"][0]["id"] == coffee_id
    recalled = client.recall("Where is the coffee cupboard?", 1, {"tags": "kitchen"}, explain=True)
    assert recalled["results"][0]["id"] == coffee_id
    assert recalled["results"][0]["explanation"]["semantic"] > 0

    assert client.update_memory(tea_id, {"content": "Anna prefers black tea"})["version"] == 2
    assert client.history(tea_id)["count"] == 2
    assert [m["id"] for m in client.get_children(tea_id)["memories"]] == [cupboard_id]
    assert client.list_memories(namespace="app:default")["count"] == 3
    important = {"importance": {"gte": 0.8}}
    assert client.count(namespace="app:default", filters=important)["count"] == 1
    assert client.reinforce_memory(tea_id)["strength"] == pytest.approx(1.0)

    client.add_relationship(coffee_id, tea_id, "alternative_to", 0.5)
    related = client.get_related_memories(tea_id, "alternative_to")["related"]
    assert [(r["memory"]["id"], r["direction"]) for r in related] == [(coffee_id, "in")]
    group_id = client.create_context_group("kitchen", "where things are")["group_id"]
    client.add_to_group(coffee_id, group_id)
    assert client.get_memories_by_group(group_id)["count"] == 1

    assert set(client.delete_memory(tea_id)["deleted_ids"]) == {tea_id, cupboard_id}
    with pytest.raises(errors.NotFound):
        client.get_memory(tea_id)
    assert client.restore(tea_id)["version"] == 4
    assert client.purge(coffee_id)["purged"] == 1

    client.report_errors("planner", [{"code": "timeout", "message": "slow", "count": 2}])
    assert client.recent_errors(source="planner")["errors"][0]["count"] == 2
    assert client.stats()["memories"]["total"] == before + 1
    assert client.analytics(days=7)["growth"][-1]["created"] >= before + 1
    assert client.metrics()["requests"]["by_operation"]["stats"]["count"] == 2
    assert client.reembed("hashed", "hashed", 64)["state"] == "running"
    assert client.fade_memories(dry_run=True)["complete"]
    assert client.apply_retention(deleted_days=30, archived_days=365)["purged_deleted"] == 0
    assert client.trim_answers()["answers"] == 0
    assert client.trim_journal(1.0, limit=10, dry_run=True)["removed"] == 0
    assert client.backfill_embeddings()["waiting"] == 0
    assert client.maintain_index(dry_run=True)["segments"] >= 0
    assert client.check_index()["agrees"]
    assert client.optimise_storage()["complete"]
    assert client.check_integrity()["sound"]
    page = client.export_records(limit=3)
    assert [record["kind"] for record in page["records"]] == ["memory"] * 3
    again = client.import_records(page["records"])
    assert (again["present"], again["problems"]) == (3, [])
    kept = client.keep_backup(keep=2)
    assert (kept["removed"], Path(kept["path"]).parent.name) == (0, "backups")
    backup = client.backup(str(tmp_path / "backup"))
    sizes = [path.stat().st_size for path in Path(backup["path"]).iterdir()]
    assert len(sizes) == 2 and backup["bytes"] in sizes
