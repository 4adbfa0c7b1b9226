"""What those who call the gateway have in common, whichever way they speak."""

from __future__ import annotations

from typing import Any

from recollect.protocol.operation import Operation
from recollect.protocol.operations import REGISTRY


class GatewayCaller:
    """Has a method an operation, as the clients have."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        """What goes with every request beside its body."""
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name not in REGISTRY:
            raise AttributeError(name)
        return lambda *args, **kwargs: self.call(REGISTRY[name](*args, **kwargs))

    def call(self, operation: Operation[Any]) -> dict[str, Any]:
        """Carry out an operation; raises the typed error that the gateway reports."""
        raise NotImplementedError

    def headers_of(self, operation: Operation[Any]) -> dict[str, str]:
        """What goes with this request."""
        if operation.idempotency_key is None:
            return dict(self.headers)
        return {**self.headers, "idempotency-key": operation.idempotency_key}

    def set_agent_id(self, agent_id: str | None) -> None:
        self._say("x-recollect-agent", agent_id)

    def set_session_id(self, session_id: str | None) -> None:
        self._say("x-recollect-session", session_id)

    def set_task_id(self, task_id: str | None) -> None:
        self._say("x-recollect-task", task_id)

    def set_fence(self, name: str, token: int) -> None:
        self._say("x-recollect-fence", f"{name}/{token}")

    def clear_fence(self) -> None:
        self._say("x-recollect-fence", None)

    def _say(self, name: str, value: str | None) -> None:
        self.headers.pop(name, None)
        if value is not None:
            self.headers[name] = value
