"""For whom a client speaks: what each of its requests says of itself, and how that is changed."""

from __future__ import annotations

from typing import TypedDict

from msgspec.structs import replace

from recollect.client.encoding import Speaker
from recollect.protocol.envelope import BEARER_CHARS_MAX, NAME_CHARS_MAX
from recollect.protocol.errors import InvalidArgument


class AgentSet(TypedDict):
    status: str
    agent_id: str | None


class SessionSet(TypedDict):
    status: str
    session_id: str | None


class TaskSet(TypedDict):
    status: str
    task_id: str | None


class FenceSet(TypedDict):
    status: str
    fence: str | None


class Speaking:
    """The part of a client that knows who it is."""

    def _speak_as(
        self,
        agent_id: str | None,
        session_id: str | None,
        task_id: str | None,
        bearer: str | None,
    ) -> None:
        """Be these from the beginning, if they can be sent."""
        # Exchanged as a whole: a call in another thread takes all of it from one moment.
        self._speaker = Speaker(
            _checked_name("agent_id", agent_id),
            _checked_name("session_id", session_id),
            _checked_name("task_id", task_id),
            bearer=_checked_bearer(bearer),
        )

    @property
    def agent_id(self) -> str | None:
        """Who writes, as the client names itself."""
        return self._speaker.agent

    @property
    def session_id(self) -> str | None:
        """The session that new memories belong to."""
        return self._speaker.session

    @property
    def task_id(self) -> str | None:
        """The task that the work is done for."""
        return self._speaker.task

    def set_agent_id(self, agent_id: str | None) -> AgentSet:
        """Name who writes from now on; None for nobody."""
        self._speaker = replace(self._speaker, agent=_checked_name("agent_id", agent_id))
        return {"status": "success", "agent_id": agent_id}

    def set_session_id(self, session_id: str | None) -> SessionSet:
        """Name the session that new memories belong to from now on; None for no session."""
        self._speaker = replace(self._speaker, session=_checked_name("session_id", session_id))
        return {"status": "success", "session_id": session_id}

    def set_task_id(self, task_id: str | None) -> TaskSet:
        """Name the task that the work is done for from now on; None for no task."""
        self._speaker = replace(self._speaker, task=_checked_name("task_id", task_id))
        return {"status": "success", "task_id": task_id}

    @property
    def fence(self) -> str | None:
        """The lease under which it writes, as `name/token`."""
        return self._speaker.fence

    def set_fence(self, name: str, token: int) -> FenceSet:
        """Write under a lease from now on: what comes after the lease was given to somebody else
        is refused with `lease_lost`, and has no effect."""
        fence = _checked_name("fence", f"{name}/{token}")
        self._speaker = replace(self._speaker, fence=fence)
        return {"status": "success", "fence": fence}

    def clear_fence(self) -> FenceSet:
        """Write under no lease from now on."""
        self._speaker = replace(self._speaker, fence=None)
        return {"status": "success", "fence": None}


def _checked_name(field: str, name: str | None) -> str | None:
    if name is None or (isinstance(name, str) and 1 <= len(name) <= NAME_CHARS_MAX):
        return name
    raise InvalidArgument(
        f"{field} must be a text of 1 to {NAME_CHARS_MAX} characters, or None.", field=field
    )


def _checked_bearer(bearer: str | None) -> str | None:
    """A bearer key that can be sent; what is wrong with it is said without it."""
    if bearer is None:
        return None
    if (
        isinstance(bearer, str)
        and 1 <= len(bearer) <= BEARER_CHARS_MAX
        and bearer.isascii()
        and bearer.isprintable()
    ):
        return bearer
    raise InvalidArgument(
        "bearer is no bearer key: give what `recollect keys new NAME --bearer` has shown, on one "
        "line and whole.",
        field="bearer",
    )
