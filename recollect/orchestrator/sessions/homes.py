"""The namespaces that sessions and their shared state belong to.

A user or an app may have any name, a part of a namespace may not: what has no place in one is
percent-encoded. The percent sign is encoded too, so two names never meet in one namespace.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.scope import readable_condition

USER = "user"
APP = "app"
_RESERVED = re.compile(r"[%:\s]")


def user_namespace(user_id: str) -> str:
    """Where the sessions of a user are, and the state that they share."""
    return f"{USER}:{_encoded(user_id)}"


def app_namespace(app: str) -> str:
    """Where the state is that the sessions of an app share."""
    return f"{APP}:{_encoded(app)}"


def _encoded(name: str) -> str:
    return _RESERVED.sub(lambda found: quote(found[0], safe=""), name)


def readable_sessions(patterns: tuple[str, ...] | None) -> Condition:
    """The sessions that may be read by some patterns of grants; None is all of them."""
    sql, params = readable_condition(patterns)
    if not patterns or USER in patterns:
        return sql, params
    # The namespace decides. Naming the users as well lets an index find their few sessions among
    # the many of others.
    users = [unquote(rest) for rest in map(_user_part, patterns) if rest]
    if not users:
        return "FALSE", []
    return f"user_id IN ({', '.join('?' for _ in users)}) AND {sql}", [*users, *params]


def _user_part(pattern: str) -> str:
    """What follows `user:` in a pattern; nothing if it is not exactly one part."""
    prefix, _, rest = pattern.partition(":")
    return rest if prefix == USER and ":" not in rest else ""
