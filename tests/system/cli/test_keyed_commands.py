"""put, get by key, namespaces and sessions over a real orchestrator, for people and programs."""

from __future__ import annotations

from typing import Any

from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine

UNKNOWN = "00000000-0000-7000-8000-000000000000"


VALUES: dict[str, Any] = {
    "vim": "vim",
    '{"name": "vim", "since": 1991}': {"name": "vim", "since": 1991},
    "42": 42,
    "null": None,
    '"42"': "42",
    "{not json": "{not json",
}


def test_what_is_put_is_json_or_else_text(recollect: CommandLine) -> None:
    for given, value in VALUES.items():
        stored = recollect("put", "user:alice", "editor", given)
        assert stored.code == 0, stored
        assert stored.out.startswith("Stored ")
        memory = recollect("get", "user:alice", "editor", "--json").json()["memory"]
        assert memory["value"] == value
        assert memory["id"] == stored.out.split()[-1]
        assert (memory["memory_type"], memory["created_by"]) == ("semantic", "cli")


def test_what_is_put_can_be_got_in_every_version(recollect: CommandLine) -> None:
    first = recollect(
        *("put", "user:alice", "editor", "42", "--text", "--type", "procedural"),
        *("--metadata", '{"seen": 1}', "--content", "The editor is vi", "--expected-version", "0"),
        "--json",
    ).json()
    assert (first["created"], first["version"]) == (True, 1)
    second = recollect("put", "user:alice", "editor", "-", given="two\nlines\n")
    assert "Stored version 2 of" in second.out
    was = recollect("get", "user:alice", "editor", "--version", "1", "--json").json()["memory"]
    assert (was["value"], was["memory_type"]) == ("42", "procedural")
    assert (was["content"], was["metadata"]) == ("The editor is vi", {"seen": 1})
    then = recollect("get", "user:alice", "editor", "--as-of", was["updated_at"], "--json").json()
    assert then["memory"]["version"] == 1
    by_id = recollect("get", first["memory_id"], "--version", "1", "--json").json()["memory"]
    assert by_id["value"] == "42"
    shown = recollect("get", "user:alice", "editor").out
    for text in ("two\\nlines", "user:alice", "editor", first["memory_id"]):
        assert text in shown
    versions = recollect("history", "user:alice", "editor", "--json").json()["versions"]
    assert [entry["version"] for entry in versions] == [2, 1]
    assert "The editor is vi" in recollect("history", "user:alice", "editor").out


