"""No operation stores a secret, where these are not wanted; generated over all that write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from recollect.config.settings import DocumentsSettings, EmbeddingSettings, Settings, TrustSettings
from recollect.protocol import errors
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation, fields_of
from recollect.protocol.operations import REGISTRY
from tests.contract.test_audit import HOME, RECORDS, WRITES, Aims, Records
from tests.harness.worlds import World

SECRET = "sk-proj-" + "q7Zk2Vw9Xb4Lm1Rt" * 3
PASSWORD = "xyzzy-plugh-plover"  # known for one by the name before it alone
MARKS = (SECRET, PASSWORD, "q7Zk2Vw9")

# How to make one of every operation that writes, beside those of the audit's table.
OTHERS: dict[str, Any] = {
    "archive_session": lambda a: ops.ArchiveSession(a.session),
    "squash_versions": lambda a: ops.SquashVersions(HOME, 90.0, "episodic"),
    "index_document": lambda a: ops.IndexDocument(
        text="# Title\n\nSome text.", source="notes.md", namespace=HOME
    ),
    "sync_documents": lambda a: ops.SyncDocuments("/nowhere", HOME),
    "delete_document": lambda a: ops.DeleteDocument("x"),
    "consolidate": lambda a: ops.Consolidate(HOME, "keep_latest"),
    "undo": lambda a: ops.Undo("x"),
    "forget_source": lambda a: ops.ForgetSource("somebody"),
    "create_identity": lambda a: ops.CreateIdentity("carol"),
    "grant_access": lambda a: ops.GrantAccess("carol", HOME, "read"),
    "create_bearer_key": lambda a: ops.CreateBearerKey("carol", "7f" * 32, "the laptop"),
    "revoke_bearer_key": lambda a: ops.RevokeBearerKey("carol", "7f" * 6),
    "revoke_access": lambda a: ops.RevokeAccess("carol"),
    "backup": lambda a: ops.Backup("/nonexistent/backup"),
    "reembed": lambda a: ops.Reembed("hashed", "hashed", 32),
    "report_errors": lambda a: ops.ReportErrors("bob", [ops.ErrorReport("timeout", "slow")]),
    "verify_audit": lambda a: ops.VerifyAudit(),
    "list_identities": lambda a: ops.ListIdentities(),
    "recent_errors": lambda a: ops.RecentErrors(),
    "stats": lambda a: ops.Stats(),
    "analytics": lambda a: ops.Analytics(),
    "update_metric": lambda a: ops.UpdateMetric("oven", 220.0, namespace=HOME),
    "set_active_task": lambda a: ops.SetActiveTask("bake", {"loaf": 1}, namespace=HOME),
    "extract_pattern": lambda a: ops.ExtractPattern("general", namespace=HOME),
    "migrate": lambda a: ops.Migrate(HOME, "working"),
    "fade_memories": lambda a: ops.FadeMemories(HOME),
    "apply_retention": lambda a: ops.ApplyRetention(),
    "trim_journal": lambda a: ops.TrimJournal(36_500.0),
    "trim_answers": lambda a: ops.TrimAnswers(),
    "keep_backup": lambda a: ops.KeepBackup(),
    "backfill_embeddings": lambda a: ops.BackfillEmbeddings(),
    "maintain_index": lambda a: ops.MaintainIndex(),
    "check_index": lambda a: ops.CheckIndex(),
    "metrics": lambda a: ops.Metrics(),
    "list_jobs": lambda a: ops.ListJobs(),
    "request_job": lambda a: ops.RequestJob("decay"),
    "get_job_run": lambda a: ops.GetJobRun("none"),
    "job_history": lambda a: ops.JobHistory(),
    "acquire_lease": lambda a: ops.AcquireLease("tried", "somebody"),
    "renew_lease": lambda a: ops.RenewLease("tried", "somebody", 1),
    "release_lease": lambda a: ops.ReleaseLease("tried", "somebody", 1),
    "optimise_storage": lambda a: ops.OptimiseStorage(),
    "check_integrity": lambda a: ops.CheckIntegrity(),
    "export_records": lambda a: ops.ExportRecords(namespace=HOME),
    "import_records": lambda a: ops.ImportRecords([{"kind": "group"}]),
}
MAKERS = {name: make for name, (make, _) in WRITES.items()} | OTHERS
PROSE = (
    *("content", "value", "metadata", "event", "state_delta", "text", "description", "summary"),
    *("reason", "context", "choice", "reasoning", "outcome", "cause", "resolution"),
    *("execution_summary", "task_description"),
)
LOGIN = {"login": {"password": PASSWORD}}


def injected(kind: str) -> list[Any]:
    """What to put into a field of a type so that it holds a secret."""
    if "list[dict" in kind:
        return [
            [{"content": f"see {SECRET}"}],
            [{"content": "x", "metadata": {"n": SECRET}, "tags": [SECRET], "value": LOGIN}],
            [{"content": "x", "key": SECRET}],
            [{"content": "x", "source": SECRET}, {"content": "harmless"}],
        ]
    if "ErrorReport" in kind:
        return [[{"code": "c", "message": f"with {SECRET}", "context": {"x": SECRET}}]]
    if "list[str" in kind:
        return [["harmless", SECRET]]
    if "dict[" in kind:
        return [{"note": f"see {SECRET}"}, {"a": [{"b": SECRET}]}, {SECRET: 1}, LOGIN]
    if "Any" in kind:
        return [SECRET, f"see {SECRET}", {"a": [SECRET]}, LOGIN]
    return [SECRET, f"see {SECRET}"] if "str" in kind else []


PATCHES = [
    {"content": f"see {SECRET}"},
    {"metadata": {"n": SECRET}},
    {"metadata_patch": {"n": LOGIN}},
    {"tags": [SECRET]},
    {"value": LOGIN},
    {"source": SECRET},
]


def bodies(operation: Operation[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The operation with a secret in each place where it can hold one; and what place that is."""
    whole = msgspec.to_builtins(operation)
    for field in fields_of(type(operation)):
        given = PATCHES if field.name == "update_payload" else injected(repr(field.type))
        for value in given:
            yield field.name, {**whole, field.name: value}
        if field.name == "text":
            yield "text", {**whole, "text": f"# About {SECRET}\n\nAnd password = {PASSWORD!r}."}


