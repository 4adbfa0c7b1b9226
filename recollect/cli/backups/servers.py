"""A backup of a store that lies on a PostgreSQL server: made past any orchestrator, and brought
back into a database that holds no store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from recollect.cli.backups.folders import SQLITE, read_manifest
from recollect.cli.failures import USAGE, Failure
from recollect.orchestrator.running.data_folder import keep_to_owner
from recollect.orchestrator.storage.migrations import SchemaError

SCHEMES = ("postgresql://", "postgres://")


def back_up_server(url: str, target: Path) -> dict[str, Any]:
    """Copy the rows of a database into a new folder."""
    _check_scheme(url)
    if target.exists():
        raise Failure("already_exists", f"{target} exists already.", "Name a new folder.")
    keep_to_owner()
    with _told():
        from recollect.orchestrator.storage.postgres import copies  # needs its extra

        return copies.back_up(url, target)


def restore_into_server(
    backup: Path,
    url: str,
    *,
    begun: Callable[[int], object],
    copied: Callable[[int], object],
) -> dict[str, Any]:
    """Make the store of a backup in a database that has none; returns the manifest."""
    _check_scheme(url)
    manifest = read_manifest(backup)
    if manifest.storage == SQLITE:
        raise Failure(
            "usage",
            f"{backup} is a backup of SQLite, which belongs into a data folder.",
            "Restore it with --data DIR.",
            exit_code=USAGE,
        )
    begun(manifest.bytes)
    with _told(backup):
        from recollect.orchestrator.storage.postgres import copies  # needs its extra

        copies.restore(backup, manifest, url, copied)
    return msgspec.structs.asdict(manifest)


def _check_scheme(url: str) -> None:
    if not url.startswith(SCHEMES):
        raise Failure(
            "usage",
            "--storage is not the address of a PostgreSQL database.",
            "Give one such as postgresql://user@host/name; for SQLite there is --data.",
            exit_code=USAGE,
        )


@contextmanager
def _told(backup: Path | None = None) -> Iterator[None]:
    """What can go wrong with a server or a copy, as it is told."""
    try:
        import psycopg

        from recollect.orchestrator.storage.postgres import copies
    except ImportError as missing:
        raise Failure("unsupported", str(missing), "Install what is missing.") from missing
    try:
        yield
    except copies.NotEmpty:
        raise Failure(
            "already_exists",
            "The database holds a store already; it was left as it is.",
            "Restore into a new one: createdb NAME.",
        ) from None
    except (copies.Damaged, FileNotFoundError) as error:
        raise Failure(
            "backup_damaged",
            f"The copy in {backup} is not what its manifest says: {error}. Nothing was restored.",
            "Use another backup.",
        ) from error
    except SchemaError as error:
        raise Failure("schema", str(error), "Then try again.") from error
    except psycopg.Error as error:
        raise Failure(
            "storage_failed",
            f"PostgreSQL refused: {error.diag.message_primary or error}.",
            "Check the address, and what the role may do.",
        ) from error
