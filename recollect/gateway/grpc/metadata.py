"""What the metadata of a call says of its caller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recollect.client.encoding import Speaker
from recollect.gateway.callers import Doorman, unauthenticated

AUTHORIZATION = "authorization"
AGENT = "x-recollect-agent"
SESSION = "x-recollect-session"
TASK = "x-recollect-task"
FENCE = "x-recollect-fence"
REQUEST_ID = "x-request-id"
IDEMPOTENCY_KEY = "idempotency-key"

Metadata = Iterable[tuple[str, str | bytes]]


class Said(NamedTuple):
    """Who calls, and under which idempotency key."""

    speaker: Speaker
    idempotency_key: str | None


def said_in(metadata: Metadata | None, doorman: Doorman) -> Said:
    """What the metadata says; raises Unauthenticated."""
    given = tuple(metadata or ())
    # Whatever ends on -bin is bytes, and none of these do.
    said: dict[str, str] = dict(given)  # type: ignore[arg-type]
    get = said.get
    if len(said) < len(given) and sum(name == AUTHORIZATION for name, _ in given) > 1:
        # Whoever looked at the call before us may have taken the other.
        raise unauthenticated("There is more than one authorization")
    speaker = Speaker(
        agent=get(AGENT),
        session=get(SESSION),
        task=get(TASK),
        fence=get(FENCE),
        bearer=doorman.bearer(get(AUTHORIZATION)),
        trace=get(REQUEST_ID),
    )
    return Said(speaker, get(IDEMPOTENCY_KEY))
