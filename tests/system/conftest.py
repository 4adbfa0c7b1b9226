"""Every test of a running system runs on every storage, but for those that are named here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.storages import CHOSEN, SQLITE, STORAGES

# What a test is about, if that is not on every storage.
FILE = "the file of SQLite"
CARRIED = "how a key is carried; whose it is, is tried on every storage by tests/contract"
OWN = "a storage that the test names itself"
MODELS = "models, and what embeds with them"
PROCESSES = "processes: how they start, end and are looked after"
SPOKEN = "how answers are shown; the operations are tried on every storage by tests/contract"
TRANSPORT = "what travels, before any storage is asked"
WRITTEN = "what is written in a guide, which is for either storage"
WEB = "what the gateway does by itself; the operations behind it are tried in every way elsewhere"

ON_SQLITE_ALONE = {
    "benchmarks/test_soak_load.py": OWN,
    "cli/test_agent_commands.py": SPOKEN,
    "cli/test_audit_commands.py::test_an_untouched_log_is_verified_and_a_changed_one_is_not": FILE,
    "cli/test_backup_commands.py::test_restore_does_not_overwrite_a_database": FILE,
    "cli/test_demo.py": PROCESSES,
    "cli/test_doctor.py": FILE,
    "cli/test_doctor_on_postgresql.py": OWN,
    "cli/test_exchange_commands.py": SPOKEN,
    "cli/test_keyed_commands.py": SPOKEN,
    "cli/test_keys_commands.py::test_keys_do_not_change_a_database_that_others_may_serve": OWN,
    "cli/test_memory_commands.py": SPOKEN,
    "cli/test_migrate_storage.py": OWN,
    "cli/test_models.py": MODELS,
    "cli/test_up.py": PROCESSES,
    "client/test_async_client_transport.py": TRANSPORT,
    "client/test_client_outbox.py": TRANSPORT,
    "client/test_client_retries.py": TRANSPORT,
    "client/test_client_transport.py": TRANSPORT,
    "client/test_several_endpoints.py": TRANSPORT,
    "docs/test_pages.py": WRITTEN,
    "docs/test_site.py": WRITTEN,
    "gateway/mcp/test_ending.py": PROCESSES,
    "gateway/mcp/test_http.py": WEB,
    "gateway/mcp/test_plain_calls.py": WEB,
    "gateway/mcp/test_stdio.py": WEB,
    "gateway/test_grpc.py": WEB,
    "gateway/test_grpc_feed.py": WEB,
    "gateway/test_grpc_life.py": PROCESSES,
    "gateway/test_grpc_open_streams.py": TRANSPORT,
    "gateway/test_rest.py": WEB,
    "gateway/test_rest_every_operation.py": WEB,
    "gateway/test_rest_schema.py": WEB,
    "gateway/test_shares.py": TRANSPORT,
    "gateway/test_slow_bodies.py": TRANSPORT,
    "integrations/test_missing_framework.py": WRITTEN,
    "test_bearer_keys.py": CARRIED,
    "test_embedding.py": MODELS,
    "test_examples.py": WRITTEN,
    "test_health.py": PROCESSES,
    "test_health_over_http.py": PROCESSES,
    "test_keys.py::test_other_users_of_the_machine_cannot_read_the_store": FILE,
    "test_operational.py": OWN,
    "test_raw_protocol.py": TRANSPORT,
    "test_recovery.py": TRANSPORT,
    "test_secrets.py": WRITTEN,
    "test_testing.py": PROCESSES,
    "whole/test_healing.py": PROCESSES,
    "whole/test_long_run.py": PROCESSES,
}
"""By the file of a test, or by its file and name."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds = STORAGES if _on_every_storage(metafunc.definition.nodeid) else (SQLITE,)
    metafunc.parametrize("storage", kinds, indirect=True, scope="module")


def _on_every_storage(nodeid: str) -> bool:
    file, _, name = nodeid.removeprefix("tests/system/").partition("::")
    return not {file, f"{file}::{name}"} & ON_SQLITE_ALONE.keys()


@pytest.fixture(scope="module", autouse=True)
def storage(request: pytest.FixtureRequest) -> Iterator[str]:
    """The storage that all orchestrators of the test work on.

    A fixture that outlives a test and starts one asks for this, or it would go on with the first.
    """
    with CHOSEN.on(request.param):
        yield request.param
