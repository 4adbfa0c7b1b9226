"""What can go wrong in a command, as people and programs get to see it.

A command runs inside `reporting`, which turns every error that is expected into a Failure, shows
it, and exits with its code: 1 for what failed, 2 for what was asked or configured wrongly. An error
that nobody expected keeps its traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
import zmq

from recollect.protocol.errors import BY_CODE, InvalidArgument, RecollectError

if TYPE_CHECKING:
    from recollect.protocol.errors import ErrorReply

FAILED = 1
USAGE = 2

# What to do about an error whose message does not say it already.
ADVICE = {
    "not_found": "`recollect list` shows what there is.",
    "unauthenticated": "Commands take --key-file FILE, and a bearer key from RECOLLECT_BEARER. On "
    "the machine of the orchestrator, RECOLLECT_DATA=<its data folder> is enough.",
    "timeout": "`recollect doctor` says how the orchestrator is.",
    "connection_lost": "Try again; `recollect doctor` says how the orchestrator is.",
    "embedder_unavailable": "Words still find: use `recollect search` without --semantic.",
    "storage_failed": "`recollect doctor` looks into the database.",
    "internal": "`recollect logs` has the details.",
    "limit_exceeded": "Ask for less at once, or raise that limit in the configuration.",
    "path_refused": "Set documents.roots, in the configuration of the orchestrator, to the folders "
    "that may be read.",
}

# What to do about an option that says how to come in, by the name of its field.
WRONG_OPTION = {
    "endpoint": "It is --endpoint, or else RECOLLECT_ENDPOINT.",
    "key_file": "It is --key-file, or else RECOLLECT_KEY_FILE; `recollect keys new NAME` makes "
    "a key.",
}

DAMAGED = (
    "`recollect doctor` looks closer; `recollect restore BACKUP --data NEW_FOLDER` brings a backup "
    "back."
)

# By which command that is shown which was not found, by the name of its id.
LISTED_BY = {
    "session_id": "sessions list",
    "document_id": "documents list",
    "run_id": "runs",
    "job_run_id": "jobs history",
    "job": "jobs list",
    "task_id": "list --type task",
}


# Which extra brings a package that a command may find missing.
EXTRAS = {
    **dict.fromkeys(("apsw", "faiss", "numpy", "rich", "structlog", "yaml"), "server"),
    **dict.fromkeys(("apscheduler", "httpx", "prometheus_client", "redis"), "server"),
    **dict.fromkeys(("onnxruntime", "starlette", "tokenizers", "uvicorn"), "server"),
    "mcp": "gateway",
    "psycopg": "postgres",
    "psycopg_pool": "postgres",
}


class Failure(Exception):
    """A command that could not do its work: what happened, what to do, and a stable code."""

    def __init__(
        self, code: str, message: str, advice: str = "", *, exit_code: int = FAILED, **details: Any
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.advice = advice
        self.exit_code = exit_code
        self.details = details

    def reply(self) -> ErrorReply:
        """The error as the dict that a failed call returns."""
        known = BY_CODE.get(self.code)
        return {
            "status": "error",
            "error": {
                "code": self.code,
                "message": self.message,
                "retryable": known is not None and known.retryable,
                "details": self.details,
            },
        }


def explained(error: Exception) -> Failure | None:
    """The failure behind an error; None for one that is a defect."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, RecollectError):
        return _of_a_call(error)
    if isinstance(error, zmq.ZMQError):
        return _of_binding(error)
    if isinstance(error, ImportError):
        return _of_a_missing_package(error)
    name = f"{type(error).__module__}.{type(error).__name__}"
    if name == "recollect.config.problems.ConfigError":
        return _of_config(error)
    if name == "recollect.orchestrator.running.process.NobodyKnown":
        return Failure("nobody_known", str(error), exit_code=USAGE)
    if name == "recollect.protocol.key_files.BadKeyFile":
        return Failure(
            "bad_key_file", str(error), "Check the path; `recollect keys new NAME` makes a new key."
        )
    if name == "recollect.orchestrator.running.data_folder.FolderInUse":
        return Failure("folder_in_use", str(error))
    if name == "recollect.health.process.AlreadyWatched":
        return Failure("folder_in_use", str(error), "Stop that one, or use it.")
    if name == "recollect.web.listening.AddressTaken":
        return _of_listening(error)
    if name == "recollect.orchestrator.storage.migrations.SchemaError":
        return Failure("schema", str(error))
    if name == "recollect.orchestrator.storage.sqlite.damage.DatabaseDamaged":
        return Failure("database_damaged", f"{error}.", DAMAGED)
    if name.startswith("apsw."):
        return _of_sqlite(error)
    if name.startswith(("psycopg.", "psycopg_pool.")):
        return Failure(
            "storage_failed",
            f"PostgreSQL refused: {error}".strip(),
            "Check storage.url, and that the server runs.",
        )
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        reason = error.strerror or str(error)
        where = f": {error.filename}" if error.filename else ""
        return Failure(
            "os_error",
            f"The system refused: {reason}{where}.",
            "Check the path and who may use it.",
        )
    return None


