"""`recollect export` and `recollect import` against real orchestrators."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect import MemoryClient
from recollect.client import Retry, Timeouts
from recollect.exchange.exporting import export
from recollect.exchange.importing import import_file
from recollect.protocol.errors import RecollectError
from tests.harness import foreign_files
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine

HOME = "user:alice"
MANY = 1300
"""So many that they are several pages."""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    """Another orchestrator, with nothing in it."""
    with OrchestratorProcess(tmp_path / "other") as process:
        yield process


def furnish(client: MemoryClient, many: int = 0) -> None:
    ids = [client.add_memory(f"Fact {n}", namespace=HOME)["memory_id"] for n in range(5)]
    client.update_memory(ids[0], {"content": "Another fact"})
    client.add_relationship(ids[0], ids[1], "before")
    client.delete_memory(ids[2])
    client.put(HOME, "drink", {"what": "tea"})
    goal = client.store_goal("Reach the lighthouse", namespace=HOME)["goal_id"]
    client.save_task("Row", "rowing", goal, namespace=HOME)
    session = client.create_session("alice", state={"x": 1})["session_id"]
    client.append_event(session, {"said": "ahoy"})
    if many:
        client.batch_add_memories([{"content": f"One of many, {n}"} for n in range(many)])


def records(path: Path) -> list[Any]:
    """The lines of a file between its header and its trailer."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [json.loads(line) for line in text.splitlines()]
    assert (lines[0]["kind"], lines[-1]["kind"]) == ("header", "trailer")
    assert lines[-1]["records"] == len(lines) - 2
    return lines[1:-1]


def hasty(process: OrchestratorProcess) -> MemoryClient:
    """A client that soon gives up."""
    return process.client(retry=Retry(attempts_max=1), timeouts=Timeouts(connect_s=0.2))


def test_a_store_goes_through_a_file_into_another_and_back(
    recollect: CommandLine,
    orchestrator: OrchestratorProcess,
    other: OrchestratorProcess,
    tmp_path: Path,
) -> None:
    with orchestrator.client() as client:
        furnish(client)
    told = recollect("export", "all.jsonl", "--json").json()
    assert told["counts"]["memory"] == 8
    assert told["header"]["seq"] > 0
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o077 == 0
    there = CommandLine(tmp_path, other.endpoint)
    tried = there("import", "all.jsonl", "--dry-run", "--json").json()
    assert (tried["added"], tried["records"]) == (told["records"], told["records"])
    assert there("list", "--json").json()["memories"] == []
    taken = there("import", "all.jsonl")
    assert taken.code == 0, taken
    assert f"Added {told['records']} records" in taken.out
    assert there("export", "back.jsonl.gz").code == 0
    assert records(tmp_path / "back.jsonl.gz") == records(tmp_path / "all.jsonl")
    again = recollect("import", "back.jsonl.gz", "--json").json()
    assert (again["added"], again["present"]) == (0, told["records"])