def test_namespaces_are_listed_with_how_much_they_hold(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    nothing = recollect("namespaces")
    assert (nothing.code, nothing.out) == (0, "")
    assert "No namespace" in nothing.err
    with orchestrator.client() as client:
        for namespace in ("user:alice", "user:alice:notes", "user:alice2", "app:x"):
            for key in ("a", "b"):
                client.put(namespace, key, 1)
    answer = recollect("namespaces", "user:alice", "--json").json()
    assert answer["namespaces"] == [
        {"namespace": "user:alice", "memories": 2},
        {"namespace": "user:alice:notes", "memories": 2},
    ]
    shown = recollect("namespaces")
    assert [line.split() for line in shown.out.splitlines()[1:]] == [
        ["app:x", "2"],
        ["user:alice", "2"],
        ["user:alice2", "2"],
        ["user:alice:notes", "2"],
    ]
    assert "4 namespaces" in shown.err
    few = recollect("namespaces", "--limit", "1")
    assert "user:alice" not in few.out
    assert "--limit shows more" in few.err


def test_sessions_are_listed_shown_and_ended(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    assert "No session" in recollect("sessions", "list").err
    with orchestrator.client(agent_id="planner") as client:
        first = client.create_session("alice", "research", {"topic": "tea"})["session_id"]
        second = client.create_session("bob", app="chess")["session_id"]
        for n in range(3):
            client.append_event(first, {"said": f"event {n}"}, {"step": n, "temp:guess": "green"})

    listed = recollect("sessions", "list", "--json").json()["sessions"]
    assert [session["id"] for session in listed] == [second, first]
    assert recollect("sessions", "list", "-u", "alice", "--json").json()["count"] == 1
    assert recollect("sessions", "list", "--app", "chess", "--json").json()["count"] == 1
    assert recollect("sessions", "list", "--status", "active", "--json").json()["count"] == 1
    table = recollect("sessions", "list").out
    for text in (first, second, "alice", "bob", "chess/conversation", "active", "created"):
        assert text in table
    assert "--limit shows more" in recollect("sessions", "list", "--limit", "1").err

    shown = recollect("sessions", "show", first)
    for text in ("research", '{"topic":"tea"}', "step", "temp:guess", "green", '"event 2"'):
        assert text in shown.out
    assert recollect("sessions", "show", first, "--events", "1", "--json").json()["events"] == [
        recollect("sessions", "events", first, "--after", "2", "--json").json()["events"][0]
    ]
    events = recollect("sessions", "events", first, "--limit", "2")
    assert "event 1" in events.out and "event 2" not in events.out
    assert "--after 2" in events.err
    assert "no events" in recollect("sessions", "events", second).err
    assert "no more events" in recollect("sessions", "events", first, "--after", "3").err

    ended = recollect("sessions", "end", first)
    assert (ended.code, ended.out) == (0, f"Ended {first}\n")
    assert "temp:guess" not in recollect("sessions", "show", first).out
    archived = recollect("sessions", "end", first, "--archive", "--json").json()
    assert archived["session_status"] == "archived"
    archived = recollect("sessions", "end", second, "--archive", "--json").json()
    assert archived["session_status"] == "archived"
    assert recollect("sessions", "list", "--active", "--json").json()["sessions"] == []


def test_what_a_session_holds_cannot_command_the_terminal(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    nasty = "[bold]no markup[/bold] \x1b]0;title\x07\x1b[31mred"
    with orchestrator.client(agent_id=nasty) as client:
        session_id = client.create_session(nasty, session_metadata={"a": nasty})["session_id"]
        client.append_event(session_id, nasty, {nasty: nasty})
    for args in (("list",), ("show", session_id), ("events", session_id)):
        shown = recollect("sessions", *args).out
        assert "[bold]no markup[/bold]" in shown
        assert "\x1b" not in shown and "\x07" not in shown


REFUSED: list[tuple[tuple[str, ...], str, int]] = [
    (("get", "user:alice", "nothing"), "not_found", 1),
    (("get", "user:alice"), "invalid_argument", 2),
    (("history", "user:alice"), "invalid_argument", 2),
    (("put", "alice", "k", "1"), "invalid_argument", 1),
    (("put", "user:alice", "k", "1", "--expected-version", "3"), "version_conflict", 1),
    (("put", "user:alice", "k", "1", "--metadata", "[]"), "invalid_argument", 2),
    (("namespaces", "alice"), "invalid_argument", 1),
    (("sessions", "show", UNKNOWN), "not_found", 1),
    (("sessions", "events", UNKNOWN), "not_found", 1),
    (("sessions", "end", UNKNOWN), "not_found", 1),
    (("sessions", "list", "--status", "asleep"), "invalid_argument", 1),
]


def test_errors_are_told_to_people_and_to_programs(recollect: CommandLine) -> None:
    for args, code, exit_code in REFUSED:
        for_people = recollect(*args)
        assert (for_people.code, for_people.out) == (exit_code, ""), args
        assert for_people.err.startswith("Error: ")
        assert f"({code})" in for_people.err
        assert ("`recollect sessions list`" in for_people.err) is (UNKNOWN in args)
        for_programs = recollect(*args, "--json")
        assert (for_programs.code, for_programs.err) == (exit_code, ""), args
        assert for_programs.json()["error"]["code"] == code


def test_a_wrong_option_is_a_usage_error(recollect: CommandLine) -> None:
    for args in (
        ("put", "user:alice", "k"),
        ("put", "user:alice", "k", "1", "--expected-version", "-1"),
        ("sessions",),
        ("sessions", "nonsense"),
        ("sessions", "list", "--active", "--status", "active"),
        ("namespaces", "a", "b"),
    ):
        assert recollect(*args).code == 2
