"""The identities of a store that no orchestrator serves just now.

An orchestrator that strangers can reach does not start before somebody has a key, so the first key
must be made without it. Whoever opens a stopped store holds its data folder.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.config.settings import Settings
from recollect.orchestrator.access.identities import LOCAL
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.access.own_keys import OwnKeys
from recollect.orchestrator.calls import Call, handlers_of
from recollect.orchestrator.clock import SystemClock
from recollect.orchestrator.running.opening import open_storage, search_parts
from recollect.orchestrator.services.bearer_keys import BearerKeyService
from recollect.orchestrator.services.identities import IdentityService
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.validation import Validator
from recollect.protocol.explaining import explain
from recollect.protocol.operation import Operation

WRITTEN_WITHIN_US = 60_000_000


class StoppedStore:
    """Carries out the operations on identities, and no others."""

    def __init__(self, settings: Settings, own_keys: OwnKeys | None = None) -> None:
        self._settings = settings
        self._own_keys = own_keys
        self._clock = SystemClock()

    async def open(self) -> None:
        """Open the storage, on the running event loop."""
        lexical = search_parts(self._settings, random.Random()).lexical
        self._storage = open_storage(self._settings, _nothing, [lexical.seal])
        own = self._own_keys
        self._keyring = Keyring(self._storage, own.local.public_key if own else None)
        self._handlers = handlers_of(
            IdentityService(
                self._storage,
                self._keyring,
                Validator(self._settings.limits),
                own.server.public_key if own else None,
            ),
            BearerKeyService(self._keyring),
        )

    async def close(self) -> None:
        # Closing waits for the writer, which must be able to settle its futures meanwhile.
        await asyncio.to_thread(self._storage.close)

    async def has_keys(self) -> bool:
        """Whether anybody but this machine has a key that is let in."""
        await self._keyring.load()
        return self._keyring.strangers_count > 0

    async def call(self, operation: Operation[Any]) -> Any:
        """The answer to an operation of whoever has this machine, or its error raised."""
        name = operation.spec.name
        operation = _checked(operation)
        kind, handler = self._handlers[name]
        now_us = self._clock.now_us()
        call = Call(
            operation=name,
            now_us=now_us,
            deadline_us=now_us + WRITTEN_WITHIN_US,
            identity=LOCAL.name,
            access=operation.spec.access,
        )
        result = handler(call, operation)
        if kind == "write":
            return await self._storage.write(result)
        return result if isinstance(result, dict) else await result


def _checked(operation: Operation[Any]) -> Operation[Any]:
    """The operation as it would arrive: what its declaration does not allow is refused."""
    kind = type(operation)
    try:
        checked: Operation[Any] = msgspec.msgpack.decode(
            msgspec.msgpack.encode(operation), type=kind
        )
        return checked
    except msgspec.ValidationError as error:
        raise explain(error, kind, operation.spec.name) from None


def _nothing(session: Session, functions: Sequence[Any]) -> None:
    """None of these operations needs anything before it runs."""
