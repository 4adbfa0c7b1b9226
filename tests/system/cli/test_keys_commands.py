"""`recollect keys` and `whoami`: on a running orchestrator, on a stopped one, and their errors."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from recollect.protocol import key_files
from recollect.protocol.errors import Unauthenticated
from tests.harness.ports import free_port
from tests.harness.postgres import bare_database
from tests.harness.processes import ASK_FOR_KEYS, OrchestratorProcess
from tests.harness.storages import VARIABLE
from tests.system.cli.commands import CommandLine, Up


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    """An orchestrator that asks for keys."""
    with OrchestratorProcess(tmp_path / "data", env={ASK_FOR_KEYS: "true"}) as process:
        yield process


@pytest.fixture
def offline(tmp_path: Path) -> CommandLine:
    """The command line with no orchestrator and no endpoint."""
    return CommandLine(tmp_path)


def test_a_key_is_made_used_granted_and_revoked(
    keyed: OrchestratorProcess, offline: CommandLine
) -> None:
    recollect = CommandLine(offline.folder, keyed.endpoint)
    data = {"RECOLLECT_DATA": str(keyed.data)}
    shown = recollect("keys", "new", "alice", "--grant", "user:alice=write", **data)
    assert shown.code == 0, shown
    assert "alice.key" in shown.out and "write  user:alice" in shown.out
    key_file = offline.folder / "alice.key"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    mine = {"RECOLLECT_KEY_FILE": str(key_file)}

    assert recollect("whoami", "--json", **mine).json()["identity"] == "alice"
    assert "write  user:alice" in recollect("whoami", "--key-file", key_file).out
    assert recollect("add", "Tea, please.", "-n", "user:alice", **mine).code == 0
    refused = recollect("add", "Tea, please.", "-n", "user:bob", "--json", **mine)
    assert (refused.code, refused.json()["error"]["code"]) == (1, "forbidden")

    granted = recollect("keys", "grant", "alice", "user:bob:*", "write", "--json", **data).json()
    assert {"pattern": "user:bob", "access": "write"} in granted["identity"]["grants"]
    assert recollect("add", "Tea, please.", "-n", "user:bob", **mine).code == 0
    assert recollect("keys", "revoke", "alice", "user:bob", **data).code == 0
    assert recollect("add", "Tea, please.", "-n", "user:bob", **mine).code == 1

    assert "Revoked alice" in recollect("keys", "revoke", "alice", **data).out
    turned_away = recollect("ping", "--json", **mine)
    assert (turned_away.code, turned_away.json()["error"]["code"]) == (1, "unauthenticated")
    listed = recollect("keys", "list", "--json", **data).json()
    assert [i["name"] for i in listed["identities"] if i["revoked_at"]] == ["alice"]
    assert "revoked" in recollect("keys", "list", **data).out


def test_on_the_machine_of_the_data_folder_no_key_need_be_named(
    keyed: OrchestratorProcess, offline: CommandLine
) -> None:
    recollect = CommandLine(offline.folder, keyed.endpoint)
    without = recollect("ping")
    assert without.code == 1
    assert "asks for a key" in without.err and "RECOLLECT_DATA" in without.err
    assert recollect("whoami", "--json", RECOLLECT_DATA=str(keyed.data)).json() == {
        "status": "success",
        "identity": "local",
        "grants": [{"pattern": "*", "access": "admin"}],
    }
    config = offline.folder / "memory_config.yaml"
    config.write_text(f"storage:\n  data: {keyed.data}\n")
    assert recollect("ping").code == 0


def test_the_first_key_is_made_before_anything_runs(offline: CommandLine) -> None:
    made = offline(
        *("keys", "new", "alice", "--data", "data", "--grant", "*=admin", "--rate", "50"),
        *("--memories-max", "1000", "--out", "a.key", "--reached-at", "tcp://memory.example:7331"),
        "--json",
    )
    assert made.code == 0, made
    assert made.json()["key_file"] == str(offline.folder / "a.key")
    identity = made.json()["identity"]
    assert (identity["requests_per_s"], identity["memories_max"]) == (50, 1000)
    keys = key_files.read(offline.folder / "a.key")
    assert (keys.name, keys.endpoint) == ("alice", "tcp://memory.example:7331")
    assert keys.public_key == identity["public_key"]
    env = {ASK_FOR_KEYS: "true"}
    with OrchestratorProcess(offline.folder / "data", env=env) as process:
        with process.client(key_file=offline.folder / "a.key") as client:
            assert client.who_am_i()["identity"] == "alice"
            assert client.list_identities()["server_key"] == keys.server_key
        # The folder is served now, and found to be so.
        assert offline("keys", "list", "--data", "data", "--json").json()["count"] == 1


def test_what_is_asked_wrongly_makes_nothing(offline: CommandLine) -> None:
    (offline.folder / "taken.key").write_text("precious")
    for arguments, code, reason in (
        (("new", "../alice"), 2, "is no name"),
        (("new", "alice", "--rate", "0"), 1, "requests_per_s"),
        (("new", "alice", "--rate", "nan"), 1, "requests_per_s"),
        (("new", "local"), 1, "own machine"),
        (("new", "alice", "--grant", "user:alice"), 2, "has no ="),
        (("new", "alice", "--grant", "user:alice=own"), 2, "is no access"),
        (("new", "alice", "--grant", "users=read"), 2, "is not a pattern"),
        (("new", "alice", "--out", "taken.key"), 2, "is there already"),
        (("new", "alice", "--reached-at", "http://x"), 2, "tcp://host:port"),
        (("grant", "nobody", "user", "read"), 1, "no identity 'nobody'"),
        (("revoke", "nobody"), 1, "no identity 'nobody'"),
    ):
        answer = offline("keys", *arguments, "--data", "data")
        assert (answer.code, reason in answer.err) == (code, True), (arguments, answer)
        assert "Traceback" not in answer.err
    assert (offline.folder / "taken.key").read_text() == "precious"
    assert [path.name for path in offline.folder.glob("*.key")] == ["taken.key"]
    assert offline("keys", "list", "--data", "data", "--json").json()["count"] == 0


def test_a_grant_that_is_refused_leaves_no_key(offline: CommandLine) -> None:
    long = ("--grant", f"user:{'x' * 5000}=write")
    answer = offline("keys", "new", "alice", "--grant", "user=read", *long, "--data", "data")
    assert (answer.code, "limit_exceeded" in answer.err) == (1, True), answer
    assert not (offline.folder / "alice.key").exists()
    [left] = offline("keys", "list", "--data", "data", "--json").json()["identities"]
    assert left["revoked_at"] and not left["grants"]
    assert offline("keys", "new", "alice", "--grant", "user=read", "--data", "data").code == 0


def test_where_nothing_runs_and_no_folder_is_there_none_is_made(alone: CommandLine) -> None:
    answer = alone("keys", "new", "alice")
    assert answer.code == 1
    assert "(unreachable)" in answer.err
    assert list(alone.folder.iterdir()) == []


@pytest.mark.parametrize(
    "asked", [("list",), ("grant", "alice", "user", "read"), ("revoke", "alice")]
)
def test_a_folder_that_is_misspelt_is_not_made(
    offline: CommandLine, asked: tuple[str, ...]
) -> None:
    answer = offline("keys", *asked, "--data", "typo")
    assert answer.code == 1
    assert "There is no store in typo" in answer.err and "(not_found)" in answer.err
    assert list(offline.folder.iterdir()) == []


def test_of_an_endpoint_and_a_folder_none_is_chosen(
    keyed: OrchestratorProcess, offline: CommandLine
) -> None:
    refused = offline("keys", "revoke", "alice", "--endpoint", keyed.endpoint, "--data", "data")
    assert refused.code == 2
    assert "Give one of them" in refused.err


def test_keys_do_not_change_a_database_that_others_may_serve(offline: CommandLine) -> None:
    env = {VARIABLE: bare_database()}
    assert offline("keys", "new", "alice", "--data", "data", **env).code == 0
    with psycopg.connect(env[VARIABLE], autocommit=True) as connection:
        connection.execute("DELETE FROM schema_migrations WHERE number > 1")
        for asked in (("list",), ("new", "bob")):
            answer = offline("keys", *asked, "--data", "data", "--json", **env)
            assert (answer.code, answer.json()["error"]["code"]) == (1, "schema")


def test_a_bad_key_file_is_a_clear_error(alone: CommandLine) -> None:
    answer = alone("ping", "--key-file", "absent.key")
    assert answer.code == 2
    assert "absent.key cannot be read" in answer.err


def test_keys_without_an_orchestrator_that_asks_for_them_are_remarked(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    made = recollect("keys", "new", "alice")
    assert made.code == 0, made
    assert "access.require_keys" in made.err


def test_up_works_with_keys_and_says_how_to_come_in(tmp_path: Path) -> None:
    # A bearer key in the environment is for who asks, and not for what answers.
    up = Up(tmp_path, env={ASK_FOR_KEYS: "true", "RECOLLECT_BEARER": "rk_of_somebody"})
    try:
        output = up.wait_ready().output()
        key_file = up.data / "keys" / "local.key"
        assert f"export RECOLLECT_KEY_FILE={key_file}" in output
        assert f'key_file="{key_file}"' in output
        assert up.recollect("add", "Kept.", RECOLLECT_KEY_FILE=str(key_file)).code == 0
        assert up.recollect("add", "Not kept.").code == 1
    finally:
        up.close()


def test_doctor_looks_at_keys_and_comes_in_with_them(
    keyed: OrchestratorProcess, offline: CommandLine
) -> None:
    healthy = offline("doctor", "--data", keyed.data, "--json")
    states = {check["name"]: check["state"] for check in healthy.json()["checks"]}
    assert (states["keys"], states["orchestrator"]) == ("ok", "ok")
    (keyed.data / "keys" / "server.key").chmod(0o644)
    loose = offline("doctor", "--data", keyed.data)
    assert loose.code == 1
    assert "Others may read" in loose.out and "chmod 600" in loose.out


def test_a_backup_of_a_served_folder_comes_in_with_its_key(
    keyed: OrchestratorProcess, offline: CommandLine
) -> None:
    answer = offline("backup", "copy", "--data", keyed.data, "--json")
    assert answer.code == 0, answer
    assert (offline.folder / "copy" / "manifest.json").exists()
    assert not (offline.folder / "copy" / "keys").exists()


def test_beyond_loopback_the_error_of_up_says_what_to_run(offline: CommandLine) -> None:
    answer = offline("up", "--data", "data", "--bind", f"tcp://0.0.0.0:{free_port()}")
    assert answer.code == 2
    assert "recollect keys new NAME" in answer.err


def test_a_bearer_key_is_made_used_listed_and_revoked(
    keyed: OrchestratorProcess, offline: CommandLine
) -> None:
    recollect = CommandLine(offline.folder, keyed.endpoint)
    data = {"RECOLLECT_DATA": str(keyed.data)}
    new = ("keys", "new", "alice", "--bearer")
    shown = recollect(*new, "--grant", "user:alice=write", "--label", "laptop", **data)
    assert shown.code == 0, shown
    [laptop] = [line for line in shown.out.splitlines() if line.startswith("rk_")]
    assert "Made alice" in shown.out and "write  user:alice" in shown.out
    assert laptop not in shown.err and "shown once" in shown.err
    made = recollect(*new, "--label", "server", "--json", **data).json()
    assert [key["label"] for key in made["identity"]["bearer_keys"]] == ["laptop", "server"]
    server = made["bearer_key"]
    assert list(offline.folder.glob("*.key")) == []

    mine = {**data, "RECOLLECT_BEARER": server}
    assert recollect("whoami", "--json", **mine).json()["identity"] == "alice"
    listed = recollect("keys", "list", **data)
    assert f"bearer {made['key_id']} server" in listed.out and "laptop" in listed.out

    assert recollect("keys", "revoke", "alice", "--bearer", "laptop", **data).code == 0
    assert recollect("whoami", **{**data, "RECOLLECT_BEARER": laptop}).code == 1
    assert recollect("whoami", **mine).code == 0
    by_id = recollect("keys", "revoke", "alice", "--bearer", made["key_id"], "--json", **data)
    assert all(key["revoked_at"] for key in by_id.json()["identity"]["bearer_keys"])
    refused = recollect("whoami", "--json", **mine)
    assert (refused.code, refused.json()["error"]["code"]) == (1, "unauthenticated")
    assert server not in refused.out + refused.err


def test_a_bearer_key_is_made_before_anything_runs(offline: CommandLine) -> None:
    made = offline(
        *("keys", "new", "alice", "--bearer", "--data", "data", "--grant", "user:alice=write"),
        *("--rate", "50", "--memories-max", "1000", "--json"),
    )
    assert made.code == 0, made
    key, identity = made.json()["bearer_key"], made.json()["identity"]
    assert (identity["public_key"], identity["requests_per_s"]) == (None, 50)
    with (
        OrchestratorProcess(offline.folder / "data") as process,
        process.client(bearer=key) as client,
    ):
        assert client.who_am_i()["identity"] == "alice"
        with process.client(bearer=key[:-1]) as wrong, pytest.raises(Unauthenticated):
            wrong.ping()


def test_what_is_asked_wrongly_of_bearer_keys_makes_nothing(offline: CommandLine) -> None:
    assert offline("keys", "new", "alice", "--bearer", "--label", "a", "--data", "data").code == 0
    assert offline("keys", "new", "alice", "--bearer", "--label", "a", "--data", "data").code == 0
    for arguments, code, reason in (
        (("new", "bob", "--label", "x"), 2, "Only a bearer key"),
        (("new", "bob", "--bearer", "--out", "x.key"), 2, "a bearer key is printed"),
        (("new", "alice", "--bearer", "--rate", "5"), 2, "already"),
        (("new", "alice", "--bearer", "--label", "a\nb"), 1, "label"),
        (("revoke", "alice", "user", "--bearer", "a"), 2, "taken back apart"),
        (("revoke", "alice", "--bearer", "a"), 1, "2 bearer keys with the label"),
        (("revoke", "alice", "--bearer", "nothing"), 1, "no bearer key 'nothing'"),
    ):
        answer = offline("keys", *arguments, "--data", "data")
        assert (answer.code, reason in answer.err) == (code, True), (arguments, answer)
        assert "Traceback" not in answer.err and "rk_" not in answer.out + answer.err
    listed = offline("keys", "list", "--data", "data", "--json").json()
    assert [(i["name"], len(i["bearer_keys"])) for i in listed["identities"]] == [("alice", 2)]
