"""The codes of whole families, which a program may catch at once; none is met by itself."""

from __future__ import annotations

from recollect.protocol.explanations.explanation import Explanation


def _family(code: str, meaning: str, caught: str, step: str) -> Explanation:
    return Explanation(
        code,
        meaning,
        ("it stands for a family: what happens has a code of its own",),
        (step,),
        f"""\
try:
    memory.add_memory("Anna prefers green tea")
except recollect.errors.{caught} as error:
    print(error.code, error.message)""",
    )


FAMILIES = (
    _family(
        "error",
        "Any error of Recollect.",
        "RecollectError",
        "Look at its code, and at retryable, which says whether the same again can help.",
    ),
    _family(
        "invalid_request",
        "The request can never succeed as it is.",
        "InvalidRequest",
        "Change the request: the message says what is wrong with it.",
    ),
    _family(
        "access",
        "The caller is not let in, or not so far.",
        "AccessError",
        "See unauthenticated and forbidden.",
    ),
    _family(
        "conflict",
        "The request does not fit what is there now.",
        "Conflict",
        "Read what is there, and decide anew.",
    ),
    _family(
        "unavailable",
        "The orchestrator cannot do it now; nothing was written.",
        "Unavailable",
        "Try again a little later; the client has done so a few times already.",
    ),
    _family(
        "transport",
        "The client could not get an answer.",
        "TransportError",
        "See unreachable, connection_lost, timeout and circuit_open.",
    ),
)
