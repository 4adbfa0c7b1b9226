"""Sessions by names of a framework's, where Recollect gives them ids of its own.

Beside its sessions a user has a memory for each name that says which session it means. That a name
is taken once, whoever takes it at the same time, is decided by writing this memory only where there
is none. A session becomes active when its name is taken, so one that lost is never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from recollect.integrations.names import key_of, namespace_of
from recollect.integrations.steps import Steps
from recollect.protocol.errors import AlreadyExists, NotFound, VersionConflict
from recollect.protocol.operations import (
    CreateSession,
    DeleteByKey,
    DeleteSession,
    GetByKey,
    GetSession,
    Put,
    SetState,
    UpdateStatus,
)

NAME_TYPE = "session.name"
PLACE = "sessions"
SHARED = ("app:", "user:")


class Owner(NamedTuple):
    """Whose sessions they are: a user's, in one app, of one kind."""

    user_id: str
    app: str
    kind: str

    @property
    def names(self) -> str:
        """The namespace of the names."""
        return namespace_of("user", (self.user_id, self.app, PLACE))


def find(owner: Owner, name: str) -> Steps[str | None]:
    """The id of the session of a name; None if there is none."""
    try:
        found = yield GetByKey(owner.names, key_of(name))
    except NotFound:
        return None
    session_id: str = found["memory"]["value"]["session_id"]
    return session_id


def create(owner: Owner, name: str, state: Mapping[str, Any] | None = None) -> Steps[str]:
    """Begin a session under a name and return its id; refuses if the name is taken."""
    # What is shared with other sessions is changed only by who gets the name.
    shared = {key: value for key, value in (state or {}).items() if key.startswith(SHARED)}
    own = {key: value for key, value in (state or {}).items() if key not in shared}
    begun = yield CreateSession(owner.user_id, owner.kind, {"name": name}, app=owner.app, state=own)
    session_id: str = begun["session_id"]
    try:
        yield from _take(owner, name, session_id)
    except AlreadyExists:
        yield DeleteSession(session_id)
        raise
    if shared:
        yield SetState(session_id, shared)
    yield UpdateStatus(session_id, "active")
    return session_id


def _take(owner: Owner, name: str, session_id: str) -> Steps[None]:
    """Have a name mean a session; refuses if it means another, which is still there."""
    put = Put(
        owner.names,
        key_of(name),
        {"session_id": session_id},
        NAME_TYPE,
        content=f"{owner.kind} {name}",
        memory_tier="long",
        expected_version=0,
    )
    try:
        yield put
    except AlreadyExists:
        former = yield from find(owner, name)
        if former is not None:
            try:
                yield GetSession(former, events=0)
            except NotFound:
                yield from release(owner, name, former)
            else:
                raise
        yield put


def release(owner: Owner, name: str, session_id: str) -> Steps[None]:
    """Free a name whose session is gone: who deletes by its id does not know of the name."""
    # Somebody else may have freed it meanwhile, and begun another session under it.
    with suppress(NotFound, VersionConflict):
        found = (yield GetByKey(owner.names, key_of(name)))["memory"]
        if found["value"]["session_id"] == session_id:
            yield DeleteByKey(owner.names, key_of(name), expected_version=found["version"])


def find_or_create(owner: Owner, name: str) -> Steps[str]:
    """The id of the session of a name, begun by whoever comes first."""
    session_id = yield from find(owner, name)
    if session_id is not None:
        return session_id
    try:
        return (yield from create(owner, name))
    except AlreadyExists:
        session_id = yield from find(owner, name)
        if session_id is None:
            raise
        return session_id


def delete(owner: Owner, name: str) -> Steps[None]:
    """Delete the session of a name for good, if there is one; the name is free again."""
    session_id = yield from find(owner, name)
    if session_id is None:
        return
    # The name first: from then on nobody finds what is about to go.
    with suppress(NotFound):
        yield DeleteByKey(owner.names, key_of(name))
    with suppress(NotFound):
        yield DeleteSession(session_id)
