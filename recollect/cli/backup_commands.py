"""Commands that make copies of the store and bring them back."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.calling import client_of
from recollect.cli.failures import USAGE, Failure, reporting
from recollect.cli.local_key import local_key, reachable
from recollect.cli.output import counted, err, out, print_json, show_failure, size
from recollect.client.settings import KEY_FILE_VARIABLE
from recollect.protocol.errors import Unreachable

BACKUP_S = 3600.0


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
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Copy the whole store, as it is at one moment, also while it is in use."""
    target = Path(destination).absolute()
    with reporting(partial(show_failure, as_json=as_json)):
        if data is not None and endpoint is not None:
            raise Failure(
                "usage",
                "--data and --endpoint name two sources.",
                "Give one of them.",
                exit_code=USAGE,
            )
        with err.status("Copying …"):
            if data is not None:
                answer = _back_up_folder(Path(data), key_file, target)
            else:
                answer = _back_up_through(endpoint, key_file, target)
        if as_json:
            return print_json(answer)
        out.print(
            Text.assemble(
                ("Backed up ", "green"),
                f"{size(answer['bytes'])}, up to change {answer['seq']:,}, to {answer['path']}",
                (f"\nBring it back with: recollect restore {answer['path']} --data DIR", "dim"),
            ),
            soft_wrap=True,
        )


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
    from recollect.cli.restoring import back_up_unserved
    from recollect.orchestrator.data_folder import FolderInUse, announcement

    try:
        return {"status": "success", **back_up_unserved(folder, target)}
    except FolderInUse:
        announced = announcement(folder)
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
        str,
        typer.Option(
            help="The data folder to make; it must not hold a database.",
            metavar="DIR",
            show_default=False,
        ),
    ],
    as_json: options.AsJson = False,
) -> None:
    """Make a data folder from a backup, after checking that the backup is whole."""
    with reporting(partial(show_failure, as_json=as_json)):
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TransferSpeedColumn,
        )

        from recollect.cli.restoring import restore_into

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
        )
        hidden = not err.is_terminal
        with Progress(*columns, console=err, transient=True, disable=hidden) as progress:
            task = progress.add_task("Copying", total=None)
            manifest = restore_into(
                Path(backup_folder),
                Path(data),
                begun=lambda total: progress.update(task, total=total),
                copied=lambda count: progress.advance(task, count),
            )
        restored = str(Path(data).absolute())
        if as_json:
            return print_json({"status": "success", **manifest, "path": restored})
        out.print(
            Text.assemble(
                ("Restored ", "green"),
                f"{size(manifest['bytes'])}, {counted(manifest['seq'], 'change')}, to {restored}",
                (f"\nServe it with: recollect up --data {restored}", "dim"),
            ),
            soft_wrap=True,
        )
