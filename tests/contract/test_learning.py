"""Learning: how tasks went, what sets the good apart, and what is suggested for the next one."""

from __future__ import annotations

from typing import Any, cast

import pytest

from recollect.protocol import errors
from recollect.protocol.operations import (
    Consolidate,
    Count,
    DeleteMemory,
    ExtractPattern,
    FindPattern,
    ForgetSource,
    GetMemory,
    LogDecision,
    Migrate,
    PatternFeedback,
    Purge,
    Recall,
    SaveStep,
    SaveTask,
    SearchPatterns,
    SearchSimilar,
    StoreExecution,
    StoreGoal,
    TaskContext,
    UpdateMemory,
)
from tests.harness.somebody import somebody
from tests.harness.worlds import World

NAMESPACE = "project:shop"
DEPLOYS = [
    ("Deploy the web shop to production", "Took a backup first, then ran the migration.", True),
    ("Deploy the web shop to production again", "Took a backup first and watched the logs.", True),
    ("Deploy the web shop to production on Friday", "Skipped the backup to save time.", False),
    ("Deploy the web shop to production late", "Skipped the backup, it was late.", False),
]
REPORTS = [
    ("Write the monthly sales report for March", "Asked finance for the numbers early.", True),
    ("Write the monthly sales report for April", "Asked finance for the numbers early.", True),
    ("Write the monthly sales report for May", "Guessed the numbers.", False),
]


def store(
    world: World, description: str, summary: str, success: bool, **options: Any
) -> dict[str, Any]:
    task_id = options.pop("task_id", description)
    options.setdefault("namespace", NAMESPACE)
    answer: dict[str, Any] = world(
        StoreExecution(task_id, summary, success, task_description=description, **options)
    )
    return answer


def store_all(world: World, told: list[tuple[str, str, bool]], **options: Any) -> list[str]:
    return [
        store(world, description, summary, success, **options)["execution_id"]
        for description, summary, success in told
    ]


