"""Decisions: logged with their reasons, given an outcome, found when the next is made."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.protocol import errors
from recollect.protocol import operations as ops
from tests.harness.somebody import somebody
from tests.harness.worlds import World

ALICE = somebody("alice", write=("user:alice",))
BOB = somebody("bob", write=("user:bob",))
RECEIPT = """
INSERT INTO receipts (id, at_us, identity, task_description, tokens, tokens_max, tokenizer, frame)
VALUES (?, 1, ?, 'plan', 1, 1, 'estimate', '{}')
"""


def log(
    world: World,
    context: str = "Which database keeps the orders?",
    options: list[str] | None = None,
    choice: str = "PostgreSQL",
    identity: Identity = LOCAL,
    **given: Any,
) -> str:
    envelope = {name: given.pop(name) for name in ("agent", "task") if name in given}
    asked = ops.LogDecision(context, options or ["PostgreSQL", "SQLite"], choice, **given)
    decision_id: str = world(asked, identity, **envelope)["decision_id"]
    return decision_id


def count(world: World) -> int:
    number: int = world(ops.Count())["count"]
    return number


def ids(answer: Any) -> list[str]:
    return [decision["id"] for decision in answer["decisions"]]


def test_a_decision_says_who_what_why_and_what_came_of_it(world: World) -> None:
    decision_id = log(
        world,
        reasoning="Several writers at once",
        confidence=0.8,
        task_id="orders",
        agent="architect",
        metadata={"sprint": 7},
        tags=["storage"],
        namespace="project:shop",
    )
    decided = world(ops.GetDecision(decision_id))["decision"]
    assert decided["context"] == "Which database keeps the orders?"
    assert decided["options"] == ["PostgreSQL", "SQLite"]
    assert decided["choice"] == "PostgreSQL"
    assert decided["reasoning"] == "Several writers at once"
    assert decided["confidence"] == 0.8
    assert decided["task_id"] == "orders"
    assert decided["goal_id"] is decided["receipt_id"] is None
    assert decided["decided_by"] == "architect"
    assert decided["namespace"] == "project:shop"
    assert (decided["metadata"], decided["tags"]) == ({"sprint": 7}, ["storage"])
    assert decided["outcome"] is decided["success"] is decided["outcome_at"] is None

    told = world(ops.RecordOutcome(decision_id, "No lock was ever waited for", True), agent="ops")
    assert told["version"] == 2
    decided = world(ops.GetDecision(decision_id))["decision"]
    assert decided["version"] == 2
    assert decided["outcome"] == "No lock was ever waited for"
    assert (decided["success"], decided["outcome_by"]) == (True, "ops")
    assert decided["outcome_at"] == told["updated_at"]
    assert decided["decided_by"] == "architect"
    memory = world(ops.GetMemory(decision_id))["memory"]
    assert (memory["collection"], memory["memory_type"]) == ("decisions", "decision")
    assert memory["memory_tier"] == "medium"


def test_a_second_outcome_replaces_the_first_which_stays_in_the_history(world: World) -> None:
    decision_id = log(world)
    world(ops.RecordOutcome(decision_id, "All is well", True))
    world(ops.RecordOutcome(decision_id, "It filled the disk", False))
    decided = world(ops.GetDecision(decision_id))["decision"]
    assert (decided["outcome"], decided["success"]) == ("It filled the disk", False)
    versions = world(ops.History(decision_id))["versions"]
    said = [version["memory"]["content"] for version in versions]
    assert ["It filled the disk" in text for text in said] == [True, False, False]
    assert ["All is well" in text for text in said] == [False, True, False]
    world(ops.RecordOutcome(decision_id, "Nobody can tell"))
    assert world(ops.GetDecision(decision_id))["decision"]["success"] is None


def test_a_decision_is_recalled_by_any_part_of_it(world: World) -> None:
    for n in range(20):
        world(ops.AddMemory(f"The weather on day {n} was fine."))
    decision_id = log(world, reasoning="It stands concurrent writers")
    world(ops.RecordOutcome(decision_id, "The replication lag vanished"))
    for words in ("orders database", "PostgreSQL", "concurrent writers", "replication lag"):
        found = world(ops.Recall(words, k=1))["results"]
        assert [memory["id"] for memory in found] == [decision_id], words


def test_similar_decisions_are_found_nearest_first_with_what_came_of_them(world: World) -> None:
    for n in range(40):
        world(ops.AddMemory(f"Which database keeps the invoices of year {n}?"))
    orders = log(world)
    lunch = log(world, "Where shall we have lunch?", ["here", "there"], "here")
    world(ops.RecordOutcome(lunch, "It was cold", False))
    found = world(ops.FindSimilarDecisions("Which database keeps the invoices?"))
    assert ids(found) == [orders, lunch]
    assert found["count"] == 2
    nearness = [decision["similarity"] for decision in found["decisions"]]
    assert 1 >= nearness[0] > nearness[1]
    assert found["decisions"][1]["outcome"] == "It was cold"
    known = world(ops.FindSimilarDecisions("Which database?", with_outcome=True))
    assert ids(known) == [lunch]
    near = world(ops.FindSimilarDecisions("Which database keeps them?", threshold=nearness[1]))
    assert ids(near) == [orders]
    assert ids(world(ops.FindSimilarDecisions("Which database?", 1))) == [orders]
    elsewhere = world(ops.FindSimilarDecisions("Which database?", namespace="user:nobody"))
    assert ids(elsewhere) == []
    assert world(ops.GetMemory(orders))["memory"]["access_count"] >= 3


def test_a_similarity_is_that_of_a_search_of_the_collection(world: World) -> None:
    for subject in ("orders", "invoices", "letters"):
        log(world, f"Which database keeps the {subject}?")
    question = "Where are invoices kept?"
    found = world(ops.FindSimilarDecisions(question))["decisions"]
    searched = world(ops.SemanticSearch(question, collections=["decisions"]))["results"]
    assert [(d["id"], d["similarity"]) for d in found] == [(r["id"], r["score"]) for r in searched]


def test_decisions_are_listed_newest_first_page_by_page(world: World) -> None:
    made = [log(world, f"Question {n}?", task_id="t1" if n % 2 else "t2") for n in range(7)]
    world(ops.AddMemory("no decision at all"))
    first = world(ops.ListDecisions(limit=4))
    assert ids(first) == made[:2:-1]
    rest = world(ops.ListDecisions(limit=4, cursor=first["cursor"]))
    assert (ids(rest), rest["cursor"]) == (made[2::-1], None)
    assert ids(world(ops.ListDecisions("t1"))) == [made[5], made[3], made[1]]
    page = world(ops.ListDecisions("t1", limit=2))
    assert ids(world(ops.ListDecisions("t1", limit=2, cursor=page["cursor"]))) == [made[1]]
    with pytest.raises(errors.InvalidArgument):
        world(ops.ListDecisions("t2", cursor=page["cursor"]))
    world(ops.DeleteMemory(made[3]))
    assert ids(world(ops.ListDecisions("t1"))) == [made[5], made[1]]
    assert ids(world(ops.ListDecisions("nothing"))) == []


def test_a_decision_is_made_for_the_task_of_its_call_unless_it_names_one(world: World) -> None:
    of_call = log(world, task="t-call")
    named = log(world, task="t-call", task_id="t-named")
    assert ids(world(ops.ListDecisions("t-call"))) == [of_call]
    assert ids(world(ops.ListDecisions("t-named"))) == [named]


def test_a_goal_must_be_one_that_the_caller_sees(world: World) -> None:
    goal_id = world(ops.StoreGoal("Sell more", namespace="user:alice"))["goal_id"]
    decision_id = log(world, goal_id=goal_id, namespace="user:alice", identity=ALICE)
    assert world(ops.GetDecision(decision_id))["decision"]["goal_id"] == goal_id
    assert ids(world(ops.ListDecisions(goal_id=goal_id), ALICE)) == [decision_id]
    before = count(world)
    other = world(ops.AddMemory("no goal"))["memory_id"]
    for unseen, who, home in (
        (goal_id, BOB, "user:bob"),
        ("nothing", LOCAL, "user:bob"),
        (other, LOCAL, "user:bob"),
    ):
        with pytest.raises(errors.NotFound, match="goal"):
            log(world, goal_id=unseen, namespace=home, identity=who)
        with pytest.raises(errors.NotFound, match="goal"):
            world(ops.ListDecisions(goal_id=unseen), who)
    assert count(world) == before + 1


def test_a_receipt_must_be_one_that_was_given_to_the_caller(world: World) -> None:
    async def give() -> None:
        def write(transaction: Any) -> None:
            transaction.execute(RECEIPT, ("r-alice", "alice"))

        await world.storage.write(write)

    world.run(give())
    decision_id = log(world, receipt_id="r-alice", namespace="user:alice", identity=ALICE)
    assert world(ops.GetDecision(decision_id))["decision"]["receipt_id"] == "r-alice"
    # Whoever owns the store sees all of them.
    log(world, receipt_id="r-alice")
    before = count(world)
    for who, home, receipt in (
        (BOB, "user:bob", "r-alice"),
        (ALICE, "user:alice", "r-none"),
        (LOCAL, "user:alice", "r-none"),
    ):
        with pytest.raises(errors.NotFound, match="receipt"):
            log(world, receipt_id=receipt, namespace=home, identity=who)
    assert count(world) == before
    denied = world(ops.AuditLog(outcome="denied"))["entries"]
    assert [(entry["identity"], entry["subject"]) for entry in denied] == [("bob", "r-alice")]


def test_decisions_of_others_are_not_there(world: World) -> None:
    mine = log(world, namespace="user:alice", task_id="t", identity=ALICE)
    shared = log(world, namespace="user:bob:shared", task_id="t")
    context = "Which database keeps the orders?"
    assert ids(world(ops.ListDecisions(), BOB)) == [shared]
    assert ids(world(ops.ListDecisions("t"), BOB)) == [shared]
    assert ids(world(ops.ListDecisions(namespace="user:bob"))) == [shared]
    assert ids(world(ops.ListDecisions("t", namespace="user:alice"), ALICE)) == [mine]
    assert ids(world(ops.FindSimilarDecisions(context), BOB)) == [shared]
    for asked in (ops.GetDecision(mine), ops.RecordOutcome(mine, "ha")):
        with pytest.raises(errors.NotFound):
            world(asked, BOB)
    reader = somebody("carol", read=("user:alice",))
    with pytest.raises(errors.Forbidden):
        world(ops.RecordOutcome(mine, "so so"), reader)
    assert world(ops.GetDecision(mine), reader)["decision"]["outcome"] is None


def test_a_goal_that_is_hidden_or_gone_is_not_named(world: World) -> None:
    goal_id = world(ops.StoreGoal("Sell more", namespace="user:alice"))["goal_id"]
    context = "Which database keeps the orders?"
    log(world, context, goal_id=goal_id, task_id="t", namespace="user:bob:shared")

    def named(who: Identity) -> list[str | None]:
        [listed] = world(ops.ListDecisions(), who)["decisions"]
        [similar] = world(ops.FindSimilarDecisions(context), who)["decisions"]
        got = world(ops.GetDecision(listed["id"]), who)["decision"]
        [of_task] = world(ops.TaskContext("t", namespace="user:bob:shared"), who)["decisions"]
        return [found["goal_id"] for found in (listed, similar, got, of_task)]

    assert named(LOCAL) == [goal_id] * 4
    assert named(BOB) == [None] * 4
    world(ops.DeleteMemory(goal_id))
    assert named(LOCAL) == [None] * 4


def test_a_decision_repeated_is_a_decision_and_no_echo(world: World) -> None:
    first = log(world, agent="planner")
    for _ in range(2):
        served = world(ops.GetMemory(first), agent="planner")["memory"]
        world(ops.GetDecision(first), agent="planner")
        again = log(world, agent="planner")
        assert again != first
    assert served["content"].startswith("Decision: Which database")
    assert len(ids(world(ops.ListDecisions()))) == 3


def test_decisions_and_changes_that_say_the_same_are_no_conflict_to_settle(world: World) -> None:
    home = "project:shop"
    made = [log(world, namespace=home) for _ in range(2)]
    for value in (30, 60):
        world(ops.RecordConfigChange("pool", "size", 10, value, namespace=home))
    twins = [world(ops.AddMemory("The shop is open", namespace=home)) for _ in range(2)]
    settled = world(ops.Consolidate(home, "keep_latest"))
    assert settled["archived"] == 1
    assert ids(world(ops.FindSimilarDecisions("Which database?"))) == made[::-1]
    assert world(ops.Count(namespace=home))["count"] == 5
    assert world(ops.GetMemory(twins[1]["memory_id"]))["memory"]["archived_at"] is None


BAD: dict[str, tuple[dict[str, Any], type[errors.RecollectError]]] = {
    "a blank context": ({"context": "  "}, errors.InvalidArgument),
    "a blank choice": ({"choice": "\t"}, errors.InvalidArgument),
    "a blank option": ({"options": ["a", " "]}, errors.InvalidArgument),
    "a NUL": ({"reasoning": "a\x00b"}, errors.InvalidArgument),
    "a NUL in an option": ({"options": ["a\x00b"]}, errors.InvalidArgument),
    "a NUL in the task": ({"task_id": "a\x00b"}, errors.InvalidArgument),
    "a NUL in the receipt": ({"receipt_id": "a\x00b"}, errors.InvalidArgument),
    "too sure": ({"confidence": 1.5}, errors.InvalidArgument),
    "not a number": ({"confidence": float("nan")}, errors.InvalidArgument),
    "too many options": ({"options": ["a"] * 65}, errors.LimitExceeded),
    "a long option": ({"options": ["a" * 10_001]}, errors.LimitExceeded),
    "too much altogether": (
        {"context": "a" * 150_000, "reasoning": "b" * 60_000},
        errors.LimitExceeded,
    ),
    "no namespace": ({"namespace": "nowhere"}, errors.InvalidArgument),
    "bad metadata": ({"metadata": {"a": float("inf")}}, errors.InvalidArgument),
}


def test_what_cannot_be_logged_is_refused_and_writes_nothing(world: World) -> None:
    for name, (given, error) in BAD.items():
        with pytest.raises(error):
            log(world, **given)
        assert count(world) == 0, name


def test_an_outcome_that_cannot_be_recorded_changes_nothing(world: World) -> None:
    decision_id = log(world)
    plain = world(ops.AddMemory("no decision"))["memory_id"]
    for asked, error in (
        (ops.RecordOutcome(decision_id, " "), errors.InvalidArgument),
        (ops.RecordOutcome(decision_id, "a\x00b"), errors.InvalidArgument),
        (ops.RecordOutcome(decision_id, "a" * 200_001), errors.LimitExceeded),
        (ops.RecordOutcome(plain, "fine"), errors.NotFound),
        (ops.RecordOutcome("nothing", "fine"), errors.NotFound),
    ):
        with pytest.raises(error):
            world(asked)
    decided = world(ops.GetDecision(decision_id))["decision"]
    assert (decided["version"], decided["outcome"]) == (1, None)


def test_a_purged_decision_leaves_no_columns(world: World) -> None:
    decision_id = log(world, task_id="t")
    world(ops.Purge(decision_id))
    assert ids(world(ops.ListDecisions("t"))) == []

    async def left() -> Any:
        return await world.storage.read(lambda s: s.execute("SELECT count(*) FROM decisions"))

    assert world.run(left()) == [(0,)]