def test_a_stream_goes_from_one_command_to_the_other(
    recollect: CommandLine, orchestrator: OrchestratorProcess, other: OrchestratorProcess
) -> None:
    with orchestrator.client() as client:
        furnish(client)
    streamed = recollect("export", "-", "--namespace", HOME)
    assert streamed.code == 0, streamed
    there = CommandLine(recollect.folder, other.endpoint)
    taken = there("import", "-", "--json", given=streamed.out).json()
    assert (taken["conflicts"], taken["refused"]) == (0, 0)
    assert taken["header"]["namespace"] == HOME
    # Cut, it is noticed at the end; what came before that is there.
    cut = there("import", "-", given=streamed.out[: len(streamed.out) // 2])
    assert cut.code == 1
    assert "bad_file" in cut.err


def test_a_file_that_was_cut_or_changed_is_refused_and_nothing_of_it_is_stored(
    recollect: CommandLine,
    orchestrator: OrchestratorProcess,
    other: OrchestratorProcess,
    tmp_path: Path,
) -> None:
    with orchestrator.client() as client:
        furnish(client)
    assert recollect("export", "whole.jsonl").code == 0
    whole = (tmp_path / "whole.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    packed = gzip.compress(whole)
    spoilt = {
        "cut.jsonl": (whole[: len(whole) // 2], "line "),
        "no-end.jsonl": (b"".join(lines[:-1]), "trailer"),
        "less.jsonl": (b"".join([*lines[:3], *lines[4:]]), "trailer says"),
        "changed.jsonl": (whole.replace(b"Another fact", b"Another lie!"), "not those"),
        "more.jsonl": (whole + lines[1], "follows the trailer"),
        "newer.jsonl": (whole.replace(b'"version":1', b'"version":2', 1), "version 2"),
        "empty.jsonl.gz": (gzip.compress(b""), "neither"),
        "cut.jsonl.gz": (packed[: len(packed) // 2], "unpacked"),
    }
    there = CommandLine(tmp_path, other.endpoint)
    for name, (content, reason) in spoilt.items():
        (tmp_path / name).write_bytes(content)
        refused = there("import", name)
        assert (refused.code, "bad_file" in refused.err) == (1, True), (name, refused)
        assert name in refused.err
        assert reason in refused.err, (name, refused.err)
    assert there("list", "--json").json()["memories"] == []


def test_an_export_that_was_broken_off_goes_on(
    recollect: CommandLine, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    def stop(done: int, total: int | None) -> None:
        if done > 600:
            raise KeyboardInterrupt

    with orchestrator.client() as client:
        furnish(client, MANY)
        for name in ("part.jsonl", "part.jsonl.gz"):
            with pytest.raises(KeyboardInterrupt):
                export(client, str(tmp_path / name), progress=stop)
            assert not (tmp_path / name).exists()
            refused = recollect("export", name)
            assert (refused.code, "--resume" in refused.err) == (1, True)
            # Half a page behind what was noted is no harm.
            with (tmp_path / f"{name}.part").open("ab") as file:
                file.write(b"half a li")
            gone_on = recollect("export", name, "--resume", "--json").json()
            assert gone_on["counts"]["memory"] == MANY + 8
            assert not (tmp_path / f"{name}.part.state").exists()
    assert recollect("export", "whole.jsonl").code == 0
    whole = records(tmp_path / "whole.jsonl")
    assert records(tmp_path / "part.jsonl") == records(tmp_path / "part.jsonl.gz") == whole
    over = recollect("export", "whole.jsonl")
    assert (over.code, "exists already" in over.err) == (1, True)


def test_an_import_whose_orchestrator_is_killed_is_completed_by_the_next(
    recollect: CommandLine,
    orchestrator: OrchestratorProcess,
    other: OrchestratorProcess,
    tmp_path: Path,
) -> None:
    with orchestrator.client() as client:
        furnish(client, MANY)
    assert recollect("export", "many.jsonl").code == 0

    def kill(done: int, total: int | None) -> None:
        if other.running():
            other.kill()

    with hasty(other) as client, pytest.raises(RecollectError):
        import_file(client, str(tmp_path / "many.jsonl"), progress=kill)
    other.start()
    there = CommandLine(tmp_path, other.endpoint)
    taken = there("import", "many.jsonl", "--json").json()
    assert taken["present"] >= 500
    assert taken["present"] + taken["added"] + taken["completed"] == taken["records"]
    assert there("export", "back.jsonl").code == 0
    assert records(tmp_path / "back.jsonl") == records(tmp_path / "many.jsonl")


FOREIGN: dict[str, tuple[Callable[[Path], Path], dict[str, int]]] = {
    "mem0": (foreign_files.mem0_file, {"memories": 4, "links": 1}),
    "mcp-memory": (foreign_files.mcp_memory_file, {"memories": 4, "links": 1}),
    "langgraph": (foreign_files.langgraph_database, {"memories": 2}),
    "chatgpt": (foreign_files.chatgpt_zip, {"conversations": 1, "turns": 2}),
    "claude": (foreign_files.claude_file, {"conversations": 1, "turns": 2}),
}


def test_what_other_programs_remembered_is_brought_once(
    recollect: CommandLine, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    for program, (make, expected) in FOREIGN.items():
        path = make(tmp_path)
        tried = recollect("import", path, "--dry-run", "--json").json()
        assert (tried["source"], tried["added"]) == (program, expected)
        brought = recollect("import", path, "--user", "alice", "--json").json()
        assert (brought["added"], brought["status"]) == (expected, "success"), brought
        namespace = f"app:imported:{program}"
        assert brought["namespace"] == namespace
        with orchestrator.client() as client:
            seq = client.read_changes()["seq"]
            memories = client.list_memories(namespace=namespace)["memories"]
            assert {m["source"] for m in memories} == {f"import:{program}"}
            again = recollect("import", path, "--from", program, "--user", "alice", "--json").json()
            assert (again["present"], again["status"]) == (expected, "success")
            assert not any(again["added"].values())
            assert client.read_changes()["seq"] == seq, "importing again changed something"


def test_a_conversation_is_a_session_and_its_turns_are_found(
    recollect: CommandLine, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    path = foreign_files.chatgpt_zip(tmp_path)
    assert recollect("import", path, "--user", "alice").code == 0
    talk = foreign_files.chatgpt_conversation()
    with orchestrator.client() as client:
        [session] = client.list_sessions("alice")["sessions"]
        assert session["metadata"]["title"] == "Sailing to the lighthouse"
        events = client.list_events(session["id"])["events"]
        assert events[0]["event"]["text"] == "Which way?"
        [hit, *_] = client.recall("north by east")["results"]
        assert hit["session_id"] == session["id"]
        assert hit["metadata"]["speaker"] == "assistant"
        assert str(hit["valid_from"]).startswith("2023-11-14T22:13:20")
        # A later export, in which the conversation went on.
        talk["mapping"]["again"]["children"] = ["thanks"]
        said = {**talk["mapping"]["asked"]["message"], "id": "m-thanks"}
        said["content"] = {"content_type": "text", "parts": ["Thank you"]}
        talk["mapping"]["thanks"] = {"id": "thanks", "parent": "again", "message": said}
        talk["current_node"] = "thanks"
        later = tmp_path / "conversations.json"
        later.write_text(json.dumps([talk]))
        more = recollect("import", later, "--from", "chatgpt", "--user", "alice", "--json").json()
        assert (more["added"]["turns"], more["present"]["turns"]) == (1, 2)
        assert client.list_events(session["id"])["count"] == 3


def test_what_was_changed_here_is_left_alone_and_said(
    recollect: CommandLine, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    path = foreign_files.mem0_file(tmp_path)
    assert recollect("import", path, "-n", "user:alice:mem0").code == 0
    with orchestrator.client() as client:
        [nuts] = client.search_memory("allergic", namespace="user:alice:mem0")["results"]
        client.update_memory(nuts["id"], {"content": "Is not allergic to walnuts any more"})
        told = recollect("import", path, "-n", "user:alice:mem0")
        assert (told.code, "1 conflict" in told.out) == (1, True), told
        assert "not allergic" in client.get_memory(nuts["id"])["memory"]["content"]


def test_a_file_of_nobody_and_options_that_do_not_fit_are_refused(
    recollect: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "diary.txt").write_text("Dear diary")
    assert "neither" in recollect("import", "diary.txt").err
    absent = recollect("import", "absent.jsonl").err
    assert "no such file" in absent and "recollect export" in absent
    assert recollect("import", "diary.txt", "--from", "nobody").code == 2
    assert recollect("export", "-", "--resume").code == 2
    broken = recollect("import", "diary.txt", "--from", "mem0", "--json")
    assert broken.json()["error"]["code"] == "bad_file"
