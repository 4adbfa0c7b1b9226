"""What the pages are made of. Whatever comes from the store is set as text, never as markup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from nicegui import app, ui
from nicegui.element import Element

from recollect.health.dashboard import theme, wording
from recollect.protocol.errors import RecollectError, TransportError

UNANSWERED = "unanswered"
"""Set for a page that could not be drawn whole: it is drawn anew when the orchestrator is back."""
TONES = {
    **{"healthy": "good", "degraded": "warn", "down": "bad"},
    **{"done": "good", "failed": "bad", "timed_out": "bad", "lost": "bad", "running": "accent"},
    **{"requested": "accent", "skipped": "warn", "undone": "warn", "interrupted": "warn"},
    **{"active": "good", "paused": "warn", "created": "accent", "denied": "bad"},
}


def box(classes: str = "", tag: str = "div") -> Element:
    """An element of ours, looked after by the stylesheet."""
    return ui.element(tag).classes(classes)


def text(words: str, classes: str = "", tag: str = "div", hint: str | None = None) -> ui.label:
    """A text as it is: what looks like markup in it stays text."""
    element = ui.label(words).classes(classes)
    element.tag = tag
    if hint:
        element.props["title"] = hint
    return element


@contextmanager
def card(title: str | None = None, classes: str = "", note: str | None = None) -> Iterator[Element]:
    """A surface with a heading."""
    with box(f"card {classes}", "section") as surface:
        if title is not None:
            with box("card-head"):
                text(title, tag="h2")
                if note:
                    text(note, "card-note")
        yield surface


def stat(label: str, value: str, note: str = "") -> tuple[ui.label, ui.label]:
    """A number to be read from afar; its value and its note can be changed."""
    with box("card stat c3"):
        text(label, "label")
        shown = text(value, "value")
        below = text(note, "note clip")
    return shown, below


def chip(
    words: str,
    tone: str = "",
    *,
    icon: str | None = None,
    colour: str | None = None,
    hint: str | None = None,
) -> Element:
    """A word on a coloured ground."""
    with box(f"chip {tone}", "span") as element:
        if icon:
            ui.icon(icon)
        if colour:
            box("dot", "i").style(f"background: {colour}")
        text(words, tag="span")
    if hint:
        element.props["title"] = hint
    return element


def state_chip(state: str) -> Element:
    """A state by its colour and its word."""
    return chip(wording.spoken(state), TONES.get(state, ""), icon=theme.STATE_ICONS.get(state))


def tier_chip(tier: str) -> Element:
    return chip(tier, colour=theme.TIERS.get(tier, theme.MUTED))


def when(moment: str | None, classes: str = "num", before: str = "") -> Element:
    """How long ago; the moment itself is told to whoever points at it."""
    return text(f"{before}{wording.age(moment)}", classes, "span", wording.at(moment))


def number(amount: float, classes: str = "num") -> Element:
    return text(wording.count(amount), classes, "span", wording.exact(amount))


def link(words: str, path: str, classes: str = "") -> Element:
    """A link to a page of ours."""
    element = text(words, classes, "a")
    element.props["href"] = path
    return element


def button(
    label: str = "", act: Callable[..., Any] | None = None, kind: str = "quiet", **more: Any
) -> ui.button:
    """A button in the colours of the stylesheet: main, quiet, or plain."""
    made = ui.button(label, on_click=act, color=None, **more)
    made.props("flat round dense" if kind == "plain" else "unelevated no-caps")
    return made.classes(kind)


def bar(share: float, colour: str = "var(--accent)") -> Element:
    """How much of the whole, from 0 to 1."""
    with box("bar") as whole:
        width = min(1.0, max(0.0, share)) * 100
        box().style(f"width: {width:.1f}%; background: {colour}")
    return whole


def facts(pairs: Mapping[str, Any]) -> None:
    """Names and what they hold; a value may be a function that shows it."""
    with box("facts", "dl"):
        for name, value in pairs.items():
            if value is None or value == "":
                continue
            text(name, tag="dt")
            with box(tag="dd"):
                if callable(value):
                    value()
                else:
                    text(str(value), tag="span")


def code(words: str) -> Element:
    """A block as it is, in letters of one width."""
    return text(words, "code", "pre")


def empty(icon: str, title: str, words: str = "", command: str | None = None) -> None:
    """There is nothing yet, and what to do about it."""
    with box("empty"):
        ui.icon(icon)
        text(title, "title")
        if words:
            text(words, tag="p")
        if command:
            code(command)


def trouble(error: RecollectError) -> None:
    """Why something cannot be shown, in the words of the error."""
    if isinstance(error, TransportError) or error.code == "error":
        app.storage.client[UNANSWERED] = True
        empty(
            "cloud_off",
            "The orchestrator does not answer",
            f"{error.message} This page fills itself as soon as it is back.",
            "recollect status",
        )
    elif error.code == "unknown_operation":
        empty("hourglass_empty", "Not there yet", "This orchestrator does not know it. Update it.")
    elif error.code == "not_found":
        empty("search_off", "Not found", error.message)
    else:
        empty("error_outline", "That did not work", error.message)


def memory_path(memory_id: str) -> str:
    return f"/memories/{quote(memory_id, safe='')}"


def memory_line(memory: Mapping[str, Any], *more: str) -> Element:
    """A memory in a list: what it says, and what kind of thing it is. Leads to its page."""
    memory_id = memory.get("id") or memory["memory_id"]
    with box("line", "a") as line:
        line.props["href"] = memory_path(memory_id)
        with box("grow"):
            text(wording.shortened(memory["content"], 280), "text")
            with box("meta"):
                tier_chip(memory["memory_tier"])
                chip(memory["memory_type"])
                text(memory["namespace"], "clip", "span")
                for word in more:
                    text(f"· {word}", "num", "span")
    return line
