"""recall, search and reembed over a real orchestrator, for people and for programs."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import MemoryClient
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import RECOLLECT, CommandLine

TURNS = (
    ("Ben", "When does the database migration run?"),
    ("Anna", "It runs on Friday at night, I migrated the staging database already."),
    ("Ben", "Good, then I sleep well."),
)


@pytest.fixture(scope="module")
def recollect(storage: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line over a store with a conversation and some notes, shared by all tests."""
    folder = tmp_path_factory.mktemp("search")
    with OrchestratorProcess(folder / "data") as process:
        with process.client() as client:
            session = client.create_session("team", "chat")["session_id"]
            client.add_memory(
                "Lunch is at noon.", "semantic", importance=0.9, tags=["food"], metadata={"page": 3}
            )
            client.add_memory("Lunch is at noon.", namespace="user:ben")
            client.add_memory("Lunch was late today.", importance=0.2)
        for speaker, text in TURNS:
            with MemoryClient(process.endpoint, agent_id=speaker, session_id=session) as client:
                client.add_memory(text, "episodic", namespace="project:site")
        yield CommandLine(folder, process.endpoint)


def test_recall_answers_a_question_as_people_like_to_read_it(recollect: CommandLine) -> None:
    answer = recollect("recall", "When did Anna migrate the database?", "-k", "2")
    assert (answer.code, answer.err) == (0, "There are more: --limit 10 shows them.\n")
    first = answer.out.splitlines()[0]
    assert first.startswith(" 1 ■■■■■ ")
    assert first.rstrip().endswith(TURNS[1][1])
    assert "Anna · " in answer.out and "project:site · episodic" in answer.out
    assert "\x1b" not in answer.out
    narrow = recollect("recall", "When did Anna migrate the database?", COLUMNS="60")
    assert max(map(len, narrow.out.splitlines())) <= 60


def test_recall_explains_and_shows_what_stands_around(recollect: CommandLine) -> None:
    told = recollect("recall", "staging database", "-k", "1", "--explain", "--neighbours", "1").out
    lines = [line.strip() for line in told.splitlines()]
    hit = next(number for number, line in enumerate(lines) if line.endswith(TURNS[1][1]))
    assert lines[hit - 1] == f"Ben: {TURNS[0][1]}"
    assert lines[hit + 1] == f"Ben: {TURNS[2][1]}"
    assert "lexical" in told and "semantic" in told and "words in common" in told


def test_recall_counts_those_that_say_the_same_and_shows_them_if_asked(
    recollect: CommandLine,
) -> None:
    collapsed = recollect("recall", "When is lunch?").out
    assert "(and 1 that says the same)" in collapsed
    assert collapsed.count("Lunch is at noon.") == 1
    assert recollect("recall", "When is lunch?", "--duplicates").out.count("Lunch is at noon.") == 2


@pytest.mark.parametrize("command", [("recall",), ("search",), ("search", "--semantic")])
def test_only_what_fits_is_found(recollect: CommandLine, command: tuple[str, ...]) -> None:
    def found(*options: str) -> list[str]:
        answer = recollect(*command, "lunch", "--json", *options)
        assert answer.code == 0, answer
        return [result["id"] for result in answer.json()["results"]]

    [wanted] = found("-w", "importance>=0.5", "-w", "tag=food", "--where", "metadata.page=3")
    important = '{"importance": {"gt": 0.8}}'
    assert found("--filter", important, "-n", "app:default", "--type", "semantic") == [wanted]
    assert wanted not in found("--where", "tag!=food")
    assert found("--as-of", "2001-01-01") == []
    assert found("--threshold", "1000") == []


def test_the_cursor_of_an_answer_leads_to_the_next_one(recollect: CommandLine) -> None:
    first = recollect("search", "lunch", "-k", "1", "--json").json()
    second = recollect("search", "lunch", "-k", "1", "--json", "--cursor", first["cursor"]).json()
    assert first["results"][0]["id"] != second["results"][0]["id"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--where", "importance"), "has no comparison"),
        (("--where", "importance>=much"), "not a number"),
        (("--filter", "importance"), "--filter is not a JSON object"),
        (("--where", "impotance=1"), "did you mean 'importance'?"),
        (("--as-of", "soon"), "is not a time"),
    ],
)
def test_what_cannot_be_asked_for_is_told(
    recollect: CommandLine, options: tuple[str, ...], reason: str
) -> None:
    answer = recollect("recall", "x", *options)
    assert answer.code in (1, 2) and answer.out == ""
    assert reason in answer.err
    assert "(invalid_argument)" in answer.err


def test_where_nothing_is_found_it_says_what_to_try(recollect: CommandLine) -> None:
    nothing = recollect("search", "zebra")
    assert (nothing.code, nothing.out) == (0, "")
    assert 'recollect recall "zebra"' in nothing.err


def test_another_model_is_exchanged_while_one_waits_or_leaves(tmp_path: Path) -> None:
    # An endpoint that nobody listens on: embedding with it begins, and waits.
    nobody = {
        "RECOLLECT_EMBEDDING_OPENAI_URL": "http://127.0.0.1:9/v1",
        "RECOLLECT_EMBEDDING_OPENAI_ATTEMPTS_MAX": "1",
        "OPENAI_API_KEY": "none",
    }
    with OrchestratorProcess(tmp_path / "data", env=nobody) as process:
        recollect = CommandLine(tmp_path, process.endpoint)
        recollect("add", "Kept through every change.")
        changed = recollect("reembed", "--provider", "hashed", "--model", "x", "--dimensions", "64")
        assert changed.code == 0, changed
        assert "All memories are embedded with hashed-" in changed.out
        stats = recollect("stats")
        assert "64 dimensions" in stats.out and "done: hashed-" in stats.out
        found = recollect("search", "--semantic", "kept through changes", "--json").json()
        assert found["count"] == 1

        remote = ("reembed", "--provider", "openai", "--model", "far", "--dimensions", "64")
        with subprocess.Popen(
            [*RECOLLECT, *remote],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=recollect.environment(),
            text=True,
        ) as waiting:
            assert waiting.stderr is not None
            assert "anew with openai/far/64" in waiting.stderr.readline()
            waiting.send_signal(signal.SIGINT)
            _, said = waiting.communicate(timeout=60)
            assert waiting.returncode == 130, said
            assert "It goes on in the background" in said
            assert "Traceback" not in said
        assert "openai/far" in recollect("stats").out
        started = recollect(*remote, "--no-wait", "--json").json()
        assert started["state"] == "running"
