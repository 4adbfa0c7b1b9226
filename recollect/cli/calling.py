"""Commands that ask the orchestrator: one call, one answer, shown in one of two ways."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from recollect.cli.failures import reporting
from recollect.cli.local_key import key_for
from recollect.cli.output import show_failure
from recollect.client import MemoryClient, Retry, Timeouts

AGENT_ID = "cli"
# Somebody is waiting at a terminal: this covers a restart, and then they should know.
RETRY = Retry(attempts_max=2)
TIMEOUTS = Timeouts(connect_s=0.5)


def client_of(endpoint: str | None, key_file: str | None = None) -> MemoryClient:
    """A client that gives up as soon as somebody at a terminal would."""
    return MemoryClient(
        endpoint,
        key_file=key_for(endpoint, key_file),
        agent_id=AGENT_ID,
        retry=RETRY,
        timeouts=TIMEOUTS,
    )


@contextmanager
def calling(
    endpoint: str | None, key_file: str | None = None, *, as_json: bool
) -> Iterator[MemoryClient]:
    """A client whose errors end the command with a message and the right exit code."""
    show = partial(show_failure, as_json=as_json)
    with reporting(show), client_of(endpoint, key_file) as client:
        yield client
