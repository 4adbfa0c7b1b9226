"""What was found, as people like to read it: one block a result, the best first."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recollect.cli.facts import facts_text
from recollect.cli.highlighting import Wanted, excerpt
from recollect.cli.memory_views import explain_short_ids, shows_full_ids
from recollect.cli.output import ago, bar, note, one_line, out, short_id
from recollect.cli.score_view import explanation_of
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import FoundMemory, MemoriesFound, MemoryRecord

TEXT_LINES_MAX = 4
"""Of one result; `recollect get` shows it whole."""
READABLE_COLUMNS_MAX = 100
READABLE_COLUMNS_MIN = 20
LEAD_COLUMNS = 16
PLAIN_TYPE = "general"
# The orchestrator takes these for who said it and when, too.
SPEAKER_KEYS = ("speaker", "author", "sender", "from", "user", "role")
DATE_KEYS = ("date", "datetime", "date_time", "timestamp", "time", "at", "when", "occurred_at")
NAME_CHARS_MAX = 40


def show_found(answer: MemoriesFound, query: str, *, full_ids: bool) -> None:
    """Every result, with the words of the query marked in it."""
    results = answer["results"]
    full = shows_full_ids(full_ids)
    wanted = Wanted(query)
    best = max((result["score"] for result in results), default=0.0)
    for rank, result in enumerate(results, 1):
        if rank > 1:
            out.print()
        out.print(_block(rank, result, wanted, best, full_ids=full))
    if not full:
        explain_short_ids()


def show_degraded(answer: MemoriesFound) -> None:
    """Say what could not be used for this answer, if anything."""
    if reason := answer.get("degraded"):
        note(one_line(reason), "yellow")


def _block(
    rank: int, result: FoundMemory, wanted: Wanted, best: float, *, full_ids: bool
) -> RenderableType:
    columns = max(READABLE_COLUMNS_MIN, min(READABLE_COLUMNS_MAX, out.width - LEAD_COLUMNS))
    before, after = _around(result)
    parts: list[RenderableType] = [_neighbour(result, near, columns) for near in before]
    parts.append(_text(result, wanted, columns))
    parts += [_neighbour(result, near, columns) for near in after]
    parts.append(_facts(result, columns, full_ids=full_ids))
    if explanation := result.get("explanation"):
        parts.append(explanation_of(explanation, columns))
    lead = Text(f"{rank:>2} ", "bold")
    lead.append(bar(result["score"] / best if best > 0 else 0.0))
    lead.append(f" {_score(result['score']):>5}  ", "not bold")
    block = Table.grid()
    block.add_column(width=LEAD_COLUMNS, no_wrap=True)
    block.add_column(max_width=columns)
    # The rank stands beside the result itself, not beside what came before it.
    block.add_row(Text("\n" * len(before)).append(lead), Group(*parts))
    return block


def _score(score: float) -> str:
    return "<0.01" if 0 < score < 0.005 else f"{score:.2f}"


def _text(result: FoundMemory, wanted: Wanted, columns: int) -> Text:
    """What the memory says, or the part of it that answers best."""
    whole = one_line(result["content"])
    # Lines break at words and so are not quite full, and some scripts take two cells a character.
    cells_max = TEXT_LINES_MAX * columns * 15 // 16
    chars_max = cells_max * len(whole) // max(1, cell_len(whole))
    part = excerpt(whole, wanted.spans(whole), chars_max)
    text = Text(part.text)
    for span in part.spans:
        text.stylize("bold", span.start, span.end)
    return text


def _facts(result: FoundMemory, columns: int, *, full_ids: bool) -> Text:
    """Who, when and where."""
    same = len(result.get("also") or ())
    facts = [
        *(_standing(result) or [_who(result)]),
        _when(result),
        None if result["namespace"] == DEFAULT_NAMESPACE else result["namespace"],
        None if result["memory_type"] == PLAIN_TYPE else result["memory_type"],
        f"key {result['key']}" if result["key"] else None,
        " ".join(f"#{tag}" for tag in result["tags"]),
        result["id"] if full_ids else short_id(result["id"]),
        f"(and {same} that {'says' if same == 1 else 'say'} the same)" if same else None,
    ]
    return facts_text(facts, columns)


def _standing(memory: MemoryRecord) -> list[str | None]:
    """Of a chunk of a document: its headings or title, and where it stands."""
    metadata = memory["metadata"]
    if not (isinstance(metadata.get("document_id"), str) and memory["source"]):
        return []
    place = memory["source"]
    if isinstance(page := metadata.get("page"), int):
        place += f", page {page}"
    elif isinstance(line := metadata.get("line"), int):
        place += f":{line}"
    return [str(metadata.get("heading") or metadata.get("title") or ""), place]


def _who(memory: MemoryRecord) -> str | None:
    """Whose words they are: the speaker that the metadata names, else who stored them."""
    for key in SPEAKER_KEYS:
        if (named := memory["metadata"].get(key)) and isinstance(named, str):
            return named[:NAME_CHARS_MAX]
    return memory["created_by"]


def _when(memory: MemoryRecord) -> str:
    """How long ago it was said; the date too, where somebody has given one."""
    since = memory["valid_from"]
    if since is None:
        for key in DATE_KEYS:
            if (told := memory["metadata"].get(key)) and isinstance(told, str):
                return told[:NAME_CHARS_MAX]
        return ago(memory["updated_at"])
    day, time = since[:10], since[11:16]
    return f"{day}{'' if time == '00:00' else f' {time}'} ({ago(since)})"


def _around(result: FoundMemory) -> tuple[list[MemoryRecord], list[MemoryRecord]]:
    """What is shown before the result and after it, as it was written, its parent first."""
    before: list[MemoryRecord] = []
    after: list[MemoryRecord] = []
    # Ids sort by the time of their making.
    for near in sorted(result.get("neighbours") or (), key=lambda memory: memory["id"]):
        if near["id"] == result["parent_id"]:
            before.insert(0, near)
        elif near["id"] < result["id"]:
            before.append(near)
        else:
            after.append(near)
    return before, after


def _neighbour(result: FoundMemory, near: MemoryRecord, columns: int) -> Text:
    """One line of what stands around a result."""
    kind = "part of: " if near["id"] == result["parent_id"] else ""
    # Who speaks is said where it changes.
    who = _who(near)
    name = f"{who}: " if who and who != _who(result) else ""
    text = Text(f"  {one_line(kind + name + near['content'])}", "dim")
    text.truncate(columns, overflow="ellipsis")
    return text
