"""Whether a database file is whole, found out before it is served, or soon after if it is large.

SQLite notices damage where it happens to read it. What it does not happen to read, or what is only
in the wrong place, would be answered from. So all of it is read once at each start: every page,
every row of an index against its table, the full text. What lies inside a row it cannot judge.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import structlog

from recollect.orchestrator.yielding import yield_to_others

log = structlog.get_logger()

PROBLEMS_MAX = 5
LOOK_STEPS = 10_000
"""After so many steps of a check, some thousandths of a second, it is looked whether to go on."""
INDEX_FOLDER = "index"
BYTES_PER_MB = 1024 * 1024


class DatabaseDamaged(Exception):
    """The file is not what was written; nothing of it is served."""


def refuse_lost(path: Path) -> None:
    """Refuse to begin anew where a store has been.

    SQLite takes a file that is missing or empty for a new one, and would answer as if nothing had
    ever been remembered. An index is made only once there is a database.
    """
    if path.exists() and path.stat().st_size:
        return
    index = path.parent / INDEX_FOLDER
    with contextlib.suppress(OSError):
        if any(index.iterdir()):
            raise DatabaseDamaged(
                f"{path} is {'empty' if path.exists() else 'missing'}, but the index of its "
                f"memories is there. If nothing of them is to be kept, remove {index}"
            )


@contextlib.contextmanager
def refusing_unreadable(path: Path) -> Iterator[None]:
    """Refuse a file whose header SQLite cannot make sense of, when it is opened inside."""
    try:
        yield
    except apsw.SQLError as error:
        raise DatabaseDamaged(f"{path} cannot be read: {error}") from error


def found_in(connection: apsw.Connection, *, quick: bool = False) -> list[str]:
    """What SQLite's own check says of a database. Raises apsw's errors where it gets no further."""
    check = "quick_check" if quick else "integrity_check"
    found = connection.execute(f"PRAGMA {check}({PROBLEMS_MAX})").fetchall()
    return [str(text) for (text,) in found if text != "ok"]


def problems(connection: apsw.Connection) -> list[str]:
    """What SQLite finds wrong with all of a database; nothing if it is whole."""
    try:
        return found_in(connection)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return [str(error)]


def refuse_damaged(path: Path, connection: apsw.Connection) -> None:
    """Refuse a database in which SQLite finds damage."""
    if found := problems(connection):
        raise DatabaseDamaged(f"{path} is damaged: {'; '.join(found)}")


class DamageCheck:
    """Reads all of a database once: at once if it is small, or beside the first requests."""

    def __init__(
        self, path: Path, connect: Callable[[], apsw.Connection], *, at_once_mb: int
    ) -> None:
        self._path = path
        self._connect = connect
        self._at_once_bytes = at_once_mb * BYTES_PER_MB
        self._connection: apsw.Connection | None = None
        self._thread: threading.Thread | None = None
        self.found: str | None = None
        """What is wrong. Set once by the thread that looks, read by anyone."""

    def run(self, connection: apsw.Connection) -> None:
        """Refuse a damaged database; one that is large is begun with, and looked at meanwhile."""
        if self._path.stat().st_size <= self._at_once_bytes:
            refuse_damaged(self._path, connection)
            return
        self._connection = self._connect()
        self._thread = threading.Thread(target=self._look, name="damage-check", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no further."""
        if self._thread is None or self._connection is None:
            return
        if self._thread.is_alive():
            self._connection.interrupt()
        self._thread.join()
        self._connection.close()

    def _look(self) -> None:
        assert self._connection is not None
        yield_to_others()
        try:
            found = problems(self._connection)
        except apsw.InterruptError:
            return
        except apsw.Error as error:
            log.warning("The database was not looked at.", action="check_damage", reason=str(error))
            return
        if found:
            self.found = "; ".join(found)
            log.error(
                "The database is damaged; nothing of it is served any more. "
                "`recollect doctor` looks closer; `recollect restore` brings a backup back.",
                action="check_damage",
                reason=self.found,
            )
