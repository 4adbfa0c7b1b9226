"""Commands that take memories along: to a file, from a file, and from other programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.exchange_views import brought_text, exported_text, imported_text
from recollect.cli.failures import FAILED, USAGE, Failure
from recollect.cli.output import err, out, print_json
from recollect.cli.progress_bars import counting

if TYPE_CHECKING:
    from recollect.client import MemoryClient

STANDARD = "-"
GOES_ON = "What was taken in stays; the same command again goes on and adds nothing twice."
SOURCES = ("mem0", "langgraph", "mcp-memory", "chatgpt", "claude")
SIGNATURE = b'"recollect-export"'


def export(
    file: Annotated[
        str,
        typer.Argument(
            help="The file to make; packed if it ends in .gz. - writes to standard output.",
            metavar="FILE | -",
            show_default=False,
        ),
    ],
    namespace: options.Namespace = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an export that was broken off.", metavar="")
    ] = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Write all memories, sessions and records to a file: complete, with all versions.

    [dim]recollect export everything.jsonl.gz[/]

    For example: `recollect export everything.jsonl.gz`
    """
    from recollect.exchange.exporting import export as write

    if file == STANDARD and (resume or as_json):
        raise typer.BadParameter("Standard output has the export itself.", param_hint="FILE")
    with calling(endpoint, key_file, as_json=as_json) as client, _files():
        left = "The same command with --resume goes on from here."
        with counting("Exporting", quiet=as_json, left=left) as report:
            told = write(
                client,
                file,
                namespace=namespace,
                resume=resume,
                progress=lambda done, total: report("Exporting memories", done, total),
            )
    if as_json:
        print_json({"status": "success", **msgspec.to_builtins(told)})
    else:
        _say(exported_text(told), err if file == STANDARD else out)


def import_(
    file: Annotated[
        str,
        typer.Argument(
            help="An export, or what another program wrote. - reads standard input.",
            metavar="FILE | -",
            show_default=False,
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help=f"Which program wrote it: {', '.join(SOURCES)}; else it is found out.",
            metavar="PROGRAM",
            show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Where to put what another program wrote; else app:imported:PROGRAM.",
            metavar="NAMESPACE",
            show_default=False,
        ),
    ] = None,
    user: Annotated[
        str,
        typer.Option(help="Whose sessions conversations of another program become."),
    ] = "imported",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be added.", metavar="")
    ] = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Take an export in, or what another program has remembered. Again, it adds nothing twice.

    [dim]recollect import everything.jsonl.gz[/]
    [dim]recollect import conversations.json --from chatgpt --user alice[/]

    For example: `recollect import everything.jsonl.gz --dry-run`
    """
    if source is not None and source not in SOURCES:
        raise typer.BadParameter(f"It is one of {', '.join(SOURCES)}.", param_hint="--from")
    with calling(endpoint, key_file, as_json=as_json) as client, _files():
        if source is None and not _is_export(file):
            from recollect.exchange.importers import found_in

            source = found_in(file)
        if source is None:
            if namespace is not None:
                raise Failure(
                    "invalid_argument",
                    "An export knows the namespaces of what is in it.",
                    "`recollect export --namespace` narrows one.",
                    exit_code=USAGE,
                )
            complete = _import_export(client, file, dry_run=dry_run, as_json=as_json)
        else:
            home = namespace or f"app:imported:{source}"
            complete = _import_foreign(
                client, file, source, home, user=user, dry_run=dry_run, as_json=as_json
            )
    if not complete:
        raise typer.Exit(FAILED)


def _import_export(client: MemoryClient, file: str, *, dry_run: bool, as_json: bool) -> bool:
    from recollect.exchange.importing import import_file

    with counting("Importing", quiet=as_json, left=GOES_ON) as report:
        told = import_file(
            client,
            file,
            dry_run=dry_run,
            progress=lambda done, total: report("Importing records", done, total),
        )
    complete = not told.conflicts and not told.refused
    _tell(told, imported_text(told), complete=complete, as_json=as_json)
    return complete


def _import_foreign(
    client: MemoryClient,
    file: str,
    source: str,
    namespace: str,
    *,
    user: str,
    dry_run: bool,
    as_json: bool,
) -> bool:
    from recollect.exchange.bringing import bring
    from recollect.exchange.importers import reader_of

    with counting("Importing", quiet=as_json, left=GOES_ON) as report:
        told = bring(
            client,
            reader_of(source)(file),
            source,
            namespace,
            user=user,
            dry_run=dry_run,
            progress=lambda done: report(f"Importing from {source}", done, None),
        )
    complete = not told.conflicts and not told.refused
    _tell(told, brought_text(told), complete=complete, as_json=as_json)
    return complete


def _tell(told: msgspec.Struct, text: Text, *, complete: bool, as_json: bool) -> None:
    if as_json:
        status = "success" if complete else "partial"
        print_json({"status": status, **msgspec.to_builtins(told)})
    else:
        _say(text, out)


def _is_export(file: str) -> bool:
    """Whether a file is one of ours; a stream has nothing else to be."""
    if file == STANDARD:
        return True
    if not Path(file).is_file():
        return False
    from recollect.exchange.files import opened

    try:
        with opened(file) as content:
            return SIGNATURE in content.read(500)
    except (OSError, EOFError):
        # Damaged as it is, a packed file is nothing else: what is wrong with it is said later.
        return file.endswith(".gz")


@contextmanager
def _files() -> Iterator[None]:
    """What is wrong with a file ends the command with a message that names file and line."""
    from recollect.exchange.problems import BadFile

    try:
        yield
    except BadFile as bad:
        details: dict[str, Any] = {"path": bad.path}
        if bad.line is not None:
            details["line"] = bad.line
        raise Failure("bad_file", str(bad), bad.expected, **details) from None


def _say(text: Text, console: Any) -> None:
    console.print(text, soft_wrap=True)