def patterns(world: World, task_type: str | None = None, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world(SearchPatterns(task_type, **options))["patterns"]
    return found


def test_an_execution_is_a_memory_that_recall_finds(world: World) -> None:
    stored = store(
        world,
        "Rotate the certificates",
        "Restarted the proxy afterwards.",
        False,
        error_patterns=["handshake failed"],
        duration_ms=1200.0,
        metadata={"host": "a"},
        tags=["ops"],
        auto_extract_patterns=False,
    )
    assert stored["patterns"] == []
    memory = world(GetMemory(stored["execution_id"]))["memory"]
    assert (memory["collection"], memory["memory_tier"]) == ("executions", "medium")
    assert memory["seq"] == stored["seq"]
    for said in ("Rotate the certificates", "Restarted the proxy", "handshake failed"):
        assert said in memory["content"]
    recalled = world(Recall("Rotate the certificates", namespace=NAMESPACE))["results"]
    assert [found["id"] for found in recalled] == [stored["execution_id"]]
    [found] = world(SearchSimilar("Rotate the certificates"))["results"]
    assert found["similarity"] == pytest.approx(1.0, abs=0.01)
    assert (found["task_id"], found["task_type"]) == ("Rotate the certificates", "general")
    assert (found["success"], found["error_patterns"]) == (False, ["handshake failed"])
    assert (found["duration_ms"], found["metadata"], found["tags"]) == (
        1200,
        {"host": "a"},
        ["ops"],
    )


def test_what_is_not_said_comes_from_the_saved_task(world: World) -> None:
    world(SaveTask("Rotate the certificates", "T-1", task_type="ops", namespace=NAMESPACE))
    world(StoreExecution("T-1", "All good.", True, namespace=NAMESPACE))
    world(StoreExecution("T-2", "Painted the fence\nin green.", True, namespace=NAMESPACE))
    [known] = world(SearchSimilar("Rotate the certificates"))["results"]
    assert (known["task_description"], known["task_type"]) == ("Rotate the certificates", "ops")
    [unknown] = world(SearchSimilar("Painted the fence"))["results"]
    assert (unknown["task_description"], unknown["task_type"]) == ("Painted the fence", "general")
    # What another namespace calls by the same name is another task.
    world(StoreExecution("T-1", "Sang a song.", True, namespace="project:other"))
    [other] = world(SearchSimilar("Sang a song.", namespace="project:other"))["results"]
    assert other["task_type"] == "general"


def test_only_like_tasks_are_similar_whatever_came_of_them(world: World) -> None:
    long = "Then the logs were read line by line, and the team was told. " * 40
    store(world, "Deploy the web shop to production", long, True)
    store(world, "Write the monthly sales report", long, True)
    found = world(SearchSimilar("Deploy the web shop to the production"))["results"]
    assert [one["task_id"] for one in found] == ["Deploy the web shop to production"]
    assert found[0]["similarity"] >= 0.7
    assert world(SearchSimilar("Feed the cat"))["results"] == []
    assert world(SearchSimilar("Feed the cat", similarity_threshold=-1.0))["count"] == 2


def test_filters_apply_before_the_nearest_are_taken(world: World) -> None:
    for number in range(6):
        store(world, "Deploy the shop", "It broke.", False, task_id=f"bad-{number}")
    store(world, "Deploy the shops", "It worked.", True, task_id="good", task_type="ops")
    well = world(SearchSimilar("Deploy the shop", 1, success_only=True))["results"]
    assert [one["task_id"] for one in well] == ["good"]
    of_type = world(SearchSimilar("Deploy the shop", 1, task_type="ops"))["results"]
    assert [one["task_id"] for one in of_type] == ["good"]
    assert world(SearchSimilar("Deploy the shop", 1, task_type="none"))["count"] == 0
    assert world(SearchSimilar("Deploy the shop", 9, namespace="project:none"))["count"] == 0


def test_what_is_shown_counts_as_reused_and_stays_counted(world: World) -> None:
    store(world, "Deploy the shop", "It worked.", True)
    store(world, "Feed the cat", "It ate.", True)
    reader = somebody("reader", read=(NAMESPACE,))
    counts = [
        world(SearchSimilar("Deploy the shop"), reader)["results"][0]["reuse_count"]
        for _ in range(3)
    ]
    assert counts == [1, 2, 3]
    world.restart()
    assert world(SearchSimilar("Deploy the shop"))["results"][0]["reuse_count"] == 4
    assert world(SearchSimilar("Feed the cat"))["results"][0]["reuse_count"] == 1


def test_what_sets_successes_apart_becomes_a_pattern(world: World) -> None:
    ids = store_all(world, DEPLOYS, task_type="deploy")
    [pattern] = patterns(world)
    assert pattern["pattern_type"] == "mixed"
    assert pattern["task_type"] == "deploy"
    assert pattern["trigger"].startswith("Deploy the web shop")
    assert "took a backup first" in pattern["success_indicators"]
    assert "skipped the backup" in pattern["failure_indicators"]
    assert pattern["recommended_context"][0] == (
        "Do: took a backup first (in 2 of 2 that went well, in 0 of 2 that did not)."
    )
    assert any(
        line.startswith("Avoid: skipped the backup") for line in pattern["recommended_context"]
    )
    assert (pattern["successes"], pattern["failures"], pattern["confidence"]) == (2, 2, 0.5)
    assert pattern["executions"] == ids[::-1]
    memory = world(GetMemory(pattern["id"]))["memory"]
    assert (memory["collection"], memory["memory_tier"]) == ("patterns", "long")
    assert pattern["recommended_context"][0] in memory["content"]


def test_one_execution_teaches_nothing_and_two_do(world: World) -> None:
    assert store(world, *DEPLOYS[0])["patterns"] == []
    assert patterns(world) == []
    learned = store(world, *DEPLOYS[1])["patterns"]
    assert [pattern["id"] for pattern in patterns(world)] == learned
    assert patterns(world)[0]["pattern_type"] == "success"


def test_a_later_lesson_is_the_next_version_of_the_same_pattern(world: World) -> None:
    store_all(world, DEPLOYS[:2])
    [first] = patterns(world)
    world(PatternFeedback(first["id"], True))
    learned = store(world, *DEPLOYS[2])["patterns"]
    [second] = patterns(world)
    assert learned == [first["id"]] == [second["id"]]
    assert second["version"] == first["version"] + 2
    assert second["pattern_type"] == "mixed"
    # What those who used it said stays with it.
    assert (second["successes"], second["failures"], second["usage_count"]) == (3, 1, 1)
    again = world(ExtractPattern(namespace=NAMESPACE))
    assert (again["created"], again["updated"], again["examined"]) == (0, 0, 3)
    assert [pattern["version"] for pattern in again["patterns"]] == [second["version"]]


def test_kinds_of_tasks_are_told_apart(world: World) -> None:
    store_all(world, DEPLOYS + REPORTS, auto_extract_patterns=False)
    store_all(world, DEPLOYS, namespace="project:other", auto_extract_patterns=False)
    assert patterns(world) == []
    dry = world(ExtractPattern(namespace=NAMESPACE, dry_run=True))
    assert (len(dry["patterns"]), dry["created"], dry["examined"]) == (2, 0, 7)
    assert patterns(world) == []
    done = world(ExtractPattern(namespace=NAMESPACE))
    assert (done["created"], done["updated"]) == (2, 0)
    assert {len(pattern["executions"]) for pattern in done["patterns"]} == {3, 4}
    for dried, real in zip(dry["patterns"], done["patterns"], strict=True):
        for name in ("trigger", "summary", "recommended_context", "confidence", "executions"):
            assert dried[name] == real[name]
    assert patterns(world, namespace="project:other") == []


def test_executions_of_another_type_are_another_kind(world: World) -> None:
    store_all(world, DEPLOYS, task_type="manual")
    store_all(world, DEPLOYS[:2], task_type="automatic")
    assert sorted(pattern["task_type"] for pattern in patterns(world)) == ["automatic", "manual"]
    assert world(ExtractPattern("manual", namespace=NAMESPACE))["examined"] == 4


def test_one_can_learn_from_chosen_executions_only(world: World) -> None:
    ids = store_all(world, DEPLOYS, auto_extract_patterns=False)
    other = store(world, *REPORTS[0], namespace="project:other")["execution_id"]
    for bad in ("0" * 26, other):
        with pytest.raises(errors.NotFound):
            world(ExtractPattern(None, [ids[0], bad], namespace=NAMESPACE))
    done = world(ExtractPattern(None, ids[:2], namespace=NAMESPACE))
    [pattern] = done["patterns"]
    assert (done["examined"], pattern["pattern_type"]) == (2, "success")
    # The rest belongs to the same pattern.
    done = world(ExtractPattern(namespace=NAMESPACE))
    assert [(p["id"], p["pattern_type"]) for p in done["patterns"]] == [(pattern["id"], "mixed")]


def test_the_right_pattern_is_suggested_and_feedback_changes_which(world: World) -> None:
    store_all(world, DEPLOYS[:2] + REPORTS, task_type="by_hand")
    store_all(world, DEPLOYS[:2], task_type="by_script")

    def suggested(trigger: str) -> Any:
        return world(FindPattern(trigger))["pattern"]

    report = suggested("Write the monthly sales report for June")
    assert report["trigger"].startswith("Write the monthly sales report")
    first = suggested("Deploy the web shop to production")
    assert first["trigger"].startswith("Deploy the web shop")
    assert first["similarity"] >= 0.9
    rated = world(PatternFeedback(first["id"], False))
    assert rated["confidence"] < first["confidence"]
    assert (rated["usage_count"], rated["version"]) == (1, first["version"] + 1)
    second = suggested("Deploy the web shop to production")
    assert second["task_type"] != first["task_type"]
    assert second["trigger"].startswith("Deploy the web shop")
    for _ in range(3):
        world(PatternFeedback(first["id"], True))
    assert suggested("Deploy the web shop to production")["id"] == first["id"]
    # Nothing that was learned fits, however well it is proven.
    assert suggested("Feed the cat") is None
    assert world(FindPattern("Feed the cat", threshold=-1.0))["pattern"] is not None
    assert world(FindPattern("Deploy the web shop", threshold=0.999))["pattern"] is None


def test_feedback_counts_once_however_often_it_is_sent(world: World) -> None:
    store_all(world, DEPLOYS)
    [pattern] = patterns(world)
    answers = [world(PatternFeedback(pattern["id"], True), key="once") for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert (answers[0]["successes"], answers[0]["failures"]) == (3, 2)
    assert answers[0]["confidence"] == pytest.approx(4 / 7)
    assert patterns(world)[0]["usage_count"] == 1


def test_a_repeated_execution_is_one_and_still_names_its_patterns(world: World) -> None:
    store(world, *DEPLOYS[0])
    storing = StoreExecution(
        "x", DEPLOYS[1][1], True, namespace=NAMESPACE, task_description=DEPLOYS[1][0]
    )
    first, again = world(storing, key="k"), world(storing, key="k")
    assert first == again
    assert first["patterns"]
    assert world(Count(namespace=NAMESPACE, filters={"collection": "executions"}))["count"] == 2
    extracting = ExtractPattern(namespace=NAMESPACE)
    assert world(extracting, key="e") == world(extracting, key="e")


def test_patterns_are_searched_by_an_expression_over_their_types(world: World) -> None:
    for kind in ("deploy.web", "deploy.db", "report"):
        store_all(world, DEPLOYS[:2], task_type=kind)
    store_all(world, [(d, s, False) for d, s, _ in REPORTS], task_type="report.failed")

    def kinds(expression: str | None = None, **options: Any) -> list[str]:
        return sorted(pattern["task_type"] for pattern in patterns(world, expression, **options))

    assert kinds("^deploy") == ["deploy.db", "deploy.web"]
    assert kinds(r"\.(db|failed)$") == ["deploy.db", "report.failed"]
    assert kinds("port") == ["report", "report.failed"]
    assert kinds("nothing") == []
    assert kinds("(e|ee)+$|(r+)+t$") == ["report"]
    assert kinds(pattern_type="failure") == ["report.failed"]
    assert kinds(min_confidence=0.5) == ["deploy.db", "deploy.web", "report"]
    assert kinds("report", limit=1) == ["report"]
    for bad in ("(", "a{2,1}", r"(a)\1", "(?=a)", "*", "((a{99}){99}){99}"):
        with pytest.raises(errors.InvalidArgument) as refused:
            patterns(world, bad)
        assert refused.value.details["field"] == "task_type"
        assert isinstance(refused.value.details["position"], int)


def test_who_does_not_say_what_was_to_be_done_is_taught_all_the_same(world: World) -> None:
    for number, (_, summary, success) in enumerate(DEPLOYS * 2):
        world(StoreExecution(f"t{number}", summary, success, namespace=NAMESPACE))
    told = [one for pattern in patterns(world) for one in pattern["recommended_context"]]
    assert any(line.startswith("Do: took a backup first") for line in told)
    # However long the only line is, it is stored.
    world(StoreExecution("long", "word " * 25_000, True, namespace=NAMESPACE))


def test_what_happened_is_not_rewritten(world: World) -> None:
    execution_id = store(world, *DEPLOYS[0])["execution_id"]
    for change in ({"content": "It was otherwise."}, {"value": 1}):
        with pytest.raises(errors.InvalidArgument, match="one of executions"):
            world(UpdateMemory(execution_id, change))
    world(UpdateMemory(execution_id, {"tags": ["seen"]}))
    [found] = world(SearchSimilar(DEPLOYS[0][0]))["results"]
    assert (found["execution_summary"], found["tags"]) == (DEPLOYS[0][1], ["seen"])


def test_an_execution_that_moves_on_is_found_all_the_same(world: World) -> None:
    store_all(world, DEPLOYS)
    world.clock.advance(40 * 86_400)
    assert world(Migrate(NAMESPACE))["to_longterm"] == len(DEPLOYS)
    assert world(SearchSimilar(DEPLOYS[0][0], 10, 0.3))["count"] == len(DEPLOYS)
    assert len(patterns(world)[0]["executions"]) == len(DEPLOYS)


def test_bad_input_writes_nothing(world: World) -> None:
    before = world(Count())["count"]
    for bad in (
        StoreExecution("t", "   ", True),
        StoreExecution("", "x", True),
        StoreExecution("t", "x", True, ["  "]),
        StoreExecution("t", "x", True, task_description="\x00"),
        StoreExecution("t", "x", True, duration_ms=float("nan")),
        StoreExecution("t", "x", True, task_type="No Type"),
        StoreExecution("t", "x", True, namespace="nowhere"),
        SearchSimilar("x", similarity_threshold=2.0),
        FindPattern("x", threshold=float("nan")),
        FindPattern("x", threshold=2.0),
        SearchPatterns(pattern_type=cast(Any, "good")),
        ExtractPattern(namespace="nowhere"),
    ):
        with pytest.raises(errors.InvalidArgument):
            world(bad)
    for unknown in (PatternFeedback("0" * 26, True), TaskContext("t")):
        with pytest.raises(errors.NotFound):
            world(unknown)
    for large in (
        StoreExecution("t", "x" * 200_001, True),
        StoreExecution("t", "x", True, ["e"] * 65),
        StoreExecution("t", "x" * 150_000, True, task_description="y" * 150_000),
        SearchSimilar("x", 1_001),
    ):
        with pytest.raises(errors.LimitExceeded):
            world(large)
    assert world(Count())["count"] == before
    execution_id = store(world, *DEPLOYS[0])["execution_id"]
    with pytest.raises(errors.NotFound):
        world(PatternFeedback(execution_id, True))


def test_what_is_not_yours_is_neither_found_nor_learned_from(world: World) -> None:
    store_all(world, DEPLOYS)
    [pattern] = patterns(world)
    guest = somebody("guest", read=("project:open",), write=("project:mine",))
    assert world(SearchSimilar(DEPLOYS[0][0]), guest)["results"] == []
    assert world(FindPattern(DEPLOYS[0][0]), guest)["pattern"] is None
    assert world(SearchPatterns(), guest)["patterns"] == []
    with pytest.raises(errors.NotFound):
        world(PatternFeedback(pattern["id"], False), guest)
    with pytest.raises(errors.Forbidden):
        world(ExtractPattern(namespace=NAMESPACE), guest)
    with pytest.raises(errors.NotFound):
        world(TaskContext(DEPLOYS[0][0], namespace=NAMESPACE), guest)
    reader = somebody("reader", read=(NAMESPACE,))
    with pytest.raises(errors.Forbidden):
        world(PatternFeedback(pattern["id"], False), reader)
    assert patterns(world) == [pattern]


def test_what_is_deleted_or_purged_teaches_no_more(world: World) -> None:
    ids = store_all(world, DEPLOYS)
    [pattern] = patterns(world)
    # A pattern may repeat what it was learned from, and a purge says so.
    assert world(Purge(ids[0]))["derived_ids"] == [pattern["id"]]
    world(DeleteMemory(ids[2]))
    assert patterns(world)[0]["executions"] == [ids[3], ids[1]]
    [learned] = world(ExtractPattern(namespace=NAMESPACE))["patterns"]
    assert (learned["id"], learned["executions"]) == (pattern["id"], [ids[3], ids[1]])
    assert (learned["successes"], learned["failures"]) == (1, 1)
    world(Purge(pattern["id"]))
    assert patterns(world) == []
    assert world(ExtractPattern(namespace=NAMESPACE))["created"] == 1


def test_taking_a_source_back_takes_what_was_learned_from_it(world: World) -> None:
    for description, summary, success in DEPLOYS[:2]:
        storing = StoreExecution(
            "t", summary, success, namespace=NAMESPACE, task_description=description
        )
        world(storing, agent="liar")
    assert len(patterns(world)) == 1
    world(ForgetSource("liar"))
    assert patterns(world) == []
    assert world(SearchSimilar(DEPLOYS[0][0]))["results"] == []


def test_consolidation_leaves_executions_and_patterns_alone(world: World) -> None:
    store_all(world, [DEPLOYS[0]] * 3, task_type="a")
    store_all(world, [DEPLOYS[0]] * 3, task_type="b")
    assert world(Consolidate(NAMESPACE, "keep_latest"))["archived"] == 0
    assert len(patterns(world)) == 2


def test_the_context_of_a_task_is_all_that_is_known_of_it(world: World) -> None:
    store_all(world, DEPLOYS, task_type="deploy")
    goal_id = world(StoreGoal("Sell more", namespace=NAMESPACE))["goal_id"]
    world(
        SaveTask(
            "Deploy the web shop to production now", "T-9", goal_id=goal_id, namespace=NAMESPACE
        )
    )
    world(SaveStep("T-9", 1, "shell", {"command": "ls"}, "ok", True, 3.0, namespace=NAMESPACE))
    world(
        LogDecision(
            "How to deploy",
            ["by hand", "by script"],
            "by script",
            task_id="T-9",
            namespace=NAMESPACE,
        )
    )
    world(StoreExecution("T-9", "Rolled back.", False, namespace=NAMESPACE))
    context = world(TaskContext("T-9", namespace=NAMESPACE))
    assert context["task"]["task_id"] == "T-9"
    assert context["goal"]["id"] == goal_id
    assert [step["tool_name"] for step in context["steps"]] == ["shell"]
    assert [decision["choice"] for decision in context["decisions"]] == ["by script"]
    assert [one["execution_summary"] for one in context["executions"]] == ["Rolled back."]
    assert len(context["similar"]) == 4
    assert "T-9" not in [one["task_id"] for one in context["similar"]]
    assert context["patterns"][0]["task_type"] == "deploy"
    assert "degraded" not in context
    # A task that was never saved may have been tried all the same.
    tried = world(TaskContext(DEPLOYS[0][0], namespace=NAMESPACE))
    assert (tried["task"], tried["goal"], len(tried["executions"])) == (None, None, 1)
    with pytest.raises(errors.NotFound):
        world(TaskContext("T-9", namespace="project:other"))
