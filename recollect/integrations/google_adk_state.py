"""State of ADK's sessions by the keys of Recollect's, and back.

Both have `app:`, `user:` and `temp:` keys. In ADK the state of a user is of one app, in Recollect
of all: so its keys carry the app. Recollect takes null for "remove", ADK keeps it: so it is kept as
something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.integrations.events import packed, unpacked
from recollect.integrations.names import key_of, name_of, part_of

APP, USER, TEMP = "app:", "user:", "temp:"
OWN = "session:"
NULL = {"recollect:null": True}


def stored_state(app_name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """State as Recollect keeps it; what is temporary is left out, for it is never kept."""
    return {
        _stored_key(app_name, key): NULL if value is None else packed(value)
        for key, value in state.items()
        if not key.startswith(TEMP)
    }


def shown_state(app_name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """State as ADK knows it, without what the user has in other apps."""
    shown: dict[str, Any] = {}
    for key, value in state.items():
        name = _shown_key(app_name, key)
        if name is not None:
            shown[name] = None if value == NULL else unpacked(value)
    return shown


def _stored_key(app_name: str, key: str) -> str:
    if key.startswith(APP):
        return f"{APP}{key_of(key.removeprefix(APP))}"
    if key.startswith(USER):
        return f"{USER}{part_of(app_name)}:{key_of(key.removeprefix(USER))}"
    # Recollect leaves out `session:`; with its colon encoded it is a part of the name.
    return key_of(key).replace(OWN, "session%3A", 1) if key.startswith(OWN) else key_of(key)


def _shown_key(app_name: str, key: str) -> str | None:
    if key.startswith(APP):
        return f"{APP}{name_of(key.removeprefix(APP))}"
    if key.startswith(USER):
        mine = f"{USER}{part_of(app_name)}:"
        return f"{USER}{name_of(key.removeprefix(mine))}" if key.startswith(mine) else None
    return None if key.startswith(TEMP) else name_of(key)