def _of_a_call(error: RecollectError) -> Failure:
    field = str(error.details.get("field")) if isinstance(error, InvalidArgument) else ""
    wrong_option = field in WRONG_OPTION
    advice = WRONG_OPTION[field] if wrong_option else ADVICE.get(error.code, "")
    if error.code == "not_found":
        if "receipt_id" in error.details:
            advice = "Each context comes with its receipt; who was given it may replay it."
        listing = next((LISTED_BY[name] for name in LISTED_BY if name in error.details), None)
        if listing is not None:
            advice = f"`recollect {listing}` shows what there is."
    return Failure(
        error.code,
        error.message,
        advice,
        exit_code=USAGE if wrong_option else FAILED,
        **error.details,
    )


def _of_a_missing_package(error: ImportError) -> Failure | None:
    """What to install, if it is a package that an extra brings."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return Failure(
        "extra_missing",
        f"This needs the package {package}, which is not installed.",
        f"pip install 'recollect[{EXTRAS[package]}]' brings it.",
        exit_code=USAGE,
        package=package,
    )


def _of_binding(error: zmq.ZMQError) -> Failure:
    if error.errno == zmq.EADDRINUSE:
        return Failure(
            "address_in_use",
            f"Another process listens there already: {error}.",
            "Stop that one, or choose another port with --bind. If it is an orchestrator, "
            "`recollect ping` answers.",
        )
    return Failure(
        "bind_failed", f"The endpoint cannot be bound: {error}.", "Choose another with --bind."
    )


def _of_listening(error: Exception) -> Failure:
    section = getattr(error, "section", "")
    advice = f"Choose another: {section}.host, {section}.port."
    return Failure("address_in_use", str(error), advice)


def _of_config(error: Exception) -> Failure:
    from recollect.config import ConfigError

    assert isinstance(error, ConfigError)
    return Failure(
        "config",
        str(error),
        "Put these right; nothing was started.",
        exit_code=USAGE,
        problems=[str(problem) for problem in error.problems],
    )


def _of_sqlite(error: Exception) -> Failure:
    kind = type(error).__name__
    if kind in ("NotADBError", "CorruptError"):
        return Failure(
            "database_damaged",
            f"The database cannot be read: {error}.",
            DAMAGED,
        )
    if kind in ("FullError", "IOError"):
        return Failure("storage_full", f"The disk is full or failing: {error}.", "Free some space.")
    return Failure(
        "storage_failed",
        f"The database refused: {error}.",
        "Check who may read and write the data folder; `recollect doctor` looks closer.",
    )


@contextmanager
def reporting(show: Callable[[Failure], None]) -> Iterator[None]:
    """Show what fails inside, and exit with its code."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        failure = explained(error)
        if failure is None:
            raise
        show(failure)
        sys.stdout.flush()
        raise typer.Exit(failure.exit_code) from None
