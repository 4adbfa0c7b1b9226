"""Every operation, aimed at what somebody else owns; and the same aimed at what is not there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation
from tests.harness.worlds import World

MARKER = "quixotic-zebra"
"""In everything that the owner writes; nobody else may ever be sent it."""


def identity(name: str, *grants: tuple[str, str]) -> Identity:
    """Somebody with some grants."""
    return Identity(name, Grants(tuple(Grant(p, a) for p, a in grants)))  # type: ignore[arg-type]


class Aim(msgspec.Struct, frozen=True):
    """What an operation is aimed at."""

    namespace: str
    key: str
    memory_id: str
    child_id: str
    session_id: str
    user_id: str
    group_id: str
    document_id: str
    run_id: str
    source: str
    goal_id: str
    task_id: str
    decision_id: str
    incident_id: str
    receipt_id: str
    execution_id: str
    pattern_id: str


ABSENT = Aim(
    namespace="user:absentee",
    key="no-such-key",
    memory_id="0" * 26,
    child_id="1" * 26,
    session_id="2" * 26,
    user_id="absentee",
    group_id="3" * 26,
    document_id="4" * 26,
    run_id="5" * 26,
    source="an absent source",
    goal_id="a" * 26,
    task_id="no-such-task",
    decision_id="6" * 26,
    incident_id="7" * 26,
    receipt_id="8" * 26,
    execution_id="9" * 26,
    pattern_id="A" * 26,
)


def furnish(world: World, namespace: str, user_id: str, owner: Identity) -> Aim:
    """Fill a namespace with one of everything; all of it holds the marker."""

    def call(operation: Operation[Any]) -> Any:
        return world(operation, owner, agent=f"{user_id}-agent")

    session_id = call(ops.CreateSession(user_id, session_metadata={"note": MARKER}))["session_id"]
    call(ops.AppendEvent(session_id, {"said": MARKER}, {"topic": MARKER}))
    memory_id = call(
        ops.AddMemory(
            f"The {MARKER} prefers tea.",
            metadata={"note": MARKER},
            tags=[MARKER],
            namespace=namespace,
            source=f"{MARKER} source",
        )
    )["memory_id"]
    child_id = call(
        ops.AddMemory(f"Its {MARKER} cup is blue.", parent_id=memory_id, namespace=namespace)
    )["memory_id"]
    call(ops.UpdateMemory(memory_id, {"content": f"The {MARKER} prefers green tea."}))
    call(ops.AddRelationship(memory_id, child_id, "has"))
    call(ops.Put(namespace, "drink", {"what": MARKER}))
    call(ops.Put(namespace, "drink", {"what": f"{MARKER} twice"}))
    group_id = call(ops.CreateContextGroup(MARKER, namespace=namespace))["group_id"]
    call(ops.AddToGroup(memory_id, group_id))
    document = call(
        ops.IndexDocument(
            text=f"# {MARKER}\n\nA text about the {MARKER}.",
            source="notes.md",
            title=MARKER,
            document_type="markdown",
            namespace=namespace,
        )
    )["document"]
    call(ops.PushEvent("outage", {"what": MARKER}, namespace=namespace))
    call(ops.PushEvent("outage", {"what": MARKER}, True, namespace=namespace))
    call(ops.UpdateMetric(f"{MARKER}-queue", MARKER, namespace=namespace))
    call(ops.SetActiveTask(f"{MARKER}-task", {"doing": MARKER}, namespace=namespace))
    twins = [
        call(ops.AddMemory(f"The {MARKER} sleeps in the barn", namespace=namespace))["memory_id"]
        for _ in range(2)
    ]
    run = call(ops.Consolidate(namespace, "keep_latest"))
    assert run["archived"], f"{twins} were not seen as duplicates"
    goal_id = call(ops.StoreGoal(f"Tame the {MARKER}", namespace=namespace))["goal_id"]
    task_id = "grooming"
    call(ops.SaveTask(f"Brush the {MARKER}", task_id, goal_id, namespace=namespace))
    call(ops.SaveStep(task_id, 1, "brush", {"who": MARKER}, MARKER, namespace=namespace))
    call(ops.UpdateTaskStatus(task_id, "completed", f"The {MARKER} shines", namespace=namespace))
    call(ops.SavePreference("hay", MARKER, namespace=namespace))
    call(ops.SaveAgentState("rider", {"rides": MARKER}, namespace=namespace))
    call(ops.SavePersona("jockey", {"loves": MARKER}, namespace=namespace))
    decision_id = call(
        ops.LogDecision(
            f"Where does the {MARKER} sleep?",
            [MARKER],
            MARKER,
            MARKER,
            task_id="stable",
            namespace=namespace,
        )
    )["decision_id"]
    call(ops.StoreProcedure("saddling", [f"Catch the {MARKER}"], namespace=namespace))
    receipt_id = call(ops.AssembleContext(f"Feed the {MARKER}", namespace=namespace))["receipt_id"]
    incident_id = call(ops.StoreIncident(f"The {MARKER} ran away", namespace=namespace))[
        "memory_id"
    ]
    call(ops.RecordConfigChange("stable", "doors", MARKER, 2, namespace=namespace))
    call(ops.StoreKnowledge("stripes", f"The {MARKER} has many", namespace=namespace))
    for error in (MARKER, f"{MARKER} again"):
        tried = call(
            ops.StoreExecution(
                task_id,
                f"The {MARKER} shied",
                False,
                [error],
                task_description=f"Shoe the {MARKER}",
                namespace=namespace,
            )
        )
    [pattern_id] = tried["patterns"]
    return Aim(
        namespace=namespace,
        key="drink",
        memory_id=memory_id,
        child_id=child_id,
        session_id=session_id,
        user_id=user_id,
        group_id=group_id,
        document_id=document["id"],
        run_id=run["run_id"],
        source=f"{MARKER} source",
        goal_id=goal_id,
        task_id=task_id,
        decision_id=decision_id,
        incident_id=incident_id,
        receipt_id=receipt_id,
        execution_id=tried["execution_id"],
        pattern_id=pattern_id,
    )


Make = Callable[[Aim], Operation[Any]]

AIMED: dict[str, list[Make]] = {
    "add_memory": [
        lambda a: ops.AddMemory("An intruder was here", namespace=a.namespace),
        lambda a: ops.AddMemory("An intruder", namespace="user:bob", parent_id=a.memory_id),
        lambda a: ops.AddMemory("An intruder", namespace=a.namespace, key=a.key),
    ],
    "get_memory": [
        lambda a: ops.GetMemory(a.memory_id),
        lambda a: ops.GetMemory(a.memory_id, version=1),
        lambda a: ops.GetMemory(a.memory_id, include_deleted=True),
        lambda a: ops.GetMemory(a.memory_id, as_of="2100-01-01"),
    ],
    "update_memory": [
        lambda a: ops.UpdateMemory(a.memory_id, {"content": "An intruder was here"}),
        lambda a: ops.UpdateMemory(a.memory_id, {"importance": 1.0}, expected_version=2),
    ],
    "delete_memory": [
        lambda a: ops.DeleteMemory(a.memory_id),
        lambda a: ops.DeleteMemory(a.child_id, cascade=False),
    ],
    "restore": [lambda a: ops.Restore(a.memory_id, 1)],
    "history": [lambda a: ops.History(a.memory_id)],
    "purge": [lambda a: ops.Purge(a.memory_id), lambda a: ops.Purge(a.memory_id, cascade=True)],
    "reinforce_memory": [lambda a: ops.ReinforceMemory(a.memory_id)],
    "get_children": [lambda a: ops.GetChildren(a.memory_id)],
    "list_memories": [
        lambda a: ops.ListMemories(),
        lambda a: ops.ListMemories(namespace=a.namespace),
        lambda a: ops.ListMemories(include_deleted=True, include_archived=True),
        lambda a: ops.ListMemories(filters={"id": a.memory_id}),
        lambda a: ops.ListMemories(filters={"OR": [{"id": a.memory_id}, {"trust": {"gte": 0}}]}),
    ],
    "count": [
        lambda a: ops.Count(),
        lambda a: ops.Count(namespace=a.namespace),
        lambda a: ops.Count(filters={"id": a.memory_id}),
    ],
    "batch_add_memories": [
        lambda a: ops.BatchAddMemories([{"content": "An intruder", "namespace": a.namespace}]),
        lambda a: ops.BatchAddMemories([{"content": "An intruder"}], namespace=a.namespace),
        lambda a: ops.BatchAddMemories(
            [{"content": "An intruder", "namespace": a.namespace, "key": a.key}], atomic=True
        ),
        lambda a: ops.BatchAddMemories(
            [{"content": "An intruder", "parent_id": a.memory_id, "namespace": "user:bob"}],
            atomic=True,
        ),
    ],
    "batch_get_memories": [lambda a: ops.BatchGetMemories([a.memory_id, a.child_id])],
    "search_memory": [
        lambda a: ops.SearchMemory(MARKER),
        lambda a: ops.SearchMemory(MARKER, namespace=a.namespace),
        lambda a: ops.SearchMemory(MARKER, parent_id=a.memory_id),
        lambda a: ops.SearchMemory(MARKER, as_of="2100-01-01"),
    ],
    "semantic_search": [
        lambda a: ops.SemanticSearch(f"The {MARKER} prefers green tea.", 50),
        lambda a: ops.SemanticSearch(f"The {MARKER} tea", 50, namespace=a.namespace),
        lambda a: ops.SemanticSearch(MARKER, 50, {"id": a.memory_id}),
        lambda a: ops.SemanticSearch(MARKER, 50, collections=["decisions", "knowledge"]),
    ],
    "recall": [
        lambda a: ops.Recall(f"What does the {MARKER} prefer?", 50, neighbours=5, explain=True),
        lambda a: ops.Recall(f"What does {a.user_id}-agent say?", 50, namespace=a.namespace),
    ],
    "add_relationship": [
        lambda a: ops.AddRelationship(a.memory_id, a.child_id, "stolen"),
        lambda a: ops.AddRelationship(a.child_id, a.memory_id, "stolen"),
    ],
    "get_related_memories": [lambda a: ops.GetRelatedMemories(a.memory_id, depth=3)],
    "create_context_group": [lambda a: ops.CreateContextGroup("x", namespace=a.namespace)],
    "add_to_group": [lambda a: ops.AddToGroup(a.memory_id, a.group_id)],
    "get_memories_by_group": [lambda a: ops.GetMemoriesByGroup(a.group_id)],
    "create_session": [lambda a: ops.CreateSession(a.user_id)],
    "get_session": [lambda a: ops.GetSession(a.session_id)],
    "append_event": [
        lambda a: ops.AppendEvent(a.session_id, {"said": "intruder"}),
        lambda a: ops.AppendEvent(a.session_id, {"said": "intruder"}, {"user:x": 1}),
    ],
    "list_events": [lambda a: ops.ListEvents(a.session_id)],
    "update_status": [lambda a: ops.UpdateStatus(a.session_id, "paused")],
    "get_state": [lambda a: ops.GetState(a.session_id)],
    "set_state": [lambda a: ops.SetState(a.session_id, {"topic": "intruder", "temp:x": 1})],
    "list_sessions": [
        lambda a: ops.ListSessions(),
        lambda a: ops.ListSessions(a.user_id),
        lambda a: ops.ListSessions(None, "active"),
    ],
    "list_active_sessions": [
        lambda a: ops.ListActiveSessions(),
        lambda a: ops.ListActiveSessions(a.user_id),
    ],
    "terminate_session": [lambda a: ops.TerminateSession(a.session_id)],
    "archive_session": [lambda a: ops.ArchiveSession(a.session_id)],
    "delete_session": [lambda a: ops.DeleteSession(a.session_id)],
    "put": [
        lambda a: ops.Put(a.namespace, a.key, "intruder"),
        lambda a: ops.Put(a.namespace, a.key, "intruder", expected_version=0),
    ],
    "get_by_key": [
        lambda a: ops.GetByKey(a.namespace, a.key),
        lambda a: ops.GetByKey(a.namespace, a.key, 1),
        lambda a: ops.GetByKey(a.namespace, a.key, None, "2100-01-01"),
    ],
    "update_by_key": [lambda a: ops.UpdateByKey(a.namespace, a.key, "intruder")],
    "delete_by_key": [lambda a: ops.DeleteByKey(a.namespace, a.key)],
    "history_by_key": [lambda a: ops.HistoryByKey(a.namespace, a.key)],
    "restore_by_key": [lambda a: ops.RestoreByKey(a.namespace, a.key, 1)],
    "diff": [lambda a: ops.Diff(a.namespace, a.key, 1, 2)],
    "search_namespace": [
        lambda a: ops.SearchNamespace(a.namespace),
        lambda a: ops.SearchNamespace("user"),
    ],
    "list_namespaces": [
        lambda a: ops.ListNamespaces(),
        lambda a: ops.ListNamespaces("user"),
        lambda a: ops.ListNamespaces(a.namespace),
    ],
    "squash_versions": [lambda a: ops.SquashVersions(a.namespace, 0.0, "general")],
    "audit_log": [
        lambda a: ops.AuditLog(limit=1000),
        lambda a: ops.AuditLog(namespace=a.namespace),
        lambda a: ops.AuditLog(subject=a.memory_id),
    ],
    "read_changes": [
        lambda a: ops.ReadChanges(0, 1000),
        lambda a: ops.ReadChanges(0, 1000, namespace=a.namespace),
        lambda a: ops.ReadChanges(0, subject=a.memory_id),
        lambda a: ops.ReadChanges(wait_s=0.01, session_id=a.session_id),
    ],
    "verify_audit": [lambda a: ops.VerifyAudit()],
    "create_identity": [lambda a: ops.CreateIdentity("intruder")],
    "list_identities": [lambda a: ops.ListIdentities()],
    "grant_access": [lambda a: ops.GrantAccess("bob", a.namespace, "admin")],
    "revoke_access": [lambda a: ops.RevokeAccess("alice")],
    "create_bearer_key": [
        lambda a: ops.CreateBearerKey("alice", "5e" * 32),
        lambda a: ops.CreateBearerKey("bob", "5e" * 32, "for more than is mine"),
    ],
    "revoke_bearer_key": [lambda a: ops.RevokeBearerKey("alice", "5e" * 6)],
    "who_am_i": [lambda a: ops.WhoAmI()],
    "index_document": [
        lambda a: ops.IndexDocument(text="An intruder", source="notes.md", namespace=a.namespace)
    ],
    "sync_documents": [lambda a: ops.SyncDocuments(str(Path("nowhere")), a.namespace)],
    "list_documents": [
        lambda a: ops.ListDocuments(),
        lambda a: ops.ListDocuments(a.namespace),
    ],
    "delete_document": [lambda a: ops.DeleteDocument(a.document_id)],
    "search_documents": [
        lambda a: ops.SearchDocuments(MARKER, 50),
        lambda a: ops.SearchDocuments(MARKER, 50, namespace=a.namespace),
        lambda a: ops.SearchDocuments(MARKER, 50, document_id=a.document_id),
    ],
    "find_conflicts": [lambda a: ops.FindConflicts(a.namespace)],
    "consolidate": [
        lambda a: ops.Consolidate(a.namespace, "keep_latest"),
        lambda a: ops.Consolidate(a.namespace, "merge", dry_run=True),
    ],
    "undo": [lambda a: ops.Undo(a.run_id)],
    "get_run": [lambda a: ops.GetRun(a.run_id)],
    "list_runs": [lambda a: ops.ListRuns(), lambda a: ops.ListRuns(a.namespace)],
    "forget_source": [
        lambda a: ops.ForgetSource(a.source),
        lambda a: ops.ForgetSource(f"{a.user_id}-agent", True),
    ],
    "migrate": [
        lambda a: ops.Migrate(a.namespace, older_than_days=0),
        lambda a: ops.Migrate(older_than_days=0),
        lambda a: ops.Migrate(dry_run=True, older_than_days=0),
    ],
    "store_goal": [
        lambda a: ops.StoreGoal("An intruder was here", namespace=a.namespace),
        lambda a: ops.StoreGoal("Mine", parent_goal_id=a.goal_id, namespace="user:bob"),
    ],
    "update_goal": [
        lambda a: ops.UpdateGoal(a.goal_id, "abandoned"),
        lambda a: ops.UpdateGoal(a.goal_id, description="An intruder was here"),
    ],
    "get_goal": [lambda a: ops.GetGoal(a.goal_id)],
    "active_goals": [
        lambda a: ops.ActiveGoals(),
        lambda a: ops.ActiveGoals(namespace=a.namespace),
    ],
    "save_task": [
        lambda a: ops.SaveTask("An intruder was here", a.task_id, namespace=a.namespace),
        lambda a: ops.SaveTask("Mine", "mine", a.goal_id, namespace="user:bob"),
    ],
    "get_task": [lambda a: ops.GetTask(a.task_id, namespace=a.namespace)],
    "update_task_status": [
        lambda a: ops.UpdateTaskStatus(a.task_id, "failed", "intruder", namespace=a.namespace)
    ],
    "set_task_phase": [lambda a: ops.SetTaskPhase(a.task_id, "blocked", namespace=a.namespace)],
    "tasks_for_goal": [lambda a: ops.TasksForGoal(a.goal_id)],
    "save_step": [lambda a: ops.SaveStep(a.task_id, 1, "intrude", namespace=a.namespace)],
    "list_steps": [lambda a: ops.ListSteps(a.task_id, namespace=a.namespace)],
    "save_agent_state": [lambda a: ops.SaveAgentState("rider", {"x": 1}, namespace=a.namespace)],
    "get_agent_state": [lambda a: ops.GetAgentState("rider", namespace=a.namespace)],
    "save_preference": [lambda a: ops.SavePreference("hay", "intruder", namespace=a.namespace)],
    "get_preference": [lambda a: ops.GetPreference("hay", namespace=a.namespace)],
    "list_preferences": [
        lambda a: ops.ListPreferences(),
        lambda a: ops.ListPreferences("hay", namespace=a.namespace),
    ],
    "save_persona": [lambda a: ops.SavePersona("jockey", {"x": 1}, namespace=a.namespace)],
    "get_persona": [lambda a: ops.GetPersona("jockey", namespace=a.namespace)],
    "recent_summaries": [
        lambda a: ops.RecentSummaries(50),
        lambda a: ops.RecentSummaries(50, namespace=a.namespace),
    ],
    "log_decision": [
        lambda a: ops.LogDecision("An intruder?", [], "yes", namespace=a.namespace),
        lambda a: ops.LogDecision("In?", [], "yes", goal_id=a.memory_id, namespace="user:bob"),
    ],
    "record_outcome": [lambda a: ops.RecordOutcome(a.decision_id, "An intruder was here")],
    "get_decision": [lambda a: ops.GetDecision(a.decision_id)],
    "find_similar_decisions": [
        lambda a: ops.FindSimilarDecisions(f"Where does the {MARKER} sleep?", 50),
        lambda a: ops.FindSimilarDecisions(MARKER, 50, namespace=a.namespace),
    ],
    "list_decisions": [
        lambda a: ops.ListDecisions(),
        lambda a: ops.ListDecisions("stable"),
        lambda a: ops.ListDecisions(goal_id=a.memory_id),
        lambda a: ops.ListDecisions(namespace=a.namespace),
    ],
    "store_procedure": [
        lambda a: ops.StoreProcedure("saddling", ["intrude"], namespace=a.namespace)
    ],
    "get_procedure": [lambda a: ops.GetProcedure("saddling", namespace=a.namespace)],
    "store_incident": [lambda a: ops.StoreIncident("An intruder", namespace=a.namespace)],
    "resolve_incident": [lambda a: ops.ResolveIncident(a.incident_id, "An intruder was here")],
    "record_config_change": [
        lambda a: ops.RecordConfigChange("stable", "doors", 2, 0, namespace=a.namespace)
    ],
    "config_history": [
        lambda a: ops.ConfigHistory("stable"),
        lambda a: ops.ConfigHistory("stable", "doors", namespace=a.namespace),
    ],
    "store_execution": [
        lambda a: ops.StoreExecution(a.task_id, "An intruder was here", True, namespace=a.namespace)
    ],
    "search_similar": [
        lambda a: ops.SearchSimilar(f"Shoe the {MARKER}", 50, -1.0),
        lambda a: ops.SearchSimilar(MARKER, 50, -1.0, namespace=a.namespace),
    ],
    "extract_pattern": [
        lambda a: ops.ExtractPattern(namespace=a.namespace),
        lambda a: ops.ExtractPattern(namespace=a.namespace, dry_run=True),
        lambda a: ops.ExtractPattern(None, [a.execution_id], namespace="user:bob"),
    ],
    "search_patterns": [
        lambda a: ops.SearchPatterns(limit=50),
        lambda a: ops.SearchPatterns(".*", namespace=a.namespace),
    ],
    "find_pattern": [
        lambda a: ops.FindPattern(f"Shoe the {MARKER}", threshold=-1.0),
        lambda a: ops.FindPattern(MARKER, namespace=a.namespace, threshold=-1.0),
    ],
    "pattern_feedback": [lambda a: ops.PatternFeedback(a.pattern_id, False)],
    "task_context": [lambda a: ops.TaskContext(a.task_id, namespace=a.namespace)],
    "store_knowledge": [lambda a: ops.StoreKnowledge("stripes", "none", namespace=a.namespace)],
    "assemble_context": [
        lambda a: ops.AssembleContext(f"Feed the {MARKER}", namespace=a.namespace),
        lambda a: ops.AssembleContext(MARKER, namespace=a.namespace, task_id="stable"),
        # Without what is the caller's own, which is fenced in another way each time.
        lambda a: ops.AssembleContext(MARKER, 4000, ["working"], filters={"id": a.memory_id}),
    ],
    "replay_context": [lambda a: ops.ReplayContext(a.receipt_id)],
    "acquire_lease": [lambda a: ops.AcquireLease("scheduler", "intruder")],
    "renew_lease": [lambda a: ops.RenewLease("scheduler", "intruder", 1)],
    "release_lease": [lambda a: ops.ReleaseLease("scheduler", "intruder", 1)],
    "announce_jobs": [lambda a: ops.AnnounceJobs([])],
    "list_jobs": [lambda a: ops.ListJobs()],
    "request_job": [lambda a: ops.RequestJob("decay")],
    "begin_job": [lambda a: ops.BeginJob("decay", scheduled_at=1.0)],
    "report_job": [lambda a: ops.ReportJob(a.run_id, {"note": "An intruder was here"})],
    "finish_job": [lambda a: ops.FinishJob(a.run_id, "done")],
    "get_job_run": [lambda a: ops.GetJobRun(a.run_id)],
    "job_history": [lambda a: ops.JobHistory("decay")],
    "ping": [lambda a: ops.Ping()],
    "stats": [lambda a: ops.Stats()],
    "analytics": [lambda a: ops.Analytics(), lambda a: ops.Analytics(a.namespace)],
    "metrics": [lambda a: ops.Metrics()],
    "backup": [lambda a: ops.Backup("/nonexistent/backup")],
    "fade_memories": [lambda a: ops.FadeMemories(), lambda a: ops.FadeMemories(a.namespace)],
    "apply_retention": [lambda a: ops.ApplyRetention(deleted_days=0, archived_days=0)],
    "trim_journal": [
        lambda a: ops.TrimJournal(1.0),
        lambda a: ops.TrimJournal(1.0, dry_run=True),
    ],
    "trim_answers": [lambda a: ops.TrimAnswers()],
    "keep_backup": [lambda a: ops.KeepBackup()],
    "backfill_embeddings": [lambda a: ops.BackfillEmbeddings()],
    "maintain_index": [lambda a: ops.MaintainIndex()],
    "check_index": [lambda a: ops.CheckIndex()],
    "optimise_storage": [lambda a: ops.OptimiseStorage()],
    "check_integrity": [lambda a: ops.CheckIntegrity()],
    "export_records": [
        lambda a: ops.ExportRecords(),
        lambda a: ops.ExportRecords(namespace=a.namespace),
    ],
    "import_records": [
        *(
            lambda a, dry_run=dry_run: ops.ImportRecords(
                [
                    _memory(a.memory_id, a.namespace, None),
                    _memory("an-intruder", a.namespace, a.key),
                ],
                dry_run=dry_run,
            )
            for dry_run in (False, True)
        ),
        lambda a: ops.ImportRecords(
            [
                {
                    "kind": "relationship",
                    "source_id": a.memory_id,
                    "relationship_type": "seen by",
                    "target_id": a.child_id,
                    "strength": 1.0,
                    "created_us": 0,
                },
                {"kind": "versions", "memory_id": a.memory_id, "versions": []},
                {"kind": "members", "group_id": a.group_id, "memory_ids": [a.memory_id]},
                {
                    "kind": "evidence",
                    "pattern_id": a.pattern_id,
                    "execution_id": a.execution_id,
                },
                {
                    "kind": "session_event",
                    "session_id": a.session_id,
                    "position": 1,
                    "at_us": 0,
                    "event": "An intruder was here",
                },
            ]
        ),
        lambda a: ops.ImportRecords(
            [
                {
                    "kind": "session",
                    "id": a.session_id,
                    "user_id": a.user_id,
                    "app": "default",
                    "session_type": "intrusion",
                    "status": "active",
                    "version": 1,
                    "events": 0,
                    "created_us": 0,
                    "updated_us": 0,
                },
                {"kind": "state", "scope": "user", "owner": a.user_id, "key": "k", "value": 1},
                {
                    "kind": "group",
                    "id": a.group_id,
                    "namespace": a.namespace,
                    "name": "intruders",
                    "created_us": 0,
                },
            ]
        ),
    ],
    "reembed": [lambda a: ops.Reembed("hashed", "hashed", 32)],
    "push_event": [
        lambda a: ops.PushEvent("intrusion", "An intruder was here", namespace=a.namespace),
        lambda a: ops.PushEvent("intrusion", "An intruder", True, namespace=a.namespace),
    ],
    "recent_events": [
        lambda a: ops.RecentEvents(1000),
        lambda a: ops.RecentEvents(category="outage"),
        lambda a: ops.RecentEvents(namespace=a.namespace),
    ],
    "update_metric": [lambda a: ops.UpdateMetric("intruders", 1, namespace=a.namespace)],
    "get_metrics": [
        lambda a: ops.GetMetrics(),
        lambda a: ops.GetMetrics([f"{MARKER}-queue"], namespace=a.namespace),
    ],
    "set_active_task": [
        lambda a: ops.SetActiveTask("intrusion", {"by": "bob"}, namespace=a.namespace),
        lambda a: ops.SetActiveTask(f"{MARKER}-task", namespace=a.namespace),
    ],
    "active_tasks": [
        lambda a: ops.ActiveTasks(),
        lambda a: ops.ActiveTasks(namespace=a.namespace),
    ],
    "system_snapshot": [
        lambda a: ops.SystemSnapshot(events=1000),
        lambda a: ops.SystemSnapshot(namespace=a.namespace),
    ],
    "report_errors": [lambda a: ops.ReportErrors("bob", [ops.ErrorReport("timeout", "slow")])],
    "recent_errors": [lambda a: ops.RecentErrors()],
}
"""For every declared operation the ways in which it might reach what is not the caller's."""


