"""Commands over memories: add, get, list and history."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.conditions import moment_from
from recollect.cli.failures import USAGE, Failure
from recollect.cli.given import content_from, object_from
from recollect.cli.memory_views import show_count, show_history, show_memories, show_memory
from recollect.cli.output import clean, err, note, out, print_json
from recollect.cli.whole_ids import memory_id_from
from recollect.client import MemoryClient
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import MemoriesListed

PAGE_ITEMS = 500

Where = Annotated[
    str,
    typer.Argument(
        help="Id of the memory, or its end as tables show it; or its namespace, and then its key.",
        metavar="ID | NAMESPACE",
        show_default=False,
    ),
]
Key = Annotated[
    str | None,
    typer.Argument(help="Its key in the namespace.", metavar="KEY", show_default=False),
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
    """Store a memory.

    For example: `recollect add "Anna prefers green tea" --tag anna --namespace user:anna`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.add_memory(
            content_from(text),
            memory_type,
            # Whether there is such a tier, the orchestrator says.
            cast(Literal["short"], tier),
            importance,
            object_from("--metadata", metadata),
            tag or None,
            memory_id_from(client, parent) if parent else None,
            namespace=namespace,
            key=key,
        )
        if as_json:
            return print_json(answer)
        done = ("Known already: ", "yellow") if "echo_of" in answer else ("Stored ", "green")
        out.print(Text.assemble(done, (answer["memory_id"], "cyan")))


def get(
    where: Where,
    key: Key = None,
    version: Annotated[
        int | None,
        typer.Option(min=1, help="This version, not the latest.", metavar="N", show_default=False),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            help="As it was then: 2026-01-31, or 2026-01-31T12:00Z.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one memory, whole: by its id, or by its namespace and key.

    For example: `recollect get user:anna theme --as-of 2026-01-31`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        then = moment_from(as_of)
        if key is not None:
            answer = client.get_by_key(where, key, version, then)
        else:
            memory_id = memory_id_from(client, _id_from(where))
            answer = client.get_memory(memory_id, version=version, as_of=then)
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
    """List memories, the newest first.

    For example: `recollect list --namespace user:anna --limit 50`
    """
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
    memories, cursor = [], None
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("reading", total=total)
        while True:
            page = client.list_memories(
                namespace=namespace, memory_type=memory_type, limit=PAGE_ITEMS, cursor=cursor
            )
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


def _id_from(where: str) -> str:
    """An id; a namespace alone names no memory."""
    if ":" not in where:
        return where
    raise Failure(
        "invalid_argument",
        f"{clean(where)} is a namespace; give the key as well.",
        f"`recollect list -n {clean(where)}` shows what is in it.",
        exit_code=USAGE,
    )


def history(
    where: Where,
    key: Key = None,
    limit: options.Limit = 50,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the versions of a memory, the newest first, also of a deleted one.

    For example: `recollect history user:anna theme`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        if key is not None:
            answer = client.history_by_key(where, key, limit)
        else:
            answer = client.history(memory_id_from(client, _id_from(where)), limit)
        if as_json:
            return print_json(answer)
        note(answer["memory_id"], "cyan")
        show_history(answer["versions"])
        if answer["cursor"] is not None:
            note("There are older versions; --limit shows more.")
