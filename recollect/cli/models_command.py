"""Commands for the models that turn text into vectors: install, list and path."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli import options
from recollect.cli.failures import Failure, reporting
from recollect.cli.output import clean, err, note, out, print_json, show_failure, size
from recollect.cli.progress_bars import transfer_bars
from recollect.models.catalogue import CATALOGUE, DEFAULT, Entry, entry_of
from recollect.models.errors import ModelError
from recollect.models.installing import Outcome, Progress, install
from recollect.models.locating import find, installed_in, models_folder

models = typer.Typer(
    name="models",
    help="Install and find the models that turn text into vectors.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(help="The model.", metavar="NAME")]


@models.command("install")
def install_(
    name: Name = DEFAULT,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Take the files from this folder, and from nowhere else.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            help="The folder of models to put it in; else RECOLLECT_MODELS, else the user's own.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Fetch a model, check it, and put it in its place. Does nothing if it is there already.

    For example: `recollect models install`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        entry = entry_of(name)
        folder = models_folder() if to is None else Path(os.path.expanduser(to)).absolute()
        try:
            outcome = _install(entry, folder, source)
        except ModelError as error:
            raise Failure(error.code, error.message, _advice(entry), **error.details) from error
        if as_json:
            return print_json(
                {
                    "status": "success",
                    "name": entry.name,
                    "path": str(outcome.model.folder),
                    "source": outcome.source,
                    "installed": outcome.source is not None,
                }
            )
        done = "Installed " if outcome.source else "Already there: "
        _say(Text.assemble((done, "green"), f"{entry.name} in {outcome.model.folder}"))


@models.command("list")
def list_(as_json: options.AsJson = False) -> None:
    """Show which models there are, and which are installed.

    For example: `recollect models list`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        folder = models_folder()
        there = {model.folder.name: model for model in installed_in(folder)}
        rows = [
            {
                "name": entry.name,
                "installed": entry.name in there,
                "dimensions": entry.dimensions,
                "bytes": entry.size,
                "licence": entry.licence,
                "description": entry.description,
            }
            for entry in CATALOGUE.values()
        ]
        rows += [
            {
                "name": name,
                "installed": True,
                "dimensions": model.traits.dimensions or None,
                "bytes": sum(f.stat().st_size for f in model.folder.iterdir() if f.is_file()),
                "licence": model.traits.licence,
                "description": "Your own.",
            }
            for name, model in there.items()
            if name not in CATALOGUE
        ]
        if as_json:
            return print_json({"status": "success", "folder": str(folder), "models": rows})
        table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
        for title in ("model", "installed", "dimensions", "size", "licence", ""):
            table.add_column(title, justify="right" if title in ("dimensions", "size") else "left")
        for row in rows:
            table.add_row(
                clean(str(row["name"])),
                Text("yes", "green") if row["installed"] else Text("no", "dim"),
                str(row["dimensions"] or "?"),
                size(int(str(row["bytes"]))),
                clean(str(row["licence"])),
                Text(str(row["description"]), "dim"),
            )
        out.print(table)
        note(f"They lie in {folder}")


@models.command("path")
def path(name: Name = DEFAULT, as_json: options.AsJson = False) -> None:
    """Print the folder of an installed model.

    For example: `recollect models path`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        found = find(name)
        if found is None:
            raise Failure(
                "model_missing",
                f"The model {name} is not installed in {models_folder()}.",
                f"recollect models install {name}" if name in CATALOGUE else "",
            )
        if as_json:
            return print_json({"status": "success", "name": name, "path": str(found.folder)})
        _say(Text(str(found.folder)))


def ensure_installed(name: str = DEFAULT) -> Path | None:
    """The folder of the model, installed now if it is absent; None, said loudly, if it cannot be.

    Raises UnknownModel for a name that is neither installed, nor a folder, nor in the catalogue.
    """
    found = find(name)
    if found is not None:
        return found.folder
    entry = entry_of(name)
    try:
        outcome = _install(entry, models_folder(), None)
    except (ModelError, OSError) as error:
        note(
            f"The model {name} could not be installed.\n{clean(str(error))}\n"
            "Until it is there, memories are found by their words and their spelling, not by their "
            f"meaning.\n{_advice(entry)}",
            "bold yellow",
        )
        return None
    note(f"Installed {name} in {outcome.model.folder}", "green")
    return outcome.model.folder


def _install(entry: Entry, folder: Path, source: str | None) -> Outcome:
    sources = None
    if source is not None:
        sources = [entry.in_folder(os.path.abspath(os.path.expanduser(source)))]
    with _showing(entry) as report:
        return install(entry, folder, sources=sources, report=report)


def _advice(entry: Entry) -> str:
    names = " and ".join(file.name for file in entry.files)
    return (
        "Once a source can be reached: recollect models install. Or bring "
        f"{names} here by other means: recollect models install {entry.name} --from FOLDER"
    )


@contextmanager
def _showing(entry: Entry) -> Iterator[Callable[[Progress], None]]:
    """Progress as a bar on a terminal, and as a line for each source elsewhere."""
    if not err.is_terminal:
        told: set[str] = set()

        def tell(progress: Progress) -> None:
            if progress.source not in told:
                told.add(progress.source)
                note(f"Installing {entry.name} from {progress.source} …")

        yield tell
        return

    with transfer_bars() as bars:
        # Nothing is shown while it is only being looked whether the model is there.
        task = bars.add_task(f"Installing {entry.name}", total=None, visible=False)
        yield lambda progress: bars.update(
            task,
            completed=progress.bytes_done,
            total=progress.bytes_total or None,
            visible=True,
        )


def _say(text: Text) -> None:
    out.print(text, soft_wrap=True)
