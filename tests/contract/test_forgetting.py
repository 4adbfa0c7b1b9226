"""Taking back what a source wrote, with all that came of it, on every storage."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.consolidation import forgetting
from recollect.protocol import errors
from recollect.protocol import operations as ops
from tests.contract.test_consolidation import HOME, add, filled, memory, state, texts
from tests.contract.test_identities import journal
from tests.contract.test_tiers import trip
from tests.harness.worlds import World

BAD = "web:evil.example"
LONG_S = 12 * 365 * 86_400
"""By then a memory of any tier has faded."""


def by_agent(world: World, agent: str, operation: Any) -> Any:
    return world(operation, agent=agent)


def living(world: World, memory_id: str) -> bool:
    return memory(world, memory_id)["deleted_at"] is None


def test_all_that_names_the_source_or_was_written_by_the_agent_is_gone(world: World) -> None:
    named = add(world, "The earth is flat", source=BAD)
    elsewhere = add(world, "The moon is cheese", "project:x", source=BAD)
    written = by_agent(world, BAD, ops.AddMemory("The sun is cold", namespace=HOME))["memory_id"]
    keyed = by_agent(world, BAD, ops.Put(HOME, "planet", "flat"))["memory_id"]
    other = add(world, "Water is wet", source="web:good.example")
    before = state(world)
    dry = world(ops.ForgetSource(BAD, True))
    assert (dry["forgotten"], dry["run_id"], state(world) == before) == (4, None, True)
    run = world(ops.ForgetSource(BAD))
    assert run["forgotten"] == 4
    assert sorted(run["memory_ids"]) == sorted(dry["memory_ids"])
    assert sorted(run["memory_ids"]) == sorted([named, elsewhere, written, keyed])
    assert texts(world) == ["Water is wet"]
    assert living(world, other)
    with pytest.raises(errors.NotFound):
        world(ops.GetByKey(HOME, "planet"))
    undone = world(ops.Undo(run["run_id"]))
    assert (undone["restored"], undone["skipped"]) == (4, [])
    assert state(world) == before
    assert world(ops.GetByKey(HOME, "planet"))["memory"]["value"] == "flat"
    again = world(ops.ForgetSource(BAD))
    assert again["forgotten"] == 4


def test_an_identity_is_a_source_whatever_agents_it_names(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that the journal is looked through in several steps.
    monkeypatch.setattr(forgetting, "ENTRIES_AT_ONCE", 4)
    mallory = Identity("mallory", Grants((Grant("user", "write"),)))

    def by_mallory(operation: Any, agent: str | None) -> Any:
        return world(operation, mallory, agent=agent)

    changed, deleted, healed, reinforced = (
        add(world, text) for text in ("Water is wet", "Fire is hot", "Air is light", "Ice is cold")
    )
    written = [
        by_mallory(ops.AddMemory(text, namespace=HOME), agent)["memory_id"]
        for text, agent in (("The earth is flat", "helper-1"), ("The sun is cold", None))
    ]
    written.append(by_mallory(ops.Put(HOME, "planet", "flat"), "helper-2")["memory_id"])
    by_mallory(ops.UpdateMemory(changed, {"content": "Water is dry"}), "helper-1")
    world(ops.UpdateMemory(changed, {"tags": ["water"]}))
    by_mallory(ops.DeleteMemory(deleted), "helper-3")
    by_mallory(ops.UpdateMemory(healed, {"content": "Air is heavy"}), "helper-1")
    world(ops.Restore(healed, 1))
    # Who only makes use of what others wrote has written nothing.
    by_mallory(ops.ReinforceMemory(reinforced), "helper-1")
    theirs = world(ops.AddMemory("Wine is red", namespace=HOME), agent="helper-1")["memory_id"]
    before = state(world)
    dry = world(ops.ForgetSource("mallory", True))
    assert sorted(dry["memory_ids"]) == sorted([*written, changed, deleted])
    run = world(ops.ForgetSource("mallory"))
    assert (run["forgotten"], run["reverted"]) == (3, 2)
    assert [living(world, i) for i in written] == [False] * 3
    assert memory(world, changed)["content"] == "Water is wet"
    assert living(world, deleted)
    assert living(world, theirs)
    assert memory(world, reinforced)["version"] == 1
    assert memory(world, healed)["content"] == "Air is light"
    assert world(ops.ForgetSource("mallory", True))["memory_ids"] == []
    undone = world(ops.Undo(run["run_id"]))
    assert (undone["restored"], undone["skipped"], state(world) == before) == (5, [], True)
    again = world(ops.ForgetSource("mallory"), namespace_writer())
    assert sorted(again["memory_ids"]) == sorted(run["memory_ids"])


def namespace_writer() -> Identity:
    return Identity("alice", Grants((Grant(HOME, "write"),)))


def test_what_an_identity_wrote_elsewhere_is_left_by_who_may_not_write_there(world: World) -> None:
    mallory = Identity("mallory", Grants((Grant("user", "write"),)))
    elsewhere = ops.AddMemory("The moon is cheese", namespace="user:bob")
    theirs = world(elsewhere, mallory, agent="helper-1")["memory_id"]
    assert world(ops.ForgetSource("mallory"), namespace_writer())["run_id"] is None
    assert living(world, theirs)
    assert world(ops.ForgetSource("mallory", namespace="user:bob"))["memory_ids"] == [theirs]


def test_what_has_nothing_to_take_back_is_no_run_and_leaves_no_line(world: World) -> None:
    add(world, "The earth is flat", source=BAD)
    nobody = Identity("nobody", Grants())
    reader = Identity("reader", Grants((Grant(HOME, "read"),)))
    for who, source, denied in (
        (namespace_writer(), "web:unknown.example", []),
        (nobody, BAD, [("nobody", "forget_source", BAD, "denied", "needs write")]),
        (reader, BAD, [("reader", "forget_source", BAD, "denied", "needs write")]),
    ):
        before = journal(world)
        answer = world(ops.ForgetSource(source), who, key=f"{who.name}-key")
        nothing = {"forgotten": 0, "reverted": 0, "derived": 0, "revived": 0, "memory_ids": []}
        assert {name: answer[name] for name in nothing} == nothing
        assert answer["run_id"] is None
        assert world(ops.ListRuns())["runs"] == []
        assert journal(world)[len(before) :] == denied
    # The same request again, when there is something, is done.
    add(world, "The moon is cheese", source="web:unknown.example")
    late = world(ops.ForgetSource("web:unknown.example"), namespace_writer(), key="alice-key")
    assert (late["forgotten"], late["run_id"] is None) == (1, False)


def test_a_namespace_narrows_it(world: World) -> None:
    add(world, "The earth is flat", source=BAD)
    elsewhere = add(world, "The moon is cheese", "project:x", source=BAD)
    assert world(ops.ForgetSource(BAD, namespace="project:x"))["memory_ids"] == [elsewhere]


def test_what_it_changed_of_others_goes_back_to_before(world: World) -> None:
    mine = add(world, "Water is wet")
    by_agent(world, BAD, ops.UpdateMemory(mine, {"content": "Water is dry"}))
    # Whoever changes it later builds upon that.
    world(ops.UpdateMemory(mine, {"tags": ["water"]}))
    deleted = add(world, "Fire is hot")
    by_agent(world, BAD, ops.DeleteMemory(deleted))
    cited = add(world, "Ice is cold", source="a book")
    world(ops.UpdateMemory(cited, {"content": "Ice is warm", "source": BAD}))
    world(ops.UpdateMemory(cited, {"source": "a book"}))
    healed = add(world, "Air is light")
    by_agent(world, BAD, ops.UpdateMemory(healed, {"content": "Air is heavy"}))
    world(ops.Restore(healed, 1))
    before = state(world)
    run = world(ops.ForgetSource(BAD))
    assert (run["forgotten"], run["reverted"]) == (0, 3)
    assert memory(world, mine)["content"] == "Water is wet"
    assert memory(world, mine)["tags"] == []
    assert living(world, deleted)
    assert memory(world, cited)["content"] == "Ice is cold"
    assert memory(world, cited)["source"] == "a book"
    assert memory(world, healed)["content"] == "Air is light"
    assert world(ops.ForgetSource(BAD))["reverted"] == 0
    world(ops.Undo(run["run_id"]))
    assert state(world) == before
    assert memory(world, mine)["content"] == "Water is dry"
    assert world(ops.ForgetSource(BAD))["reverted"] == 3


def test_what_was_merged_from_it_goes_and_what_others_gave_to_that_comes_back(world: World) -> None:
    filled(world)
    mine = add(world, "Anna lives in Paris")
    theirs = add(world, "Anna lives in Berlin", source=BAD)
    merged = world(ops.Consolidate(HOME, "merge"))["groups"][0]["kept_id"]
    # And what was made from that in turn.
    late = add(world, "Anna lives in Madrid")
    second = world(ops.Consolidate(HOME, "merge"))["groups"][0]["kept_id"]
    summary = add(world, "A summary of where Anna was")
    world(ops.AddRelationship(summary, second, "derived_from"))
    before = state(world)
    run = world(ops.ForgetSource(BAD))
    assert (run["forgotten"], run["derived"], run["revived"]) == (1, 3, 2)
    assert [living(world, i) for i in (theirs, merged, second, summary)] == [False] * 4
    for revived in (mine, late):
        assert memory(world, revived)["archived_at"] is None
    assert "Anna lives in Paris" in texts(world)
    assert "Anna lives in Madrid" in texts(world)
    world(ops.Undo(run["run_id"]))
    assert state(world) == before
    again = world(ops.ForgetSource(BAD))
    assert (again["forgotten"], again["derived"], again["revived"]) == (1, 3, 2)


def test_what_gave_way_to_it_comes_back(world: World) -> None:
    filled(world)
    mine, theirs = (
        add(world, "Anna lives in Paris"),
        add(world, "Anna lives in Berlin", source=BAD),
    )
    world(ops.Consolidate(HOME, "keep_latest"))
    assert memory(world, mine)["archived_at"] is not None
    run = world(ops.ForgetSource(BAD))
    assert (run["forgotten"], run["revived"]) == (1, 1)
    assert memory(world, mine)["archived_at"] is None
    assert not living(world, theirs)


def test_what_hung_below_it_stays_and_is_hung_up_again_by_undo(world: World) -> None:
    root = add(world, "The earth is flat", source=BAD)
    child = add(world, "The earth has oceans", parent_id=root)
    run = world(ops.ForgetSource(BAD))
    assert run["memory_ids"] == [root]
    assert memory(world, child)["parent_id"] is None
    assert living(world, child)
    world(ops.Undo(run["run_id"]))
    assert memory(world, child)["parent_id"] == root


def test_what_comes_back_hangs_below_nothing_that_is_gone_or_below_it(world: World) -> None:
    top, low, gone = (add(world, f"Number {n}") for n in ("one", "two", "three"))
    left = add(world, "Number four", parent_id=gone)
    world(ops.UpdateMemory(low, {"parent_id": top}))
    for one in (low, left):
        by_agent(world, BAD, ops.UpdateMemory(one, {"parent_id": None}))
    world(ops.UpdateMemory(top, {"parent_id": low}))
    world(ops.DeleteMemory(gone))
    run = world(ops.ForgetSource(BAD))
    assert run["reverted"] == 2
    assert [memory(world, one)["parent_id"] for one in (top, low, left)] == [low, None, None]
    undone = world(ops.Undo(run["run_id"]))
    assert (undone["skipped"], memory(world, top)["parent_id"]) == ([], low)


def test_what_undo_brings_back_hangs_below_nothing_that_is_gone_or_below_it(world: World) -> None:
    named, theirs = add(world, "The earth is flat", source=BAD), add(world, "The moon is cheese")
    root, child = add(world, "Water is wet", source=BAD), add(world, "Water is cold", source=BAD)
    world(ops.UpdateMemory(named, {"parent_id": theirs}))
    world(ops.UpdateMemory(child, {"parent_id": root}))
    hung = add(world, "Mars is red", source=BAD, parent_id=add(world, "Planets"))
    run = world(ops.ForgetSource(BAD))
    assert run["forgotten"] == 4
    world(ops.DeleteMemory(theirs))
    world(ops.UpdateMemory(parent_of(world, hung), {"parent_id": add(world, "All")}))
    undone = world(ops.Undo(run["run_id"]))
    assert (undone["restored"], undone["skipped"]) == (4, [])
    assert memory(world, named)["parent_id"] is None
    assert memory(world, child)["parent_id"] == root
    assert memory(world, hung)["parent_id"] is not None


def test_undo_makes_no_cycle_of_what_was_hung_up_otherwise_since(world: World) -> None:
    root = add(world, "The earth is flat", source=BAD)
    child = add(world, "The earth has oceans", parent_id=root)
    run = world(ops.ForgetSource(BAD))
    other = by_agent(world, "bob", ops.Restore(root))["memory_id"]
    world(ops.UpdateMemory(other, {"parent_id": child}))
    world(ops.Undo(run["run_id"]))
    parents = {one: memory(world, one)["parent_id"] for one in (root, child)}
    assert parents == {root: child, child: None}


def parent_of(world: World, memory_id: str) -> str:
    parent_id: str = memory(world, memory_id)["parent_id"]
    return parent_id


def test_a_run_in_somebodys_name_is_not_what_they_wrote(world: World) -> None:
    filled(world)
    mine = add(world, "Anna lives in Paris")
    add(world, "Anna lives in Berlin")
    by_agent(world, "gardener", ops.Consolidate(HOME, "merge"))
    run = world(ops.ForgetSource("gardener"))
    assert run["memory_ids"] == []
    assert memory(world, mine)["archived_at"] is not None


def test_what_decay_summed_up_with_it_comes_back_without_it(world: World) -> None:
    theirs = trip(world)
    session = memory(world, theirs[0])["session_id"]
    bad = "The hotel in Vienna has no breakfast and the train is always late."
    written = ops.AddMemory(bad, namespace=HOME, memory_tier="medium")
    mallory = Identity("mallory", Grants((Grant("user", "write"),)))
    world(written, mallory, session=session)
    world.clock.advance(LONG_S)
    assert world(ops.FadeMemories(HOME))["summarised"] == len(theirs) + 1
    [summary] = world(ops.ListMemories(namespace=HOME))["memories"]

    run = world(ops.ForgetSource("mallory"))
    assert (run["forgotten"], run["derived"], run["revived"]) == (1, 1, len(theirs))
    assert not living(world, summary["id"])
    assert texts(world) == sorted(memory(world, one)["content"] for one in theirs)
    # They are there as if they had just been used, not to be summed up at once again.
    assert world(ops.FadeMemories(HOME))["examined"] == 0


def test_what_decay_moved_in_somebodys_name_is_not_what_they_wrote(world: World) -> None:
    lamp = add(world, "The lamp is on", memory_tier="short")
    roof = add(world, "The roof is new", memory_tier="long")
    world.clock.advance(LONG_S)
    by_agent(world, "keeper", ops.FadeMemories())
    assert memory(world, lamp)["updated_by"] == memory(world, roof)["updated_by"] == "keeper"
    assert world(ops.ForgetSource("keeper"))["run_id"] is None
    assert memory(world, lamp)["memory_tier"] == "medium"
    assert memory(world, roof)["archived_at"] is not None


def test_what_decay_archived_for_its_own_sake_stays_archived(world: World) -> None:
    roof = add(world, "The roof is new", memory_tier="long")
    world.clock.advance(LONG_S)
    assert world(ops.FadeMemories())["archived"] == 1
    note = add(world, "There is a house with a roof", source=BAD)
    for kind in ("derived_from", "replaces"):
        world(ops.AddRelationship(note, roof, kind))
    assert world(ops.ForgetSource(BAD))["memory_ids"] == [note]
    assert memory(world, roof)["archived_at"] is not None


def test_only_what_the_caller_may_write_is_taken_back(world: World) -> None:
    mine = add(world, "The earth is flat", source=BAD)
    theirs = add(world, "The moon is cheese", "user:bob", source=BAD)
    summary = add(world, "About the earth", "user:bob")
    world(ops.AddRelationship(summary, mine, "derived_from"))
    alice = Identity("alice", Grants((Grant(HOME, "write"), Grant("user:bob", "read"))))
    run = world(ops.ForgetSource(BAD), alice)
    assert run["memory_ids"] == [mine]
    assert living(world, theirs)
    assert living(world, summary)
    with pytest.raises(errors.Forbidden):
        world(ops.ForgetSource(BAD, namespace="user:bob"), alice)
    assert world(ops.GetRun(run["run_id"]), alice)["run"]["report"]["forgotten"] == 1
    assert world(ops.Undo(run["run_id"]), alice)["restored"] == 1


def test_the_same_request_again_is_answered_alike(world: World) -> None:
    add(world, "The earth is flat", source=BAD)
    first = world(ops.ForgetSource(BAD), key="the-same-key")
    add(world, "The earth is a disc", source=BAD)
    assert world(ops.ForgetSource(BAD), key="the-same-key") == first
    assert world(ops.ForgetSource(BAD), key="another-key")["forgotten"] == 1


@pytest.mark.parametrize("name", ['100% "quoted"', "a_b", "!", "Zoë \\ x"])
def test_any_name_is_found_in_old_versions(world: World, name: str) -> None:
    mine = add(world, "Water is wet")
    innocent = add(world, "Wine is wet")
    by_agent(world, name, ops.UpdateMemory(mine, {"content": "Water is dry"}))
    by_agent(world, "axb", ops.UpdateMemory(innocent, {"content": "Wine is dry"}))
    world(ops.UpdateMemory(mine, {"tags": ["x"]}))
    assert world(ops.ForgetSource(name))["memory_ids"] == [mine]
    assert memory(world, mine)["content"] == "Water is wet"


def test_what_was_only_rated_by_it_is_told_apart_as_well(world: World) -> None:
    """Feedback changes the columns of a pattern and nothing that its memory says."""
    for n, text in enumerate(("Ran the tests first. It works.", "Ran the tests. It works well.")):
        learned = world(ops.StoreExecution(f"d{n}", text, True, task_description="Deploy the shop"))
    [pattern] = learned["patterns"]

    def rate(agent: str, helped: bool) -> None:
        by_agent(world, agent, ops.PatternFeedback(pattern, helped))

    def rated() -> tuple[int, int]:
        [found] = world(ops.SearchPatterns())["patterns"]
        return found["successes"], found["failures"]

    rate(BAD, False)
    for _ in range(2):
        run = world(ops.ForgetSource(BAD))
        assert (run["reverted"], rated()) == (1, (2, 0))
        assert world(ops.Undo(run["run_id"]))["restored"] == 1
        assert rated() == (2, 1)
    run = world(ops.ForgetSource(BAD))
    rate("bob", True)
    # It was changed since, so it is left as it is.
    assert world(ops.Undo(run["run_id"]))["skipped"] == [pattern]
    assert rated() == (3, 0)
