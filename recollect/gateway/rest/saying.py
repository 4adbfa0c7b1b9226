"""What the headers of a request say: who speaks, how long to wait, which version is meant."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping

from recollect.client.encoding import Speaker
from recollect.gateway.callers import Doorman
from recollect.protocol.envelope import IDEMPOTENCY_KEY_CHARS_MAX, NAME_CHARS_MAX
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operations.fields import INTEGER_MAX

AUTHORIZATION = b"authorization"
AGENT = b"x-recollect-agent"
SESSION = b"x-recollect-session"
TASK = b"x-recollect-task"
FENCE = b"x-recollect-fence"
TIMEOUT = b"x-recollect-timeout"
REQUEST_ID = b"x-request-id"
IDEMPOTENCY_KEY = b"idempotency-key"
IF_MATCH = b"if-match"
IF_NONE_MATCH = b"if-none-match"
LAST_EVENT_ID = b"last-event-id"

READ = (
    *(AUTHORIZATION, AGENT, SESSION, TASK, FENCE, TIMEOUT, REQUEST_ID),
    *(IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH),
)
"""What a page of an allowed origin may send."""
TOLD = ("ETag", "Link", "Retry-After", "X-Request-Id")
"""What such a page may read of an answer."""

Headers = Mapping[bytes, bytes]

_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_VERSION_TAG = re.compile(rb'"(\d{1,19})"')
# Ids keep requests apart, and hide nothing: asking the system anew for each is a call more.
_randomness = random.Random()


def request_id_of(headers: Headers) -> bytes:
    """The id under which a request is followed through the logs; a new one if it brings none."""
    given = headers.get(REQUEST_ID)
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given
    return b"%016x" % _randomness.getrandbits(64)


def speaker_of(headers: Headers, doorman: Doorman, request_id: bytes) -> Speaker:
    """For whom a request speaks; raises Unauthenticated or InvalidArgument."""
    authorization = headers.get(AUTHORIZATION)
    # By place, and without a call for what most requests do not say: every request comes by here.
    agent, session = headers.get(AGENT), headers.get(SESSION)
    task, fence = headers.get(TASK), headers.get(FENCE)
    return Speaker(
        None if agent is None else _name(AGENT, agent),
        None if session is None else _name(SESSION, session),
        None if task is None else _name(TASK, task),
        None if fence is None else _name(FENCE, fence),
        doorman.bearer(None if authorization is None else authorization.decode("latin-1")),
        request_id.decode(),
    )


def _name(header: bytes, value: bytes) -> str:
    try:
        name = value.decode()
    except UnicodeDecodeError:
        name = ""
    if not 1 <= len(name) <= NAME_CHARS_MAX:
        raise InvalidArgument(f"{_written(header)} must be 1 to {NAME_CHARS_MAX} characters.")
    return name


def timeout_s_of(headers: Headers, longest_s: float) -> float | None:
    """How long to wait for the answer, if the request says so; never longer than we would."""
    value = headers.get(TIMEOUT)
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise InvalidArgument(f"{_written(TIMEOUT)} must be a positive number of seconds.")
    return min(seconds, longest_s)


def idempotency_key_of(headers: Headers) -> str | None:
    """The key under which a write takes effect once."""
    value = headers.get(IDEMPOTENCY_KEY)
    if value is None:
        return None
    if not (value.isascii() and 1 <= len(value) <= IDEMPOTENCY_KEY_CHARS_MAX):
        raise InvalidArgument(
            f"{_written(IDEMPOTENCY_KEY)} must be 1 to {IDEMPOTENCY_KEY_CHARS_MAX} ASCII "
            "characters."
        )
    return value.decode()


def version_of(headers: Headers) -> int | None:
    """The version that must be the present one: 0 if there must be none (If-None-Match: *)."""
    if headers.get(IF_NONE_MATCH) == b"*":
        return 0
    value = headers.get(IF_MATCH)
    if value is None:
        return None
    tag = _VERSION_TAG.fullmatch(value.strip())
    if tag is None or int(tag[1]) > INTEGER_MAX:
        raise InvalidArgument('If-Match must be one version as ETag gives it, such as "3".')
    return int(tag[1])


def is_conditional(headers: Headers) -> bool:
    """Whether a request is to be done only with a certain version."""
    return IF_MATCH in headers or IF_NONE_MATCH in headers


def last_event_of(headers: Headers) -> int | None:
    """The last change that a reader of the feed has seen."""
    value = headers.get(LAST_EVENT_ID)
    if value is None:
        return None
    if not (value.isdigit() and len(value) <= 19 and int(value) <= INTEGER_MAX):
        raise InvalidArgument("Last-Event-ID must be the id of an event of this feed.")
    return int(value)


def _written(header: bytes) -> str:
    return header.decode().title()
