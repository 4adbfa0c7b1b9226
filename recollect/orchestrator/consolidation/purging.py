"""What the report of a run repeats of a memory goes with the memory when it is purged."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.memories.rows import decode_json, encode_json
from recollect.orchestrator.storage.interface import WriteTransaction

RUNS = """
SELECT id, report FROM runs WHERE id IN (SELECT run_id FROM run_items WHERE num = ?)
"""
REWRITE = "UPDATE runs SET report = ? WHERE id = ?"
TEXTS = frozenset(("content", "subject", "value", "key", "title", "text"))


def forget_in_reports(transaction: WriteTransaction, num: int) -> None:
    """Leave no text in the reports of runs that had to do with a memory."""
    for run_id, report in transaction.execute(RUNS, (num,)):
        told = decode_json(report)
        without = _without_texts(told)
        if without != told:
            transaction.execute(REWRITE, (encode_json(without).decode(), run_id))


def _without_texts(told: Any) -> Any:
    if isinstance(told, dict):
        return {
            name: "" if name in TEXTS and told[name] else _without_texts(told[name])
            for name in told
        }
    return [_without_texts(one) for one in told] if isinstance(told, list) else told
