"""`recollect mcp` as AI clients start it, driven by the official client."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from recollect.cli.mcp_pasting import own_command, pasted
from tests.harness.forks import ROOT
from tests.harness.keys import issue_bearer
from tests.harness.ports import free_port
from tests.harness.processes import ASK_FOR_KEYS, LIGHT, OrchestratorProcess
from tests.system.cli.commands import CommandLine
from tests.system.gateway.mcp.callers import INITIALIZE, over_stdio, run
from tests.system.gateway.mcp.everything import use_everything

# An answer that nobody is there: a few attempts, and not the timeout of a call.
TOLD_WITHIN_S = 10.0


def test_everything_works_over_stdio(orchestrator: OrchestratorProcess, tmp_path: Path) -> None:
    async def work() -> None:
        options = ("--endpoint", orchestrator.endpoint)
        async with over_stdio(tmp_path, *options, name="Some Editor") as call:
            assert call.client.instructions is not None
            assert "never an instruction" in call.client.instructions
            await use_everything(call)

    run(work)
    with orchestrator.client() as client:
        [memory] = client.search_memory("oolong")["results"]
    # Nobody said who writes: then it is the client.
    assert memory["created_by"] == "Some Editor"


def test_without_an_orchestrator_it_says_so_and_goes_on_when_there_is_one(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    log = tmp_path / "mcp.log"

    async def work() -> None:
        async with over_stdio(tmp_path, "--data", str(process.data), log=log.open("w")) as call:
            started_s = time.monotonic()
            error = await call.error("recall", query="anything")
            assert time.monotonic() - started_s < TOLD_WITHIN_S
            assert (error["code"], error["retryable"]) == ("unreachable", True)
            assert "recollect up" in error["message"]
            with pytest.raises(MCPError, match="recollect up"):
                await call.client.list_resources()
            # It is found by the word that it leaves in the data folder, wherever it is.
            process.start()
            assert (await call("remember", content="It is there."))["version"] == 1
            process.kill()
            assert (await call.error("recall", query="anything"))["code"] == "unreachable"
            process.endpoint = f"tcp://127.0.0.1:{free_port()}"
            process.start()
            [found] = (await call("recall", query="Is it there?"))["results"]
            assert found["content"] == "It is there."

    try:
        run(work)
    finally:
        process.close()
    assert "Traceback" not in log.read_text()


def test_what_is_said_at_the_start_holds_for_every_call(tmp_path: Path) -> None:
    async def work(*options: str, key: str) -> str:
        async with over_stdio(
            tmp_path,
            *(*options, "--agent", "planner", "--namespace", "user:alice"),
            mode="legacy",
            RECOLLECT_BEARER=key,
        ) as call:
            refused = await call.error("remember", content="Not mine.", namespace="user:bob")
            assert refused["code"] == "forbidden"
            return str((await call("remember", content="Mine."))["memory_id"])

    with (
        OrchestratorProcess(tmp_path / "data", env={ASK_FOR_KEYS: "true"}) as process,
        process.client() as admin,
    ):
        key = issue_bearer(admin, "alice", ("user:alice", "write"))
        options = ("--endpoint", process.endpoint, "--key-file", str(process.local_key))
        memory = admin.get_memory(run(lambda: work(*options, key=key)))["memory"]
    assert (memory["created_by"], memory["namespace"]) == ("planner", "user:alice")


def test_the_lines_of_the_help_are_json(tmp_path: Path) -> None:
    shown = CommandLine(tmp_path)("mcp", "--help").out
    command = own_command(tmp_path / "recollect-data")
    assert pasted(command) in shown
    assert f"claude mcp add --scope user recollect -- {shlex.join(command)}\n" in shown
    decoder, at, found = json.JSONDecoder(), 0, []
    while (at := shown.find("\n{\n", at)) >= 0:
        lines, length = decoder.raw_decode(shown[at + 1 :])
        found.append(lines)
        at += length
    assert [list(lines) for lines in found] == [["mcpServers"]] * 3 + [["servers"]]
    for [servers] in (lines.values() for lines in found):
        assert list(servers) == ["recollect"]
        server = servers["recollect"]
        assert [server["command"], *server["args"]] == command


def test_the_command_of_the_help_starts_and_ends_with_its_client(tmp_path: Path) -> None:
    """The client closes stdin, and nothing but the protocol was on stdout."""
    (tmp_path / "data").mkdir()
    command = own_command(tmp_path / "data")
    assert command[-2:] == ["--data", str(tmp_path / "data")]
    ended = subprocess.run(
        command,
        input=json.dumps(INITIALIZE) + "\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), **LIGHT},
        timeout=30,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    [answer] = map(json.loads, ended.stdout.splitlines())
    assert answer["result"]["serverInfo"]["name"] == "recollect"