def _memory(memory_id: str, namespace: str, key: str | None) -> dict[str, Any]:
    """A record of an export that somebody made up."""
    return {
        "kind": "memory",
        "id": memory_id,
        "namespace": namespace,
        "key": key,
        "collection": "memories",
        "version": 1,
        "memory_type": "general",
        "tier": "short",
        "content": "An intruder was here",
        "importance": 0.5,
        "trust": 1.0,
        "stability_s": 1.0,
        "access_count": 0,
        "last_access_us": 0,
        "fades_us": 0,
        "created_us": 0,
        "updated_us": 0,
        "operation": "add_memory",
    }


def answer(world: World, operation: Operation[Any], who: Identity, **envelope: Any) -> Any:
    """The whole answer, an error too."""
    body = msgspec.msgpack.encode(operation)
    return world.send(operation.spec.name, body, who, agent=f"{who.name}-agent", **envelope)


VOLATILE = frozenset(
    [
        "seq",
        "next_seq",
        "now",
        "uptime_s",
        "at",
        "created_at",
        "updated_at",
        "started_at",
        "ended_at",
        "run_id",
        "strength",
        "stability_s",
        "access_count",
        "last_accessed_at",
        "fades_at",
        "score",
        "explanation",
    ]
)
"""What differs between two answers to the same question."""


def settled(given: Any) -> Any:
    """An answer without what is volatile."""
    if isinstance(given, dict):
        return {key: settled(value) for key, value in given.items() if key not in VOLATILE}
    return [settled(item) for item in given] if isinstance(given, list) else given


def without_names(given: Any, aim: Aim) -> str:
    """An answer as text in which what was aimed at has no name: for comparing two of them."""
    text = msgspec.json.encode(settled(given)).decode()
    named = msgspec.structs.asdict(aim)
    for field in sorted(named, key=lambda field: -len(named[field])):
        # Whole names only: `alice` is not to be found in `alice2`, nor `user:alice` in
        # `user:alice:notes`.
        text = re.sub(rf"(?<![\w:]){re.escape(named[field])}(?!\w|:\w)", f"<{field}>", text)
    return text
