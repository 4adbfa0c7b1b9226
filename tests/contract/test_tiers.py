"""Memories move on from tier to tier, are summed up, and come back by an undo, on every storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.config.agents import TiersSettings
from recollect.config.settings import EmbeddingSettings, Settings
from recollect.config.sharing import TrustSettings
from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.consolidation import runs
from recollect.orchestrator.consolidation.running import DEAD_AFTER_S
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol import errors
from recollect.protocol import operations as ops
from tests.harness.worlds import World

HOME = "user:alice"
DAY_S = 86_400
DIED = "UPDATE runs SET status = 'running', ended_us = NULL, report = '{}' WHERE id = ?"
TRIP = (
    "Anna booked the train to Vienna. It was late.",
    "The train to Vienna leaves at nine. Bring a coat.",
    "Anna found a hotel near the station in Vienna.",
    "The hotel in Vienna serves breakfast until ten.",
    "Anna took the train back from Vienna on Sunday.",
)


def add(world: World, content: str, namespace: str = HOME, **given: Any) -> str:
    session = given.pop("session", None)
    operation = ops.AddMemory(content, namespace=namespace, **given)
    memory_id: str = world(operation, session=session)["memory_id"]
    return memory_id


def trip(world: World, namespace: str = HOME, **given: Any) -> list[str]:
    """Memories of one session in working memory."""
    user = namespace.split(":")[1]
    session = world(ops.CreateSession(user))["session_id"]
    given = {"memory_tier": "medium"} | given
    return [add(world, text, namespace, session=session, **given) for text in TRIP]


def memory(world: World, memory_id: str) -> dict[str, Any]:
    found: dict[str, Any] = world(ops.GetMemory(memory_id, include_deleted=True))["memory"]
    return found


def tiers(world: World, ids: list[str]) -> list[str]:
    return [memory(world, memory_id)["memory_tier"] for memory_id in ids]


def state(world: World) -> list[tuple[Any, ...]]:
    """All memories as they are, without what every change moves."""
    listed = world(ops.ListMemories(limit=500, include_deleted=True, include_archived=True))
    left_out = {"version", "seq", "updated_at", "updated_by", "strength"}
    return sorted(
        tuple(
            sorted(
                (k, f"{v:.6g}" if isinstance(v, float) else repr(v))
                for k, v in memory.items()
                if k not in left_out
            )
        )
        for memory in listed["memories"]
        if memory["deleted_at"] is None
    )


def identity(name: str, *grants: tuple[str, str]) -> Identity:
    return Identity(name, Grants(tuple(Grant(p, a) for p, a in grants)))  # type: ignore[arg-type]


def small(url: str, folder: Path, **given: Any) -> World:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), tiers=TiersSettings(**given)
    )
    return World(url, folder, settings)


def test_what_is_of_the_moment_moves_on_to_working_memory_when_it_is_old(world: World) -> None:
    old = add(world, "The lamp is on")
    kept = add(world, "The door is open", memory_tier="long")
    world.clock.advance(1.5 * DAY_S)
    new = add(world, "The lamp is off")
    done = world(ops.Migrate())
    assert (done["to_working"], done["to_longterm"], done["summarised"]) == (1, 0, 0)
    assert (done["examined"], done["complete"], done["resumed"]) == (1, True, False)
    assert tiers(world, [old, new, kept]) == ["medium", "short", "long"]
    # It fades as a memory of its tier does, and is a version like any other.
    assert memory(world, old)["stability_s"] > memory(world, new)["stability_s"]
    assert [v["operation"] for v in world(ops.History(old))["versions"]] == [
        "migrate",
        "add_memory",
    ]
    assert world(ops.Migrate())["run_id"] is None


def test_being_read_keeps_nothing_where_it_is_and_being_written_does(world: World) -> None:
    read, written = add(world, "The lamp is on"), add(world, "The door is open")
    world.clock.advance(1.5 * DAY_S)
    world(ops.GetMemory(read))
    world(ops.UpdateMemory(written, {"content": "The door is shut"}))
    assert world(ops.Migrate())["to_working"] == 1
    assert tiers(world, [read, written]) == ["medium", "short"]


def test_of_too_many_in_a_namespace_the_oldest_move_on(storage_url: str, tmp_path: Path) -> None:
    world = small(storage_url, tmp_path / "crowded", operational_max=3)
    try:
        many = [add(world, f"The lamp number {n} is on") for n in range(5)]
        few = [add(world, f"The door number {n} is open", "user:bob") for n in range(3)]
        add(world, "This one expires", expires_at=(world.clock.now_us() / 1_000_000) + 60)
        world.clock.advance(120)
        assert world(ops.Migrate(dry_run=True))["to_working"] == 2
        assert world(ops.Migrate(from_tier="working"))["to_working"] == 0
        assert world(ops.Migrate(from_tier="operational"))["to_working"] == 2
        assert tiers(world, many) == ["medium", "medium", "short", "short", "short"]
        assert tiers(world, few) == ["short", "short", "short"]
    finally:
        world.close()


def test_what_belongs_together_is_summed_up_in_its_own_words(world: World) -> None:
    # What is said to have been then is from then, whenever it was written down.
    given: dict[str, Any] = {"trust": 0.6, "source": "diary", "tags": ["trip"], "importance": 0.3}
    sources = trip(world, valid_from="2020-05-03", **given)
    alone = add(world, "The lamp is red", memory_tier="medium")
    young = trip(world, "user:bob", memory_tier="short")
    world.clock.advance(31 * DAY_S)
    done = world(ops.Migrate(from_tier="working"), agent="mover")
    assert (done["to_longterm"], done["summarised"], done["complete"]) == (1, 5, True)
    [made] = done["summaries"]
    assert sorted(made["source_ids"]) == sorted(sources)
    summary = memory(world, made["summary_id"])
    assert summary["content"] == made["text"]
    told = " ".join(TRIP)
    sentences = [s.rstrip(".") for s in made["text"].split(". ")]
    assert sentences
    assert all(sentence in told for sentence in sentences)
    assert len(made["text"]) < len(told)
    assert (summary["collection"], summary["memory_type"]) == ("summaries", "summary")
    assert (summary["memory_tier"], summary["namespace"]) == ("long", HOME)
    assert (summary["source"], summary["trust"]) == ("migration", 0.6)
    assert (summary["tags"], summary["importance"]) == (["trip"], 0.3)
    assert summary["metadata"]["sources"] == ["diary"]
    assert summary["metadata"]["summarises"] == 5
    assert summary["metadata"]["first_at"].startswith("2020-05-03")
    assert summary["created_by"] == "mover"
    links = world(ops.GetRelatedMemories(made["summary_id"], "derived_from"))["related"]
    assert {link["memory"]["id"] for link in links} == set(sources)
    for memory_id in sources:
        source = memory(world, memory_id)
        assert source["archived_at"] is not None
        assert source["memory_tier"] == "long"
    assert tiers(world, [alone, *young]) == ["long", *(["short"] * 5)]
    assert memory(world, alone)["archived_at"] is None
    hits = world(ops.SemanticSearch("the train to Vienna", 5, namespace=HOME))["results"]
    assert hits[0]["id"] == made["summary_id"]
    assert not {hit["id"] for hit in hits} & set(sources)


def test_what_is_near_in_meaning_is_summed_up_and_never_across_namespaces(world: World) -> None:
    same = [add(world, "The pump in hall four was replaced", memory_tier="medium")]
    same += [
        add(world, f"The pump in hall four was replaced {w}", memory_tier="medium")
        for w in ("again", "today")
    ]
    other = [
        add(world, "The pump in hall four was replaced", f"user:{n}", memory_tier="medium")
        for n in ("bob", "eve", "tom")
    ]
    world.settle()
    world.clock.advance(31 * DAY_S)
    done = world(ops.Migrate())
    assert [sorted(made["source_ids"]) for made in done["summaries"]] == [sorted(same)]
    assert done["to_longterm"] == 3
    assert tiers(world, other) == ["long"] * 3


def test_what_is_more_than_a_text_moves_on_as_it_is(world: World) -> None:
    more: list[dict[str, Any]] = [
        {"importance": 0.9},
        {"value": {"at": 9}},
        {"expires_at": "2100-01-01"},
        {"valid_to": "2100-01-01"},
    ]
    ids = [memory_id for given in more for memory_id in trip(world, **given)]
    world.clock.advance(31 * DAY_S)
    done = world(ops.Migrate())
    assert (done["to_longterm"], done["summarised"]) == (20, 0)
    assert all(memory(world, memory_id)["archived_at"] is None for memory_id in ids)


def test_a_key_keeps_working(world: World) -> None:
    session = world(ops.CreateSession("alice"))["session_id"]
    for n, text in enumerate(TRIP):
        world(ops.Put(HOME, f"k{n}", n, content=text, memory_tier="medium"), session=session)
    world.clock.advance(31 * DAY_S)
    assert world(ops.Migrate())["to_longterm"] == 5
    got = world(ops.GetByKey(HOME, "k3"))["memory"]
    assert (got["value"], got["memory_tier"]) == (3, "long")


def test_what_goes_on_stays_and_records_move_on_as_they_are(world: World) -> None:
    goals = [
        world(ops.StoreGoal(f"Reach the pole {n}", namespace=HOME))["goal_id"] for n in range(2)
    ]
    for task in ("packing", "sailing"):
        world(ops.SaveTask(f"We are {task}", task, namespace=HOME))
        for turn in range(4):
            given = {"item": f"thing {turn}"}
            world(ops.SaveStep(task, turn, "hand", given, f"{task} {turn}", namespace=HOME))
    world(ops.SavePreference("units", "metric", namespace=HOME))
    world(ops.SaveAgentState("captain", {"mood": "fine"}, namespace=HOME))
    decided = world(ops.LogDecision("Which ship?", ["Fram", "Maud"], "Fram", namespace=HOME))
    world(ops.UpdateGoal(goals[1], status="completed"))
    world(ops.UpdateTaskStatus("packing", "completed", "All is packed", namespace=HOME))
    world.clock.advance(40 * DAY_S)
    world(ops.Migrate())
    world.clock.advance(40 * DAY_S)
    done = world(ops.Migrate())
    assert (done["summarised"], done["complete"]) == (4, True)
    assert "thing" in done["summaries"][0]["text"]
    shown = {m["id"]: m for m in world(ops.ListMemories(namespace=HOME, limit=100))["memories"]}
    tier_of = {
        (m["collection"], m["key"] or m["id"]): m["memory_tier"]
        for m in shown.values()
        if m["collection"] != "summaries"
    }
    assert tier_of["goals", goals[0]] != "long"
    assert tier_of["goals", goals[1]] == "long"
    assert tier_of["tasks", "task/sailing"] != "long"
    assert tier_of["tasks", "task/packing"] == "long"
    assert tier_of["decisions", decided["decision_id"]] == "long"
    assert sum(collection == "steps" for collection, _ in tier_of) == 4
    # All of them are what they were to those who ask for them.
    assert world(ops.GetTask("packing", namespace=HOME))["task"]["task_status"] == "completed"
    assert world(ops.ActiveGoals(namespace=HOME))["count"] == 1
    got = world(ops.GetPreference("units", namespace=HOME))["preference"]
    assert got["value"] == "metric"
    assert world(ops.ListSteps("sailing", namespace=HOME))["count"] == 4
    assert world(ops.Migrate())["run_id"] is None


def test_what_has_expired_is_left_alone(world: World) -> None:
    expired = add(world, "Gone", expires_at=(world.clock.now_us() / 1_000_000) + 60)
    world.clock.advance(2 * DAY_S)
    assert world(ops.Migrate())["examined"] == 0
    assert expired


def test_a_dry_run_changes_nothing_and_tells_what_would_be(world: World) -> None:
    trip(world)
    add(world, "The lamp is on")
    world.clock.advance(31 * DAY_S)
    before = state(world)
    dry = world(ops.Migrate(dry_run=True))
    assert (dry["run_id"], dry["dry_run"]) == (None, True)
    assert dry["summaries"][0]["summary_id"] is None
    assert state(world) == before
    assert world(ops.ListRuns())["runs"] == []
    real = world(ops.Migrate())
    for name in ("to_working", "to_longterm", "summarised", "examined", "complete"):
        assert dry[name] == real[name]
    assert dry["summaries"][0]["text"] == real["summaries"][0]["text"]
    assert dry["summaries"][0]["source_ids"] == real["summaries"][0]["source_ids"]


def test_undoing_a_migration_brings_all_back(world: World) -> None:
    trip(world, tags=["trip"])
    add(world, "The lamp is on")
    add(world, "The door is green", memory_tier="medium")
    world.clock.advance(31 * DAY_S)
    before = state(world)
    run = world(ops.Migrate())
    assert state(world) != before
    undone = world(ops.Undo(run["run_id"]))
    assert (undone["restored"], undone["removed"], undone["skipped"]) == (7, 1, [])
    assert state(world) == before
    assert world(ops.GetRun(run["run_id"]))["run"]["run_status"] == "undone"
    world.settle()
    hits = world(ops.SemanticSearch(TRIP[3], 1, namespace=HOME))["results"]
    assert hits[0]["content"] == TRIP[3]
    # What was brought back was written just now, and has its time before it once more.
    assert world(ops.Migrate())["run_id"] is None


def test_a_run_is_bounded_and_the_same_again_goes_on(world: World) -> None:
    for n in range(7):
        add(world, f"The lamp number {n} is on")
    world.clock.advance(2 * DAY_S)
    counts, complete = [], []
    for _ in range(3):
        done = world(ops.Migrate(limit=3))
        counts.append(done["to_working"])
        complete.append(done["complete"])
    assert (counts, complete) == ([3, 3, 1], [False, False, True])


def test_a_run_shrinks_a_namespace_by_no_more_than_a_part(storage_url: str, tmp_path: Path) -> None:
    world = small(storage_url, tmp_path / "shrinking", shrink_max=0.5)
    try:
        for _ in range(4):
            trip(world)
        before = world(ops.Count(namespace=HOME))["count"]
        world.clock.advance(31 * DAY_S)
        first = world(ops.Migrate())
        assert (first["summarised"], first["complete"]) == (10, False)
        assert world(ops.Count(namespace=HOME))["count"] >= before / 2
        left, steps = first, 0
        while not left["complete"] and steps < 5:
            left, steps = world(ops.Migrate()), steps + 1
        assert left["complete"] is True
        assert world(ops.Migrate())["run_id"] is None
        assert world(ops.Count(namespace=HOME))["count"] == 4
    finally:
        world.close()


def test_another_age_may_be_asked_for(world: World) -> None:
    add(world, "The lamp is on")
    world.clock.advance(3600)
    assert world(ops.Migrate(older_than_days=1))["examined"] == 0
    assert world(ops.Migrate(older_than_days=0))["to_working"] == 1


def test_what_makes_no_sense_is_refused(world: World) -> None:
    add(world, "The lamp is on")
    world.clock.advance(2 * DAY_S)
    wrong: list[dict[str, Any]] = [
        {"limit": 0},
        {"limit": 100_001},
        {"older_than_days": -1},
        {"from_tier": "attic"},
        {"namespace": "nowhere"},
    ]
    for given in wrong:
        with pytest.raises(errors.InvalidArgument):
            world(ops.Migrate(**given))
    assert world(ops.ListRuns())["runs"] == []


def test_a_migration_and_its_undoing_are_in_the_audit(world: World) -> None:
    moved = add(world, "The lamp is on")
    world.clock.advance(2 * DAY_S)
    run = world(ops.Migrate(), agent="mover")
    world(ops.Undo(run["run_id"]), agent="mover")
    entries = world(ops.AuditLog(subject=moved))["entries"]
    assert {(e["operation"], e["agent"]) for e in entries} >= {
        ("migrate", "mover"),
        ("undo", "mover"),
    }
    of_run = world(ops.AuditLog(subject=run["run_id"]))["entries"]
    assert {entry["operation"] for entry in of_run} == {"migrate", "undo"}


def test_the_same_request_again_is_answered_alike_and_not_done_again(world: World) -> None:
    trip(world)
    world.clock.advance(31 * DAY_S)
    first = world(ops.Migrate(), key="the-same-key")
    add(world, "The lamp is on")
    world.clock.advance(2 * DAY_S)
    assert world(ops.Migrate(), key="the-same-key") == first
    with pytest.raises(errors.IdempotencyConflict):
        world(ops.Migrate(limit=5), key="the-same-key")


def test_only_what_the_caller_may_write_is_moved(world: World) -> None:
    mine, theirs = add(world, "The lamp is on"), add(world, "The lamp is on", "user:bob")
    world.clock.advance(2 * DAY_S)
    reader = identity("reader", (HOME, "read"))
    stranger = identity("stranger", ("project:x", "write"))
    for who in (reader, stranger):
        with pytest.raises(errors.Forbidden):
            world(ops.Migrate(HOME), who)
        assert world(ops.Migrate(), who)["examined"] == 0
    owner = identity("owner", (HOME, "write"), ("user:bob", "read"))
    assert world(ops.Migrate(), owner)["to_working"] == 1
    assert tiers(world, [mine, theirs]) == ["medium", "short"]


def test_a_secret_that_may_not_be_stored_again_is_not_summed_up(
    storage_url: str, tmp_path: Path
) -> None:
    world = World(storage_url, tmp_path / "data")
    session = world(ops.CreateSession("alice"))["session_id"]
    for n in range(3):
        text = f"password = hunter2-is-the-word{n}"
        add(world, text, session=session, memory_tier="medium")
    world.clock.advance(31 * DAY_S)
    world.settings = msgspec.structs.replace(world.settings, trust=TrustSettings(secrets="refuse"))
    world.restart()
    try:
        done = world(ops.Migrate())
        assert (done["summarised"], done["to_longterm"]) == (0, 3)
    finally:
        world.close()


def test_what_a_source_wrote_is_taken_back_with_its_summary(world: World) -> None:
    good = trip(world)[:4]
    session = memory(world, good[0])["session_id"]
    bad = add(
        world, "The train to Vienna flies", session=session, memory_tier="medium", source="rumour"
    )
    world.clock.advance(31 * DAY_S)
    [made] = world(ops.Migrate())["summaries"]
    assert bad in made["source_ids"]
    world(ops.ForgetSource("rumour"))
    assert memory(world, made["summary_id"])["deleted_at"] is not None
    assert memory(world, bad)["deleted_at"] is not None
    back = memory(world, good[0])
    assert (back["archived_at"], back["memory_tier"]) == (None, "medium")


def died(world: World, run_id: str) -> None:
    """Let a run be as if its orchestrator had been killed before it could end it."""

    def write(transaction: WriteTransaction) -> None:
        transaction.execute(DIED, (run_id,))

    async def die() -> None:
        await world.storage.write(write)

    world.run(die())
    world.clock.advance(DEAD_AFTER_S + 1)


@pytest.fixture
def broken(world: World) -> dict[str, Any]:
    """A migration that was broken off in its midst, with how it was before."""
    trip(world)
    trip(world)
    add(world, "The lamp is on")
    world.clock.advance(31 * DAY_S)
    before = state(world)
    run_id = world(ops.Migrate(limit=6))["run_id"]
    died(world, run_id)
    return {"before": before, "run_id": run_id}


def test_a_run_that_is_broken_off_is_gone_on_with(world: World, broken: dict[str, Any]) -> None:
    run_id = broken["run_id"]
    # Another scope is another run, and somebody else's is not gone on with.
    other = identity("other", ("user", "write"))
    assert world(ops.Migrate(older_than_days=30_000))["run_id"] is None
    assert world(ops.Migrate(namespace="user:nobody"), other)["run_id"] is None
    done = world(ops.Migrate(), key="first")
    assert (done["run_id"], done["resumed"], done["complete"]) == (run_id, True, True)
    assert (done["to_working"], done["summarised"], len(done["summaries"])) == (1, 10, 2)
    assert world(ops.Migrate(), key="first") == done
    assert world(ops.Count(namespace=HOME))["count"] == 3
    assert world(ops.Migrate())["run_id"] is None
    undone = world(ops.Undo(run_id))
    assert (undone["restored"], undone["removed"]) == (11, 2)
    assert state(world) == broken["before"]


def test_a_run_that_is_broken_off_can_be_undone(world: World, broken: dict[str, Any]) -> None:
    undone = world(ops.Undo(broken["run_id"]))
    assert (undone["restored"], undone["removed"], undone["skipped"]) == (6, 1, [])
    assert state(world) == broken["before"]
    # It is over then: the next is another run.
    again = world(ops.Migrate(older_than_days=0))
    assert again["run_id"] != broken["run_id"]
    assert again["resumed"] is False


def test_a_limit_bounds_the_whole_of_a_run_that_is_gone_on_with(
    world: World, broken: dict[str, Any]
) -> None:
    done = world(ops.Migrate(limit=6))
    assert (done["run_id"], done["summarised"]) == (broken["run_id"], 5)
    assert (done["complete"], done["resumed"]) == (False, True)


def test_who_was_taken_for_dead_does_nothing_more(world: World, broken: dict[str, Any]) -> None:
    """What another orchestrator does with a run, while the first one still believes to have it."""
    run_id = broken["run_id"]
    world(ops.Migrate(limit=6))

    died(world, run_id)

    async def late(resumed: int) -> None:
        await world.storage.write(lambda t: runs.beat(t, run_id, 1, resumed=resumed))

    with pytest.raises(errors.Overloaded):
        world.run(late(0))
    world.run(late(1))


def test_a_run_of_a_dead_orchestrator_is_found_at_the_next_start(
    world: World, broken: dict[str, Any]
) -> None:
    world.restart()
    run = world(ops.GetRun(broken["run_id"]))["run"]
    assert run["run_status"] == "interrupted"
    assert (run["report"]["to_working"], run["report"]["summarised"]) == (1, 5)
    done = world(ops.Migrate())
    assert (done["run_id"], done["resumed"], done["summarised"]) == (broken["run_id"], True, 10)
