"""What is done about secrets in what is to be stored: blotted out, or refused.

A name is never blotted out, since two names would become one: it is refused either way. No error
and no line of the log repeats what was found.
"""

from __future__ import annotations

from typing import Any, Literal

import structlog

from recollect.orchestrator.trust.secret_shapes import MASK, find_secrets, masked, secret_by_name
from recollect.protocol.errors import RecollectError, SecretRefused

log = structlog.get_logger()


class SecretPolicy:
    """Looks through what is to be stored. Any thread may use it."""

    def __init__(self, mode: Literal["mask", "refuse"]) -> None:
        self._masks = mode == "mask"

    def name(self, field: str, name: str) -> str:
        """A name in which there is no secret."""
        if found := find_secrets(name):
            raise _refused(field, found[0].kind)
        return name

    def text(self, field: str, text: str) -> str:
        """A text without its secrets."""
        found = find_secrets(text)
        if not found:
            return text
        self._noticed(field, found[0].kind)
        return masked(text, found)

    def value(self, field: str, value: Any) -> Any:
        """A JSON value without its secrets; the same object if it has none."""
        if isinstance(value, str):
            return self.text(field, value)
        if isinstance(value, dict):
            return self._object(field, value)
        if isinstance(value, list):
            items = [self.value(f"{field}[{place}]", item) for place, item in enumerate(value)]
            kept = all(new is old for new, old in zip(items, value, strict=True))
            return value if kept else items
        return value

    def named(self, field: str, name: str | None, value: Any) -> Any:
        """The same for a value that goes by a name, which may call it a secret."""
        kind = secret_by_name(name, value) if name and isinstance(value, str) else None
        if kind is None:
            return self.value(field, value)
        self._noticed(field, kind)
        return MASK.format(kind=kind)

    def blotted(self, error: RecollectError) -> RecollectError:
        """An error that repeats no secret, whatever was asked for."""
        if not find_secrets(f"{error.message}\n{error.details}"):
            return error
        hidden = _blot(error.details)
        return type(error)(_blot(error.message), **hidden)

    def _object(self, field: str, value: dict[str, Any]) -> dict[str, Any]:
        cleaned = {}
        for key, item in value.items():
            self.name(field, key)
            cleaned[key] = self.named(f"{field}.{key}", key, item)
        return value if all(cleaned[key] is value[key] for key in value) else cleaned

    def _noticed(self, field: str, kind: str) -> None:
        if not self._masks:
            raise _refused(field, kind)
        log.info("A secret was masked before it was stored.", action="mask", field=field, kind=kind)


def _blot(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value, find_secrets(value))
    if isinstance(value, dict):
        return {_blot(key): _blot(item) for key, item in value.items()}
    return [_blot(item) for item in value] if isinstance(value, list) else value


def policy_of(mode: Literal["off", "mask", "refuse"]) -> SecretPolicy | None:
    """What the setting `trust.secrets` asks for; None if it is off."""
    return None if mode == "off" else SecretPolicy(mode)


def _refused(field: str, kind: str) -> SecretRefused:
    return SecretRefused(
        f"{field} seems to hold a secret ({kind}); nothing was stored. Take it out, and keep it "
        "where secrets are kept.",
        field=field,
        kind=kind,
    )
