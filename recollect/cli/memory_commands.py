"""Commands over memories: add, get, list and history."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.calling import calling, whole_id
from recollect.cli.given import content_from, object_from
from recollect.cli.memory_views import show_count, show_history, show_memories, show_memory
from recollect.cli.output import err, note, out, print_json
from recollect.client import MemoryClient
from recollect.protocol.errors import LimitExceeded
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import MemoriesListed

PAGE_ITEMS = 500

MemoryId = Annotated[
    str,
    typer.Argument(
        help="Id of the memory, or its end as tables show it.", metavar="ID", show_default=False
    ),
]


def add(
    text: Annotated[
        str,
        typer.Argument(
            help="What to remember; - reads it from standard input.",
            metavar="TEXT",
            show_default=False,
        ),
    ],
    memory_type: Annotated[
        str,
        typer.Option(
            "--type",
            "-t",
            help="general, semantic, episodic, … or a word of yours.",
            metavar="TYPE",
        ),
    ] = "general",
    tier: Annotated[
        str, typer.Option(help="How fast it fades: short, medium or long.", metavar="TIER")
    ] = "short",
    importance: Annotated[
        float,
        typer.Option(help="From 0 to 1; important memories fade more slowly.", metavar="NUMBER"),
    ] = 0.5,
    tag: Annotated[
        list[str] | None,
        typer.Option(help="A label; may be given several times.", metavar="TAG"),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", help="Where it lives, such as user:alice.", metavar="NAMESPACE"
        ),
    ] = DEFAULT_NAMESPACE,
    key: Annotated[
        str | None,
        typer.Option(help="A name of yours, unique in its namespace.", metavar="KEY"),
    ] = None,
    metadata: Annotated[
        str | None, typer.Option(help="A JSON object to keep beside it.", metavar="JSON")
    ] = None,
    parent: Annotated[
        str | None, typer.Option(help="Id of the memory that it is a part of.", metavar="ID")
    ] = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Store a memory."""
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.add_memory(
            content_from(text),
            memory_type,
            # Whether there is such a tier, the orchestrator says.
            cast(Literal["short"], tier),
            importance,
            object_from("--metadata", metadata),
            tag or None,
            whole_id(client, parent) if parent else None,
            namespace=namespace,
            key=key,
        )
        if as_json:
            return print_json(answer)
        out.print(Text.assemble(("Stored ", "green"), (answer["memory_id"], "cyan")))


def get(
    memory_id: MemoryId,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one memory, whole."""
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.get_memory(whole_id(client, memory_id))
        if as_json:
            return print_json(answer)
        show_memory(answer["memory"])


def list_(
    namespace: options.Namespace = None,
    memory_type: options.MemoryType = None,
    limit: options.Limit = 20,
    everything: Annotated[
        bool, typer.Option("--all", help="All of them, page by page.", metavar="")
    ] = False,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """List memories, the newest first."""
    with calling(endpoint, key_file, as_json=as_json) as client:
        if everything:
            answer = _all_pages(client, namespace, memory_type)
        else:
            answer = client.list_memories(namespace=namespace, memory_type=memory_type, limit=limit)
        if as_json:
            return print_json(answer)
        if not answer["memories"]:
            if namespace or memory_type:
                return note("No memory fits; `recollect list` alone shows all of them.", "")
            return note('Nothing is remembered yet. Begin with: recollect add "…"', "")
        show_memories(answer["memories"], full_ids=full_ids)
        if answer["cursor"] is None:
            return show_count(answer["count"])
        total = client.count(namespace=namespace, memory_type=memory_type)["count"]
        show_count(answer["count"], total, "--limit or --all shows more")


def _all_pages(
    client: MemoryClient, namespace: str | None, memory_type: str | None
) -> MemoriesListed:
    """Every page as if it were one, with progress on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    total = client.count(namespace=namespace, memory_type=memory_type)["count"]
    memories, cursor, items = [], None, PAGE_ITEMS
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("reading", total=total)
        while True:
            try:
                page = client.list_memories(
                    namespace=namespace, memory_type=memory_type, limit=items, cursor=cursor
                )
            except LimitExceeded as error:
                allowed = error.details.get("maximum", items)
                if allowed >= items:
                    raise
                items = allowed
                continue
            memories += page["memories"]
            progress.advance(task, page["count"])
            cursor = page["cursor"]
            if cursor is None:
                return {
                    "status": page["status"],
                    "memories": memories,
                    "count": len(memories),
                    "cursor": None,
                }


def history(
    memory_id: MemoryId,
    limit: options.Limit = 50,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the versions of a memory, the newest first, also of a deleted one."""
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.history(whole_id(client, memory_id), limit)
        if as_json:
            return print_json(answer)
        note(answer["memory_id"], "cyan")
        show_history(answer["versions"])
        if answer["cursor"] is not None:
            note("There are older versions; --limit shows more.")
