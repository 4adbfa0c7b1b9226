"""Commands that make copies of the store and bring them back."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.calling import client_of
from recollect.cli.failures import USAGE, Failure, reporting
from recollect.cli.local_key import local_key, reachable
from recollect.cli.output import counted, err, out, print_json, show_failure, size
from recollect.cli.progress_bars import transfer_bars
from recollect.client.settings import KEY_FILE_VARIABLE
from recollect.protocol.errors import Unreachable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

BACKUP_S = 3600.0
ROWS_NAME = "recollect.rows"


def backup(
    destination: Annotated[
        str,
        typer.Argument(
            help="The folder to make; it must not exist.", metavar="DEST", show_default=False
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            help="Back up this data folder, also while no orchestrator serves it.", metavar="DIR"
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Back up this PostgreSQL database, also while no orchestrator serves it.",
            metavar="URL",
        ),
    ] = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Copy the whole store, as it is at one moment, also while it is in use.

    For example: `recollect backup ./backups/monday`
    """
    target = Path(destination).absolute()
    with reporting(partial(show_failure, as_json=as_json)):
        if sum(source is not None for source in (data, storage, endpoint)) > 1:
            raise Failure(
                "usage",
                "--data, --storage and --endpoint each name a source.",
                "Give one of them.",
                exit_code=USAGE,
            )
        with err.status("Copying …"):
            if storage is not None:
                from recollect.cli.backups.servers import back_up_server

                answer = {"status": "success", **back_up_server(storage, target)}
            elif data is not None:
                answer = _back_up_folder(Path(data), key_file, target)
            else:
                answer = _back_up_through(endpoint, key_file, target)
        if as_json:
            return print_json(answer)
        out.print(
            Text.assemble(
                ("Backed up ", "green"),
                f"{size(answer['bytes'])}, up to change {answer['seq']:,}, to {answer['path']}",
                (f"\nBring it back with: {_restoring(Path(answer['path']))}", "dim"),
            ),
            soft_wrap=True,
        )


def _restoring(folder: Path) -> str:
    """How a backup is brought back; one that lies on another machine says it there."""
    on_server = (folder / ROWS_NAME).exists()
    return f"recollect restore {folder} {'--storage URL' if on_server else '--data DIR'}"


def _back_up_through(endpoint: str | None, key_file: str | None, target: Path) -> dict[str, Any]:
    """Let the orchestrator make the copy."""
    with client_of(endpoint, key_file) as client:
        try:
            client.ping()
        except Unreachable as error:
            raise Failure(
                error.code,
                f"No orchestrator answers at {client.endpoint}.",
                f"If none runs, name its data folder: recollect backup {target} --data DIR",
                **error.details,
            ) from error
        return {**client.backup(str(target), timeout=BACKUP_S)}


def _back_up_folder(folder: Path, key_file: str | None, target: Path) -> dict[str, Any]:
    """Make the copy here; if an orchestrator serves the folder, through that one."""
    from recollect.cli.backups.folders import NoDatabase, back_up_unserved
    from recollect.orchestrator.running.data_folder import FolderInUse, announcement

    announced = announcement(folder)
    try:
        return {"status": "success", **back_up_unserved(folder, target)}
    except (FolderInUse, NoDatabase):
        # Where there is none, the one that serves the folder may have its own on a server.
        if announced is None:
            raise
        endpoint = reachable(str(announced["endpoint"]))
        return _back_up_through(endpoint, key_file or _own_key(folder, endpoint), target)


def _own_key(folder: Path, endpoint: str) -> str | None:
    own = None if os.environ.get(KEY_FILE_VARIABLE) else local_key(folder, endpoint)
    return None if own is None else str(own)


def restore(
    backup_folder: Annotated[
        str, typer.Argument(help="The folder of the backup.", metavar="BACKUP", show_default=False)
    ],
    data: Annotated[
        str | None,
        typer.Option(help="The data folder to make; it must not hold a database.", metavar="DIR"),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="The PostgreSQL database to fill, from a backup of one; it must hold no store.",
            metavar="URL",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a data folder, or fill a database, from a backup that is found whole.

    For example: `recollect restore ./backups/monday --data ./restored`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        if (data is None) == (storage is None):
            raise Failure(
                "usage",
                "Where to restore it to is not said, or twice.",
                "Give --data DIR for a backup of SQLite, --storage URL for one of PostgreSQL.",
                exit_code=USAGE,
            )
        from recollect.cli.backups.folders import restore_into
        from recollect.cli.backups.servers import restore_into_server

        with transfer_bars() as progress:
            task = progress.add_task("Copying", total=None)
            begun = partial(_begun, progress, task)
            copied = partial(progress.advance, task)
            if storage is not None:
                manifest = restore_into_server(
                    Path(backup_folder), storage, begun=begun, copied=copied
                )
                restored, serve = "the database", "recollect up, with storage.url set to it"
            else:
                assert data is not None
                folder = Path(data).absolute()
                manifest = restore_into(Path(backup_folder), folder, begun=begun, copied=copied)
                restored, serve = str(folder), f"recollect up --data {folder}"
        if as_json:
            path = None if storage is not None else restored
            return print_json({"status": "success", **manifest, "path": path})
        out.print(
            Text.assemble(
                ("Restored ", "green"),
                f"{size(manifest['bytes'])}, {counted(manifest['seq'], 'change')}, to {restored}",
                (f"\nServe it with: {serve}", "dim"),
            ),
            soft_wrap=True,
        )


def _begun(progress: Progress, task: TaskID, total: int) -> None:
    progress.update(task, total=total)
