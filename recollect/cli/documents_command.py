"""Commands for documents: index, sync, list, search and delete."""

from __future__ import annotations

import os
from typing import Annotated, Literal, cast

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.failures import USAGE, Failure
from recollect.cli.found_views import show_degraded, show_found
from recollect.cli.given import content_from
from recollect.cli.memory_views import shows_full_ids
from recollect.cli.output import (
    ago,
    clean,
    counted,
    note,
    one_line,
    out,
    print_json,
    short_id,
    size,
)
from recollect.cli.progress_bars import Report, counting
from recollect.cli.whole_ids import document_id_from
from recollect.client import MemoryClient
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import DocumentRecord, DocumentsSynced

documents = typer.Typer(
    name="documents",
    help="Read files and texts into the memory, keep them up to date, and search them.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

INDEX_S = 120.0
SYNC_S = 5.0
"""So long one call of a sync may take; then it is shown how far it is, and the next one goes on."""
FAILURES_SHOWN = 10
STYLES = {"synced": "green", "pending": "yellow", "stale": "yellow", "failed": "red"}
GOES_ON = "What was synced stays; the same command goes on from there."

Home = Annotated[
    str,
    typer.Option("--namespace", "-n", help="The namespace to put it in.", metavar="NAMESPACE"),
]


@documents.command("index")
def index(
    path: Annotated[
        str,
        typer.Argument(
            help="A file within documents.roots of the orchestrator; - reads standard input.",
            metavar="PATH | -",
            show_default=False,
        ),
    ],
    title: Annotated[
        str | None,
        typer.Option(help="Its title; else found in it.", metavar="TEXT", show_default=False),
    ] = None,
    document_type: Annotated[
        str,
        typer.Option(
            "--type",
            "-t",
            help="markdown, text, code, html or pdf; auto tells it from name and content.",
            metavar="TYPE",
        ),
    ] = "auto",
    namespace: Home = DEFAULT_NAMESPACE,
    source: Annotated[
        str | None,
        typer.Option(
            help="Where standard input comes from; the same source again is the same document.",
            metavar="TEXT",
            show_default=False,
        ),
    ] = None,
    trust: Annotated[
        float, typer.Option(min=0, max=1, help="From 0 to 1: how far to believe it.")
    ] = 1.0,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Read a document into the memory; of one that is known, only what changed.

    For example: `recollect documents index handbook/pump.md --namespace project:pump`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        given = path == "-"
        if source is not None and not given:
            raise Failure(
                "invalid_argument",
                "--source belongs to standard input; the source of a file is its path.",
                exit_code=USAGE,
            )
        answer = client.index_document(
            None if given else os.path.abspath(os.path.expanduser(path)),
            title,
            # Whether there is such a type, the orchestrator says.
            cast(Literal["auto"], document_type),
            namespace,
            text=content_from(path) if given else None,
            source=source,
            trust=trust,
            timeout=INDEX_S,
        )
        if as_json:
            return print_json(answer)
        document = answer["document"]
        out.print(
            Text.assemble(
                ("Indexed ", "green"),
                f"{one_line(document['title'])} ({document['document_type']}): "
                f"{counted(document['chunks'], 'chunk')}, {answer['added']:,} new, "
                f"{answer['kept']:,} kept, {answer['removed']:,} gone",
            ),
            soft_wrap=True,
        )
        note(f"{clean(document['source'])} · {document['id']}")


@documents.command("sync")
def sync(
    root: Annotated[
        str,
        typer.Argument(
            help="A folder within documents.roots of the orchestrator.",
            metavar="FOLDER",
            show_default=False,
        ),
    ],
    namespace: Home = DEFAULT_NAMESPACE,
    pattern: Annotated[
        str | None,
        typer.Option(
            help="Only files whose path fits, such as '**/*.md'.",
            metavar="PATTERN",
            show_default=False,
        ),
    ] = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Bring the documents of a folder up to date: new, changed and deleted files.

    For example: `recollect documents sync handbook --namespace project:pump`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        folder = os.path.abspath(os.path.expanduser(root))
        with counting("syncing", quiet=as_json, left=GOES_ON) as report:
            answer = _until_complete(client, folder, namespace, pattern, report)
        if as_json:
            return print_json(answer)
        told = (
            f"{clean(answer['root'])}: {counted(answer['files'], 'file')}, "
            f"{answer['synced']:,} synced, {answer['unchanged']:,} unchanged, "
            f"{answer['removed']:,} removed"
        )
        out.print(Text.assemble(("Synced ", "green"), told), soft_wrap=True)
        _show_failures(answer)


def _until_complete(
    client: MemoryClient, folder: str, namespace: str, pattern: str | None, report: Report
) -> DocumentsSynced:
    """Call until the whole folder was gone through; the sum of all calls."""
    synced = removed = 0
    while True:
        answer = client.sync_documents(folder, namespace, pattern=pattern, timeout=SYNC_S)
        synced, removed = synced + answer["synced"], removed + answer["removed"]
        report("syncing", answer["done"], answer["files"])
        if answer["complete"]:
            # What an earlier call has synced, the last one found unchanged.
            unchanged = answer["unchanged"] - (synced - answer["synced"])
            return {
                **answer,
                "synced": synced,
                "removed": removed,
                "unchanged": max(0, unchanged),
            }


def _show_failures(answer: DocumentsSynced) -> None:
    if not answer["failed"]:
        return
    note(f"{counted(answer['failed'], 'file')} could not be read:", "yellow")
    for failure in answer["failures"][:FAILURES_SHOWN]:
        note(f"  {clean(failure['source'])}: {one_line(failure['error'] or '')}")
    if answer["failed"] > FAILURES_SHOWN:
        note("`recollect documents list --status failed` shows them all.")


@documents.command("list")
def list_(
    namespace: options.Namespace = None,
    status: Annotated[
        str | None,
        typer.Option(
            help="Only those in this status: pending, synced, failed, stale.",
            metavar="STATUS",
            show_default=False,
        ),
    ] = None,
    limit: options.Limit = 50,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """List documents, by their source.

    For example: `recollect documents list --status failed`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        # Whether there is such a status, the orchestrator says.
        wanted = cast(Literal["synced"] | None, status)
        answer = client.list_documents(namespace, wanted, limit=limit)
        if as_json:
            return print_json(answer)
        if not answer["documents"]:
            note("There are no documents.", "")
            return note("`recollect documents index PATH` reads one.")
        _show_documents(answer["documents"], full_ids=shows_full_ids(full_ids))
        if answer["cursor"] is not None:
            note(f"There are more: --limit {2 * limit} shows them.")


def _show_documents(found: list[DocumentRecord], *, full_ids: bool) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("id", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("document", overflow="fold")
    table.add_column("chunks", justify="right", no_wrap=True)
    table.add_column("updated", no_wrap=True)
    for document in found:
        status = document["document_status"]
        table.add_row(
            document["id"] if full_ids else short_id(document["id"]),
            Text(status, STYLES.get(status, "")),
            _told(document),
            f"{document['chunks']:,}",
            ago(document["updated_at"]),
        )
    out.print(table)


def _told(document: DocumentRecord) -> Text:
    """What it is and where it comes from; below one another, for paths are long."""
    facts = (document["document_type"], size(document["bytes"]), document["namespace"])
    told = Text.assemble(
        one_line(document["title"]),
        (f"\n{one_line(document['source'])}\n{' · '.join(facts)}", "dim"),
    )
    if document["error"]:
        told.append(f"\n{one_line(document['error'])}", "red")
    return told


@documents.command("search")
def search(
    query: Annotated[
        str, typer.Argument(help="What to look for.", metavar="QUERY", show_default=False)
    ],
    limit: Annotated[
        int, typer.Option("--limit", "-k", "-l", min=1, help="How many at most.", metavar="N")
    ] = 10,
    namespace: options.Namespace = None,
    document: Annotated[
        str | None,
        typer.Option(help="Only in this document.", metavar="ID", show_default=False),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how each score came about.", metavar="")
    ] = False,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Find passages of documents by words and meaning, each with where it stands.

    For example: `recollect documents search "How do I start the pump?"`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        document_id = None if document is None else document_id_from(client, document)
        answer = client.search_documents(
            query, limit, namespace=namespace, document_id=document_id, explain=explain
        )
        if as_json:
            return print_json(answer)
        show_degraded(answer)
        if not answer["results"]:
            note("Nothing was found.", "")
            return note("`recollect documents list` shows what there is.")
        show_found(answer, query, full_ids=full_ids)
        if answer["cursor"] is not None:
            note(f"There are more: --limit {2 * limit} shows them.")


@documents.command("delete")
def delete(
    document_id: Annotated[
        str,
        typer.Argument(
            help="Id of the document, or its end as the list shows it.",
            metavar="ID",
            show_default=False,
        ),
    ],
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Delete a document and its chunks from the memory; the file stays.

    For example: `recollect documents delete 56911517`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.delete_document(document_id_from(client, document_id))
        if as_json:
            return print_json(answer)
        out.print(
            Text.assemble(
                ("Deleted ", "green"),
                f"{answer['document_id']} with {counted(answer['removed'], 'chunk')}",
            ),
            soft_wrap=True,
        )
