"""Commands that find memories: recall and search."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.conditions import all_of, filters_from, moment_from
from recollect.cli.found_views import show_degraded, show_found
from recollect.cli.output import note, print_json
from recollect.protocol.records import MemoriesFound

LIMIT = 10

Count = Annotated[
    int, typer.Option("--limit", "-k", "-l", min=1, help="How many at most.", metavar="N")
]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="""Only what fits this JSON: '{"importance": {"gte": 0.5}}'.""",
        metavar="JSON",
        show_default=False,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        "-w",
        help="Only where this holds: tag=ops, 'importance>=0.5', metadata.page=3. May be repeated.",
        metavar="CONDITION",
        show_default=False,
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        help="Search the past, as it was known then: 2026-01-31, or 2026-01-31T12:00Z.",
        metavar="TIME",
        show_default=False,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(help="Leave out what scores less than this.", metavar="SCORE", show_default=False),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show how each score came about.", metavar="")
]
Cursor = Annotated[
    str | None,
    typer.Option(
        help="Go on where an answer ended: the cursor that --json shows.",
        metavar="CURSOR",
        show_default=False,
    ),
]


def recall(
    question: Annotated[
        str, typer.Argument(help="What you want to know.", metavar="QUESTION", show_default=False)
    ],
    limit: Count = LIMIT,
    namespace: options.Namespace = None,
    memory_type: options.MemoryType = None,
    filter_text: Filter = None,
    where: Where = None,
    as_of: AsOf = None,
    threshold: Threshold = None,
    diversity: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="From 0 to 1: prefer what differs from the results before.",
            metavar="NUMBER",
        ),
    ] = 0.0,
    neighbours: Annotated[
        int,
        typer.Option(
            min=0,
            max=20,
            help="Show so many memories around each result: of its session, and its family.",
            metavar="N",
        ),
    ] = 0,
    duplicates: Annotated[
        bool,
        typer.Option("--duplicates", help="Show also those that say the same.", metavar=""),
    ] = False,
    explain: Explain = False,
    cursor: Cursor = None,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Find what helps with a question: by words, by meaning, and by who said it and when.

    For example: `recollect recall "what does Anna drink?" --explain`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = client.recall(
            question,
            limit,
            filters_from(filter_text, where),
            namespace=namespace,
            memory_type=memory_type,
            threshold=threshold,
            as_of=moment_from(as_of),
            cursor=cursor,
            explain=explain,
            collapse=not duplicates,
            diversity=diversity,
            neighbours=neighbours,
        )
        if as_json:
            return print_json(answer)
        _show(
            answer,
            question,
            limit,
            full_ids=full_ids,
            otherwise="Ask in other words, or widen the filters",
        )


def search(
    query: Annotated[
        str, typer.Argument(help="What to look for.", metavar="QUERY", show_default=False)
    ],
    limit: Count = LIMIT,
    namespace: options.Namespace = None,
    memory_type: options.MemoryType = None,
    filter_text: Filter = None,
    where: Where = None,
    as_of: AsOf = None,
    threshold: Threshold = None,
    semantic: Annotated[
        bool, typer.Option("--semantic", help="By meaning instead of by words.", metavar="")
    ] = False,
    explain: Explain = False,
    cursor: Cursor = None,
    full_ids: options.FullIds = False,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Find memories by their words alone, or with --semantic by their meaning alone.

    For example: `recollect search "green tea" --where 'importance>=0.5'`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        filters = filters_from(filter_text, where)
        if semantic:
            of_type = {"memory_type": memory_type} if memory_type else None
            answer = client.semantic_search(
                query,
                limit,
                all_of(of_type, filters),
                namespace=namespace,
                threshold=threshold,
                as_of=moment_from(as_of),
                cursor=cursor,
                explain=explain,
            )
        else:
            answer = client.search_memory(
                query,
                memory_type,
                limit,
                namespace=namespace,
                filters=filters,
                threshold=threshold,
                as_of=moment_from(as_of),
                cursor=cursor,
                explain=explain,
            )
        if as_json:
            return print_json(answer)
        _show(
            answer,
            query,
            limit,
            full_ids=full_ids,
            otherwise=f'Try `recollect recall "{"…" if len(query) > 40 else query}"`',
        )


def _show(answer: MemoriesFound, query: str, limit: int, *, full_ids: bool, otherwise: str) -> None:
    show_degraded(answer)
    if not answer["results"]:
        note("Nothing was found.", "")
        return note(f"{otherwise}; `recollect list` shows what there is.")
    show_found(answer, query, full_ids=full_ids)
    if answer["cursor"] is not None:
        note(f"There are more: --limit {max(2 * limit, LIMIT)} shows them.")