@pytest.fixture(params=["mask", "refuse"])
def guarded(request: pytest.FixtureRequest, storage_url: str, tmp_path: Path) -> Iterator[World]:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), trust=TrustSettings(secrets=request.param)
    )
    world = World(storage_url, tmp_path / "data", settings)
    yield world
    world.close()


def everything(world: World) -> str:
    """All rows of all tables."""
    sqlite = world.storage.inline_reads
    names = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'memories_fts%'"
        if sqlite
        else "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )

    async def read() -> str:
        await world.storage.write(lambda transaction: None)
        return await world.storage.read(
            lambda session: "\n".join(
                str(session.execute(f"SELECT * FROM {name}")) for (name,) in session.execute(names)
            )
        )

    return world.run(read())


def test_every_operation_that_writes_is_tried() -> None:
    writing = {name for name, op in REGISTRY.items() if op.spec.access in ("write", "admin")}
    # Only the holder of the scheduler's lease may say something of its jobs and their runs.
    fenced = {"announce_jobs", "begin_job", "report_job", "finish_job"}
    assert writing - fenced | {"report_errors"} == MAKERS.keys() | RECORDS.keys()


@pytest.mark.timeout(120)
def test_no_operation_stores_or_repeats_a_secret(
    guarded: World, capfd: pytest.CaptureFixture[str]
) -> None:
    aims = Aims(guarded)
    records = Records(guarded)
    tried = [(name, make(aims)) for name, make in MAKERS.items()]
    tried += [(name, make(records)) for name, (make, _) in RECORDS.items()]
    masks = guarded.settings.trust.secrets == "mask"
    stored = 0
    for name, operation in tried:
        for field, body in bodies(operation):
            answer = guarded.send(name, msgspec.msgpack.encode(body))
            case = f"{name}.{field}: {str(answer)[:300]}"
            assert not any(mark in str(answer) for mark in MARKS), case
            stored += answer["status"] == "success" and masks
            named = isinstance(body[field], dict) and SECRET in body[field]
            if field in PROSE and not named:
                assert masks == (answer["status"] == "success"), case
    for mark in MARKS:
        assert mark not in everything(guarded)
    said = capfd.readouterr()
    assert not any(mark in said.out + said.err for mark in MARKS)
    assert (stored > 20) == masks
    assert ("[masked OpenAI key]" in everything(guarded)) == masks


def test_a_refusal_says_where_and_what_and_nothing_is_stored(guarded: World) -> None:
    if guarded.settings.trust.secrets == "mask":
        pytest.skip("it masks")
    with pytest.raises(errors.SecretRefused) as caught:
        guarded(ops.AddMemory("x", metadata={"db": {"note": f"use {SECRET}"}}))
    assert caught.value.details == {"field": "metadata.db.note", "kind": "OpenAI key"}
    assert guarded(ops.Count(include_deleted=True))["count"] == 0
    batch = guarded(ops.BatchAddMemories([{"content": SECRET}, {"content": "harmless"}]))
    assert (batch["stored"], batch["failed"]) == (1, 1)
    assert batch["results"][0]["error"]["code"] == "secret_refused"
    body = msgspec.msgpack.encode(ops.AddMemory("x"))
    for name in ("agent", "session", "trace", "task", "key"):
        said: Any = {name: SECRET}
        answer = guarded.send("add_memory", body, **said)
        assert answer["error"]["details"] == {"field": name, "kind": "OpenAI key"}


