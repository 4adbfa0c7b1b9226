"""Conversations, notes and documents with questions about them, and which memories answer those.

The JSON files in this folder are small sets of several shapes, written for this project. LoCoMo is
read from wherever its file lies; its licence does not let it be part of the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
LOCOMO_CATEGORIES = {1: "several turns", 2: "time", 3: "inference", 4: "one turn"}


class Memory(msgspec.Struct, frozen=True):
    """What somebody said or wrote."""

    id: int | str
    text: str
    author: str | None
    at: str
    session: str | None = None
    metadata: dict[str, Any] = {}


class Question(msgspec.Struct, frozen=True):
    """What is asked, and the memories that answer it."""

    text: str
    evidence: list[int | str]
    kind: str


class LabelledSet(msgspec.Struct, frozen=True):
    """Memories that belong together, with questions about them."""

    name: str
    memories: list[Memory]
    questions: list[Question]
    # Sets of one group are shown in one row.
    group: str = ""


def own_sets(names: Iterable[str] | None = None) -> list[LabelledSet]:
    """The sets of this folder: those named, or all."""
    wanted = sorted(path.stem for path in HERE.glob("*.json")) if names is None else names
    return [
        msgspec.structs.replace(
            msgspec.json.decode((HERE / f"{name}.json").read_bytes(), type=LabelledSet), group=name
        )
        for name in wanted
    ]


def locomo(path: Path) -> list[LabelledSet]:
    """The conversations of a LoCoMo file, as an agent would have stored them."""
    return [_conversation(raw) for raw in msgspec.json.decode(path.read_bytes())]


def _conversation(raw: dict[str, Any]) -> LabelledSet:
    conversation = raw["conversation"]
    sessions = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    memories = [
        Memory(
            id=turn["dia_id"],
            text=turn["text"],
            author=turn["speaker"],
            at=_moment(conversation[f"{name}_date_time"]),
            session=name,
            metadata={"caption": turn["blip_caption"]} if turn.get("blip_caption") else {},
        )
        for name in sorted(sessions, key=lambda name: int(name.removeprefix("session_")))
        for turn in conversation[name]
    ]
    known = {memory.id for memory in memories}
    questions = []
    for entry in raw["qa"]:
        # Category 5 asks for what was never said. Some labels are malformed: "D8:6; D9:17".
        labels = re.findall(r"D:?(\d+):(\d+)", " ".join(entry["evidence"]))
        evidence: list[int | str] = [f"D{int(session)}:{int(turn)}" for session, turn in labels]
        evidence = [label for label in dict.fromkeys(evidence) if label in known]
        if evidence and entry["category"] in LOCOMO_CATEGORIES:
            kind = LOCOMO_CATEGORIES[entry["category"]]
            questions.append(Question(entry["question"], evidence, kind))
    return LabelledSet(raw["sample_id"], memories, questions, "locomo")


def _moment(text: str) -> str:
    """'1:56 pm on 8 May, 2023' as ISO 8601."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).isoformat()
