"""What changes something: only for who is signed in, and asked about before it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui

from recollect.health.dashboard import parts
from recollect.health.dashboard.visit import Visit
from recollect.protocol.errors import RecollectError

SIGN_IN_FIRST = "Sign in to do this: the dashboard is read-only until then."


def action(
    visit: Visit,
    label: str,
    question: str,
    act: Callable[[], Awaitable[Any]],
    done: Callable[[Any], str],
    *,
    icon: str | None = None,
    then: Callable[[], Any] | None = None,
) -> ui.button:
    """A button that asks, acts, and says what came of it."""

    async def clicked() -> None:
        # The button may be as old as the page, and whoever presses it no longer signed in.
        if not visit.signed_in():
            tell(SIGN_IN_FIRST, bad=True)
            return
        if not await confirmed(label, question):
            return
        if not visit.signed_in():
            tell(SIGN_IN_FIRST, bad=True)
            return
        answer = await act()
        if isinstance(answer, RecollectError):
            tell(answer.message, bad=True)
        else:
            tell(done(answer))
        if then is not None:
            then()

    button = parts.button(label, clicked, icon=icon).props("dense").classes("small")
    if not visit.signed_in():
        button.props["title"] = SIGN_IN_FIRST
        button.props["aria-disabled"] = "true"
        button.style("opacity: 0.55")
    return button


async def confirmed(title: str, question: str) -> bool:
    """Whether whoever was asked said yes."""
    with ui.dialog() as dialog, ui.card():
        parts.text(title, tag="h2").style("font-size: 17px")
        parts.text(question, "soft any", "p")
        with parts.box("across").style("justify-content: flex-end"):
            parts.button("Cancel", lambda: dialog.submit(False))
            parts.button(title, lambda: dialog.submit(True), "main").props("autofocus")
    answer = bool(await dialog)
    dialog.clear()
    dialog.delete()
    return answer


def tell(words: str, *, bad: bool = False) -> None:
    """A line that goes away by itself."""
    ui.notify(
        words,
        icon="error" if bad else "check_circle",
        position="bottom-right",
        classes=f"toast {'bad' if bad else 'good'}",
        html=False,
        timeout=6000,
    )