def test_what_is_masked_is_stored_searched_and_answered_alike(guarded: World) -> None:
    if guarded.settings.trust.secrets == "refuse":
        pytest.skip("it refuses")
    operation = ops.AddMemory(f"The staging key is {SECRET} for now", value=LOGIN)
    added = guarded(operation, key="once")
    memory = guarded(ops.GetMemory(added["memory_id"]))["memory"]
    assert memory["content"] == "The staging key is [masked OpenAI key] for now"
    assert memory["value"] == {"login": {"password": "[masked password]"}}
    assert guarded(operation, key="once") == added
    guarded(ops.UpdateMemory(added["memory_id"], {"content": f"Now it is {SECRET}"}))
    assert "masked" in guarded(ops.GetMemory(added["memory_id"]))["memory"]["content"]
    guarded(ops.Put(HOME, "login", LOGIN))
    by_key = guarded(ops.GetByKey(HOME, "login"))["memory"]
    assert PASSWORD not in str(by_key) and "[masked password]" in by_key["content"]
    # What is asked for is not stored, and may be anything.
    found = guarded(ops.SemanticSearch(f"What is {SECRET}?", 5))
    assert found["count"] == 2
    for asked in (ops.GetTask, ops.GetPreference, ops.GetAgentState, ops.GetPersona):
        with pytest.raises(errors.NotFound) as absent:
            guarded(asked(SECRET))
        assert SECRET not in str(absent.value)
    with pytest.raises(errors.SecretRefused, match="key"):
        guarded(ops.AddMemory("x", key=SECRET))


def test_a_value_is_judged_by_the_key_that_it_is_under(guarded: World) -> None:
    """Under a key of its own as much as within an object."""
    session = guarded(ops.CreateSession("anna"))["session_id"]
    memory = guarded(ops.Put(HOME, "db_password", 0))["memory_id"]
    writes: list[Operation[Any]] = [
        ops.CreateSession("anna", state={"password": PASSWORD}),
        ops.AppendEvent(session, "x", {"session:password": PASSWORD}),
        ops.SetState(session, {"user:db_password": PASSWORD, "app:password": PASSWORD}),
        ops.SetState(session, {"temp:password": PASSWORD}),
        ops.Put(HOME, "password", PASSWORD),
        ops.AddMemory("x", key="passphrase", value=PASSWORD, namespace=HOME),
        ops.UpdateByKey(HOME, "db_password", PASSWORD),
        ops.UpdateMemory(memory, {"value": PASSWORD}),
        ops.BatchAddMemories([{"content": "y", "key": "passwd", "value": PASSWORD}]),
    ]
    masks = guarded.settings.trust.secrets == "mask"
    for operation in writes:
        answer = guarded.send(operation.spec.name, msgspec.msgpack.encode(operation))
        assert PASSWORD not in str(answer)
        refused = "secret_refused" in str(answer)
        assert refused != masks, operation
    assert PASSWORD not in everything(guarded)
    assert PASSWORD not in str(guarded(ops.GetState(session))["state"])
    assert ("[masked password]" in everything(guarded)) == masks


@pytest.mark.parametrize("mode", ["mask", "refuse"])
def test_a_file_with_a_secret_is_stored_without_it_or_not_at_all(
    mode: Literal["mask", "refuse"], storage_url: str, tmp_path: Path
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "notes.md").write_text(f"# How to deploy\n\nUse {SECRET} for it.\n")
    (root / "title.md").write_text(f"# About {SECRET}\n\nNothing else.\n")
    (root / f"{SECRET}.md").write_text("# Named\n\nBy a secret.\n")
    (root / f"of {SECRET}").mkdir()
    (root / f"of {SECRET}" / "below.md").write_text("# Below\n\nA secret.\n")
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"),
        trust=TrustSettings(secrets=mode),
        documents=DocumentsSettings(roots=(str(root),)),
    )
    world = World(storage_url, tmp_path / "data", settings)
    try:
        syncing = msgspec.msgpack.encode(ops.SyncDocuments(str(root), HOME))
        answer = world.send("sync_documents", syncing)
        assert not any(mark in str(answer) for mark in MARKS)
        assert not any(mark in everything(world) for mark in MARKS)
        assert ("[masked OpenAI key]" in everything(world)) == (mode == "mask")
    finally:
        world.close()


def test_it_is_off_unless_asked_for(world: World) -> None:
    added = world(ops.AddMemory(f"The key is {SECRET}"))
    assert SECRET in world(ops.GetMemory(added["memory_id"]))["memory"]["content"]
