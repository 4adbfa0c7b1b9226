"""Where `recollect keys` finds the identities: at an orchestrator, or in a folder that none serves.

The first key must be made before the orchestrator that asks for it can start, so a folder that
nobody serves is opened here, and held meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from recollect.cli.calling import client_of
from recollect.cli.failures import USAGE, Failure
from recollect.cli.local_key import is_everywhere, local_key, reachable
from recollect.cli.options import settings_from
from recollect.client.settings import ENDPOINT_VARIABLE, KEY_FILE_VARIABLE, endpoint_or_default
from recollect.orchestrator.running.data_folder import (
    DataFolder,
    announcement,
    holder_of,
    keep_to_owner,
)
from recollect.protocol.operation import Operation

if TYPE_CHECKING:
    from recollect.config import Settings

# As the storage has it, which takes long to bring in.
DATABASE_NAME = "recollect.db"


class Reached(NamedTuple):
    """Somebody who answers operations on identities."""

    ask: Callable[[Operation[Any]], Any]
    endpoint: str | None
    """Where others may reach the orchestrator, as far as that is known here."""
    asks_for_keys: bool | None
    """None if it does not run."""


@contextmanager
def reaching(
    endpoint: str | None,
    key_file: str | None,
    data: str | None,
    config: str | None,
    *,
    may_create: bool = False,
) -> Iterator[Reached]:
    """The orchestrator that is named or serves the data folder; else the folder itself, in which
    there must be a store unless one may be created."""
    if data is not None and endpoint is not None:
        raise Failure(
            "usage",
            "--data and --endpoint each name an orchestrator.",
            "Give one of them.",
            exit_code=USAGE,
        )
    if data is None and (endpoint or os.environ.get(ENDPOINT_VARIABLE)):
        with _running(endpoint, key_file, None) as reached:
            yield reached
        return
    settings = settings_from(config, data)
    folder = Path(settings.storage.data)
    announced = announcement(folder)
    if announced is not None and holder_of(folder) is not None:
        with _running(str(announced["endpoint"]), key_file, folder) as reached:
            yield reached
    elif data is not None or announced is not None or _was_served(folder):
        _check_store(settings, folder, may_create=may_create)
        with _stopped(settings, folder) as reached:
            yield reached
    else:
        with _running(endpoint, key_file, None) as reached:
            yield reached


@contextmanager
def _running(endpoint: str | None, key_file: str | None, folder: Path | None) -> Iterator[Reached]:
    at = endpoint if endpoint is None else reachable(endpoint)
    if folder is not None and key_file is None and not os.environ.get(KEY_FILE_VARIABLE):
        own = local_key(folder, endpoint_or_default(at))
        key_file = None if own is None else str(own)
    with client_of(at, key_file) as client:
        told = None if endpoint is not None and is_everywhere(endpoint) else client.endpoint
        yield Reached(client.call, told, client.has_key)


@contextmanager
def _stopped(settings: Settings, folder: Path) -> Iterator[Reached]:
    from recollect.logs import configure_logging
    from recollect.orchestrator.access.own_keys import ensure_own_keys
    from recollect.orchestrator.running.stopped_store import StoppedStore

    # Only what goes wrong is worth a line here.
    configure_logging(msgspec.structs.replace(settings.logging, level="warning"), "keys")
    keep_to_owner()
    held = DataFolder(folder)
    try:
        store = StoppedStore(settings, ensure_own_keys(folder))
        with asyncio.Runner() as runner:
            runner.run(store.open())
            try:
                bind = settings.network.bind
                told = None if is_everywhere(bind) else bind
                yield Reached(lambda operation: runner.run(store.call(operation)), told, None)
            finally:
                runner.run(store.close())
    finally:
        held.release()


def _check_store(settings: Settings, folder: Path, *, may_create: bool) -> None:
    """Refuse to make a store of a name that was misspelt, and to change one under those who may
    serve it: only a folder can be held, not a database on a server."""
    if settings.storage.url == "sqlite":
        is_there = (folder / DATABASE_NAME).exists()
    else:
        from recollect.cli.postgres_checks import schema_of

        present, newest = schema_of(settings.storage.url)
        if 0 < present < newest:
            raise Failure(
                "schema",
                f"The database has schema {present} of {newest}.",
                "Start an orchestrator of this version on it, which brings it up to date.",
            )
        is_there = present > 0 and (folder / "keys").is_dir()
    if not is_there and not may_create:
        raise Failure(
            "not_found",
            f"There is no store in {folder}.",
            "Name the data folder with --data; `recollect keys new NAME` makes a store with its "
            "first key.",
        )


def _was_served(folder: Path) -> bool:
    """Whether a store, or at least its keys, are there already."""
    return (folder / DATABASE_NAME).exists() or (folder / "keys").is_dir()
