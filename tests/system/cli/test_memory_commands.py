"""add, get, search, list and history over a real orchestrator, for people and for programs."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import termios

import psutil
import pytest

from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine, wait_for


def added(recollect: CommandLine, *args: str) -> str:
    answer = recollect("add", *args, "--json")
    assert answer.code == 0, answer
    memory_id: str = answer.json()["memory_id"]
    return memory_id


def test_what_is_added_can_be_got_with_everything_that_was_said(recollect: CommandLine) -> None:
    parent = added(recollect, "The deploys.")
    answer = recollect(
        *("add", "Deploys go out on Fridays.", "--type", "semantic", "--tier", "long"),
        *("--importance", "0.9", "--tag", "ops", "--tag", "deploy", "-n", "project:site"),
        *("--key", "deploy-day", "--metadata", '{"seen": [1, 2]}', "--parent", parent),
    )
    assert answer.code == 0
    assert answer.out.startswith("Stored ")
    memory_id = answer.out.split()[-1]

    memory = recollect("get", memory_id, "--json").json()["memory"]
    assert memory["content"] == "Deploys go out on Fridays."
    assert (memory["memory_type"], memory["memory_tier"]) == ("semantic", "long")
    assert (memory["importance"], memory["tags"]) == (0.9, ["ops", "deploy"])
    assert (memory["namespace"], memory["key"]) == ("project:site", "deploy-day")
    assert (memory["metadata"], memory["parent_id"]) == ({"seen": [1, 2]}, parent)
    assert memory["created_by"] == "cli"

    shown = recollect("get", memory_id).out
    for text in (memory_id, "Deploys go out on Fridays.", "project:site", "#ops", '{"seen":[1,2]}'):
        assert text in shown


def test_json_is_exactly_the_reply_of_the_call(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    added(recollect, "Exactly this.")
    with orchestrator.client() as client:
        listed, called = recollect("list", "--json").json(), client.list_memories(limit=20)
        # Strength is computed for the moment of the answer.
        called["memories"][0]["strength"] = listed["memories"][0]["strength"]
        assert listed == called
        assert recollect("stats", "--json").json().keys() == client.stats().keys()
        assert recollect("ping", "--json").json().keys() == client.ping().keys()


def test_a_dash_reads_the_text_from_standard_input(recollect: CommandLine) -> None:
    answer = recollect("add", "-", "--json", given="Two lines,\nand umlauts: äöü.\n")
    memory = recollect("get", answer.json()["memory_id"], "--json").json()["memory"]
    assert memory["content"] == "Two lines,\nand umlauts: äöü."


def test_a_memory_can_be_named_by_the_end_of_its_id(recollect: CommandLine) -> None:
    memory_id = added(recollect, "Short ids are enough.")
    added(recollect, "Another one.")
    listed = recollect("list", COLUMNS="80").out
    assert memory_id not in listed
    assert memory_id[-8:] in listed
    assert memory_id in recollect("list", "--full-ids", COLUMNS="80").out
    assert recollect("get", memory_id[-8:], "--json").json()["memory"]["id"] == memory_id
    assert recollect("history", memory_id[-8:], "--json").json()["memory_id"] == memory_id


def test_an_end_that_fits_several_ids_is_refused(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    # An end of four digits has 65,536 values: among 4,000 ids two are certain to share one.
    with orchestrator.client() as client:
        ids: dict[str, str] = {}
        for _ in range(40):
            batch = client.batch_add_memories([{"content": "x"}] * 100)
            for memory_id in filter(None, batch["memory_ids"]):
                if memory_id[-4:] in ids:
                    answer = recollect("get", memory_id[-4:], "--json")
                    assert answer.code == 1
                    assert answer.json()["error"]["code"] == "ambiguous_id"
                    assert memory_id in answer.json()["error"]["message"]
                    return
                ids[memory_id[-4:]] = memory_id
    pytest.fail("no two ids of 4,000 ended alike")


def test_the_end_of_an_old_id_is_found_behind_many_that_contain_it(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    old, newer = "01900000-0000-7000-8000-00000000beef", "01910000-0000-7000-8000-00000001beef"
    between = [f"0190{n:04x}-0000-7000-beef-000000000000" for n in range(1, 151)]
    with orchestrator.client() as client:
        client.add_memory("A memory.")
        exported = client.export_records()["records"]

        def take_in(*ids: str) -> None:
            text = json.dumps(exported)
            [memory_id] = {one["id"] for one in exported if one["kind"] == "memory"}
            records = [one for new in ids for one in json.loads(text.replace(memory_id, new))]
            assert client.import_records(records)["added"] == len(ids)

        take_in(old, *between)
        found = recollect("get", "beef", "--json").json()
        assert found["memory"]["id"] == old, found
        take_in(newer)
        refused = recollect("get", "beef", "--json")
    assert refused.json()["error"]["code"] == "ambiguous_id"
    assert "2 ids end in beef" in refused.json()["error"]["message"]


def test_search_finds_by_words_and_by_meaning(recollect: CommandLine) -> None:
    memory_id = added(recollect, "The database migration runs at night.", "--type", "semantic")
    added(recollect, "Lunch is at noon.")
    for options in ((), ("--semantic",)):
        found = recollect("search", "migration", "--limit", "1", *options, "--json").json()
        assert [result["id"] for result in found["results"]] == [memory_id]
        shown = recollect("search", "migration", "--limit", "1", *options).out
        assert "The database migration runs at night." in shown
        nothing = recollect("search", "lunch", "--type", "semantic", "-n", "user:x", *options)
        assert nothing.code == 0
        assert "Nothing was found." in nothing.err


def test_list_says_how_to_begin_when_there_is_nothing(recollect: CommandLine) -> None:
    answer = recollect("list")
    assert (answer.code, answer.out) == (0, "")
    assert "recollect add" in answer.err
    assert "No memory fits" in recollect("list", "--type", "unheard").err


def test_list_all_reads_every_page(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    with orchestrator.client() as client:
        client.batch_add_memories([{"content": f"memory {number}"} for number in range(1100)])
    few = recollect("list", "--limit", "5")
    assert few.out.count("memory ") >= 5
    assert "5 of 1,100 memories; --limit or --all shows more" in few.err
    everything = recollect("list", "--all", "--json").json()
    assert len({memory["id"] for memory in everything["memories"]}) == 1100
    assert (everything["count"], everything["cursor"]) == (1100, None)
    assert "1,100 memories" in recollect("list", "--all").err


def test_list_ends_quietly_when_its_reader_goes_away(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    with orchestrator.client() as client:
        client.batch_add_memories([{"content": "x" * 500} for _ in range(1000)])
    command = f"{sys.executable} -m recollect list --all --json | head -c 10"
    ended = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=recollect.folder,
        env=recollect.environment(),
    )
    assert len(ended.stdout) == 10
    assert "Traceback" not in ended.stderr


def test_history_shows_the_versions_also_of_a_deleted_memory(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    memory_id = added(recollect, "As it was.")
    with orchestrator.client() as client:
        client.update_memory(memory_id, {"content": "As it is."})
        client.delete_memory(memory_id)
    answer = recollect("history", memory_id)
    assert answer.code == 0
    for text in ("As it was.", "As it is.", "delete_memory", "update_memory"):
        assert text in answer.out
    versions = recollect("history", memory_id, "--json").json()["versions"]
    assert [entry["version"] for entry in versions] == [3, 2, 1]


def test_stored_text_cannot_command_the_terminal(recollect: CommandLine) -> None:
    memory_id = added(recollect, "[bold]no markup[/bold] \x1b]0;title\x07\x1b[31mred")
    for shown in (recollect("list").out, recollect("get", memory_id).out):
        assert "[bold]no markup[/bold]" in shown
        assert "\x1b" not in shown and "\x07" not in shown


def test_names_that_look_like_markup_are_shown_as_they_are(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    with orchestrator.client(agent_id="crew[planner]") as client:
        memory_id = client.add_memory("Agreed.")["memory_id"]
    with orchestrator.client(agent_id="bot[/x]") as client:
        client.update_memory(memory_id, {"content": "Agreed again."})
        client.forget_source("nobody", dry_run=False)
    shown = recollect("history", memory_id)
    assert shown.code == 0, shown
    assert "crew[planner]" in shown.out and "bot[/x]" in shown.out
    assert recollect("runs").code == 0


@pytest.mark.parametrize(
    ("args", "code", "exit_code"),
    [
        (("get", "00000000-0000-7000-8000-000000000000"), "not_found", 1),
        (("add", "x", "--tier", "forever"), "invalid_argument", 1),
        (("add", "x", "--namespace", "nowhere"), "invalid_argument", 1),
        (("add", "x", "--metadata", "[1]"), "invalid_argument", 2),
        (("ping", "--endpoint", "nonsense"), "invalid_argument", 2),
    ],
)
def test_errors_are_told_to_people_and_to_programs(
    recollect: CommandLine, args: tuple[str, ...], code: str, exit_code: int
) -> None:
    for_people = recollect(*args)
    assert (for_people.code, for_people.out) == (exit_code, "")
    assert for_people.err.startswith("Error: ")
    assert f"({code})" in for_people.err
    for_programs = recollect(*args, "--json")
    assert (for_programs.code, for_programs.err) == (exit_code, "")
    assert for_programs.json()["status"] == "error"
    assert for_programs.json()["error"]["code"] == code


def test_a_wrong_option_is_a_usage_error(recollect: CommandLine) -> None:
    for args in (("add",), ("search", "x", "--limit", "0"), ("list", "--nonsense"), ("nonsense",)):
        assert recollect(*args).code == 2


def test_where_nobody_answers_the_error_says_how_to_start(alone: CommandLine) -> None:
    answer = alone("search", "x")
    assert answer.code == 1
    assert "recollect up" in answer.err
    assert "(unreachable)" in answer.err
    assert alone("search", "x", "--json").json()["error"]["retryable"] is True


def waits_for_more(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has read all that was written to it, and sleeps."""
    assert process.stdin is not None
    unread = int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)), sys.byteorder)
    return unread == 0 and psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING


def test_ctrl_c_ends_a_command_with_130(recollect: CommandLine) -> None:
    command = [sys.executable, "-m", "recollect", "add", "-"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=recollect.folder,
        env=recollect.environment(),
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"x" * 1_000)
        process.stdin.flush()
        wait_for(lambda: waits_for_more(process))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert b"Traceback" not in process.stderr.read()
