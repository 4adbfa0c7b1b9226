"""What was learned, in words."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.learning.contrast import Contrast, Mark
from recollect.orchestrator.memories.memory_texts import LEARNED_MARK

TRIGGER_CHARS_MAX = 1_000
ERROR_CHARS_MAX = 200


class Learned(msgspec.Struct, frozen=True):
    """The sentences and lists of a pattern: the value of its memory, so that they have versions."""

    trigger: str
    summary: str = ""
    success_indicators: list[str] = []
    failure_indicators: list[str] = []
    recommended_context: list[str] = []


def pattern_type(contrast: Contrast) -> str:
    """What it was learned from."""
    if not contrast.badly:
        return "success"
    return "mixed" if contrast.well else "failure"


def worded(trigger: str, contrast: Contrast) -> Learned:
    """What a comparison found, as people say it."""
    advice = [
        *(
            f"Do: {mark.text} ({_counted(mark, contrast)}){_example(mark)}."
            for mark in contrast.good
        ),
        *(
            f"Avoid: {mark.text} ({_counted(mark, contrast)}){_example(mark)}."
            for mark in contrast.bad
        ),
        *(
            f"Watch for: {_short(mark.text)} ({_counted(mark, contrast)})."
            for mark in contrast.errors
        ),
    ]
    if contrast.durations_ms is not None:
        well, badly = map(_duration, contrast.durations_ms)
        advice.append(f"Those that went well took about {well}, those that did not {badly}.")
    if not advice:
        # Nothing is common to them, so the last one has to speak for itself.
        told = "The last that went well" if contrast.well else "The last one"
        advice.append(f"{told}: {_short(' '.join(contrast.last.split()))}")
    return Learned(
        trigger[:TRIGGER_CHARS_MAX].strip(),
        _summary(contrast),
        [mark.text for mark in contrast.good],
        [mark.text for mark in (*contrast.bad, *contrast.errors)],
        advice,
    )


def content_of(learned: Learned) -> str:
    """The text of a pattern's memory: what it is for, then what was learned."""
    lines = [f"{learned.trigger}{LEARNED_MARK}{learned.summary}", *learned.recommended_context]
    return "\n".join(lines)


def _summary(contrast: Contrast) -> str:
    total = contrast.well + contrast.badly
    if not contrast.badly:
        told = f"All {total} like tasks went well."
    elif not contrast.well:
        told = f"None of {total} like tasks went well."
    else:
        told = f"Of {total} like tasks {contrast.well} went well."
    if contrast.good:
        told += f" Do: {'; '.join(mark.text for mark in contrast.good)}."
    avoided = [mark.text for mark in contrast.bad]
    if avoided:
        told += f" Avoid: {'; '.join(avoided)}."
    if contrast.errors:
        told += f" Watch for: {'; '.join(_short(mark.text) for mark in contrast.errors)}."
    return told


def _counted(mark: Mark, contrast: Contrast) -> str:
    well = f"in {mark.well} of {contrast.well} that went well"
    badly = f"in {mark.badly} of {contrast.badly} that did not"
    if not contrast.badly:
        return well
    return badly if not contrast.well else f"{well}, {badly}"


def _example(mark: Mark) -> str:
    return f', as in "{mark.example}"' if mark.example else ""


def _short(text: str) -> str:
    return text if len(text) <= ERROR_CHARS_MAX else f"{text[: ERROR_CHARS_MAX - 1]}…"


def _duration(duration_ms: float) -> str:
    if duration_ms < 1_000:
        return f"{duration_ms:.0f} ms"
    return (
        f"{duration_ms / 1000:.1f} s" if duration_ms < 120_000 else f"{duration_ms / 60000:.0f} min"
    )
