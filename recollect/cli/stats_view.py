"""The orchestrator's figures, as people see them at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recollect.cli.output import bar, counted, in_words, one_line, out, size
from recollect.protocol.records import Stats

Facts = dict[str, str | Text | None]


def show_stats(answer: Stats, endpoint: str) -> None:
    """What is worth knowing at a glance; --json has the rest."""
    sections = [_section(name, facts) for name, facts in _facts(answer).items()]
    out.print(Panel(Group(*sections), title=Text(endpoint), title_align="left", expand=False))


def _section(name: str, facts: Facts) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", width=9)
    table.add_column(style="dim", width=18)
    table.add_column(overflow="fold")
    shown = {fact: value for fact, value in facts.items() if value is not None}
    for row, (fact, value) in enumerate(shown.items()):
        table.add_row("" if row else name, fact, value if isinstance(value, Text) else Text(value))
    return table


def _facts(answer: Stats) -> dict[str, Facts]:
    memories, storage = answer["memories"], answer["storage"]
    requests, cache = answer["requests"], answer["cache"]
    return {
        "memories": {
            "living": f"{memories['total']:,}",
            "by tier": _counts(memories["by_tier"]),
            "deleted": f"{memories['deleted']:,}",
            "changes so far": f"{answer['seq']:,}",
        },
        "storage": {
            "kind": f"{storage['kind']} {storage.get('engine', '')}".strip(),
            "size": size(storage["bytes"]) if "bytes" in storage else "unknown",
            "waiting writes": f"{storage.get('write_queue_length', 0):,}",
        },
        "embedding": _embedding(answer["embedding"]),
        "index": _index(answer["index"]),
        "requests": {
            "under way": f"{requests['in_flight']:,} of at most {requests['in_flight_max']:,}",
            "served": _counts(requests["served"]),
            "failed": _counts(requests["failed"]),
        },
        "cache": {
            "entries": f"{cache['entries']:,}",
            "hits": _hits(cache),
        },
        "redis": _redis(answer["redis"]),
        "process": {"up for": in_words(answer["uptime_s"])},
    }


def _redis(redis: Mapping[str, Any]) -> Facts:
    """Which it is, and how it is."""
    state = Text(f"{redis['mode']}, {redis['state']}" if redis["mode"] != "off" else "off")
    if redis.get("reason"):
        state.append(f" ({one_line(redis['reason'])})", "yellow")
    used, cache = redis.get("used_memory_bytes"), redis.get("cache")
    return {
        "state": state,
        "version": redis.get("server_version"),
        "memory": None if used is None else size(used),
        "vectors found": None if cache is None else _hits(cache),
        "shared": "temp: state, echoes" if redis.get("shared") else None,
        "orchestrators": f"{redis['orchestrators']:,}" if redis.get("orchestrators") else None,
    }


def _embedding(embedding: Mapping[str, Any]) -> Facts:
    model = Text(f"{one_line(embedding['model'])}, {counted(embedding['dimensions'], 'dimension')}")
    if not embedding.get("available", True):
        model.append(" (not available now)", "yellow")
    waiting = Text(f"{embedding['waiting']:,}")
    reason = embedding.get("waiting_reason") or embedding.get("last_error")
    if embedding["waiting"] and reason:
        waiting.append(f" ({one_line(reason)})", "yellow")
    cache, usage = embedding.get("cache"), embedding.get("provider")
    return {
        "model": model,
        "wait for a vector": waiting,
        "texts so far": f"{embedding.get('texts', 0):,}",
        "texts known again": None if cache is None else _hits(cache),
        "tokens": usage and f"{usage['tokens']:,}, which cost {usage['cost']:.4f}",
        "re-embedding": _reembedding(embedding.get("reembedding") or {}),
    }


def _reembedding(progress: Mapping[str, Any]) -> Text | None:
    """How far the exchange of the model is; None if there is none."""
    state, target = progress.get("state", "idle"), one_line(str(progress.get("target", "")))
    done, total = int(progress.get("done") or 0), progress.get("total")
    match state:
        case "idle":
            return None
        case "done":
            return Text(f"done: {target}", "green")
        case "clearing":
            return Text(f"done: {target}; the old vectors are being removed", "green")
        case "failed":
            return Text(f"failed: {target}; the orchestrator's log says why", "red")
    text = Text(f"{target} ")
    if total:
        text.append(bar(done / total, "green")).append(f" {done:,} of {total:,}")
    if state == "waiting":
        text.append(f" (waits: {one_line(str(progress.get('reason')))})", "yellow")
    return text


def _index(index: Mapping[str, Any]) -> Facts:
    segments = index.get("segments")
    head = index.get("head")
    return {
        "vectors": f"{index['vectors']:,}" + ("" if head is None else f", {head:,} in the head"),
        "segments": None if segments is None else _segments(segments),
        "at work": "building or merging segments" if index.get("building") else None,
    }


def _segments(segments: list[Mapping[str, Any]]) -> str:
    """How many, of which kinds, and how large."""
    if not segments:
        return "none"
    kinds: dict[str, int] = {}
    for segment in segments:
        kinds[str(segment["kind"])] = kinds.get(str(segment["kind"]), 0) + 1
    dropped = sum(segment["tombstones"] for segment in segments)
    deleted = f", {counted(dropped, 'deleted vector')}" if dropped else ""
    return f"{_counts(kinds)}; {size(sum(segment['bytes'] for segment in segments))}{deleted}"


def _hits(cache: Mapping[str, int]) -> str:
    looked_up = cache["hits"] + cache["misses"]
    return f"{cache['hits'] / looked_up:.0%}" if looked_up else "none looked up yet"


def _counts(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"
