"""How the connection that writes to PostgreSQL is set up, whatever the server is set up to."""

from __future__ import annotations

from contextlib import closing

import pytest

from recollect.orchestrator.storage.postgres.session import PostgresWriterSession
from tests.harness.postgres import new_database


@pytest.mark.parametrize("said", ["", "off", "on", "remote_apply"])
def test_a_write_is_on_disk_when_it_is_answered(said: str) -> None:
    # The server of the tests is one that answers before.
    url = new_database()
    session = PostgresWriterSession(f"{url}&options=-csynchronous_commit%3D{said}" if said else url)
    with closing(session.connection):
        expected = "remote_apply" if said == "remote_apply" else "on"
        assert session.execute("SHOW synchronous_commit") == [(expected,)]
