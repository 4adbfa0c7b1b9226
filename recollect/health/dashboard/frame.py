"""What stands around every page: navigation, state of the system, theme, and who is signed in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from nicegui import app, ui

from recollect.health.dashboard import parts, theme, wording
from recollect.health.dashboard.visit import Visit, why_down

STATE_EVERY_S = 3.0
THEMES = {"auto": None, "light": False, "dark": True}
THEME_ICONS = {"auto": "brightness_auto", "light": "light_mode", "dark": "dark_mode"}
NEXT_THEME = {"auto": "light", "light": "dark", "dark": "auto"}


class Place(NamedTuple):
    path: str
    name: str
    icon: str


PLACES = (
    Place("/", "Overview", "monitor_heart"),
    Place("/memories", "Memories", "lightbulb_outline"),
    Place("/graph", "Graph", "hub"),
    Place("/namespaces", "Namespaces", "account_tree"),
    Place("/sessions", "Sessions", "forum"),
    Place("/jobs", "Jobs", "event_repeat"),
    Place("/learning", "Learning", "school"),
    Place("/analytics", "Analytics", "insights"),
)


@contextmanager
def frame(visit: Visit, title: str, lead: str = "") -> Iterator[ui.element]:
    """The page with its heading; yields the place for actions beside the heading."""
    ui.page_title(f"{title} · Recollect")
    ui.add_head_html(f'<link rel="stylesheet" href="{theme.ASSETS_PATH}/style.css">')
    ui.colors(primary=theme.ACCENT)
    mode = ui.dark_mode(THEMES[visit.theme])
    skip = parts.link("Skip to content", "#content", "skip")
    skip.props["tabindex"] = 0
    # Open where there is room for it; without being told, the toolkit would ask each browser.
    with ui.left_drawer(value=False).props("show-if-above width=232 breakpoint=899") as drawer:
        _brand()
        _navigation(visit)
        _foot(visit, mode)
    with ui.header(elevated=False).classes("topbar"):
        menu = parts.button(act=drawer.toggle, kind="plain", icon="menu")
        menu.props('aria-label="Open navigation"')
        _brand()
    with parts.box("page", "main") as main:
        main.props["id"] = "content"
        _banner(visit)
        with parts.box("page-head"):
            with parts.box():
                parts.text(title, tag="h1")
                if lead:
                    parts.text(lead, "lead")
            beside = parts.box("across wrap")
        with parts.box("stack wide"):
            yield beside


def _brand() -> None:
    with parts.box("brand", "a") as brand:
        brand.props["href"] = "/"
        logo = parts.box(tag="img")
        logo.props["src"] = f"{theme.ASSETS_PATH}/logo.svg"
        logo.props["alt"] = ""
        parts.text("Recollect", tag="span")


def _navigation(visit: Visit) -> None:
    with parts.box("nav", "nav") as navigation:
        navigation.props["aria-label"] = "Pages"
        for place in PLACES:
            here = visit.path == place.path or (
                place.path != "/" and visit.path.startswith(place.path)
            )
            with parts.box("here" if here else "", "a") as link:
                link.props["href"] = place.path
                if here:
                    link.props["aria-current"] = "page"
                ui.icon(place.icon)
                parts.text(place.name, tag="span")


def _foot(visit: Visit, mode: ui.dark_mode) -> None:
    with parts.box("foot"):
        with parts.box("foot-row"):

            @ui.refreshable
            def state() -> None:
                parts.state_chip(visit.status()["state"])

            state()
            ui.timer(STATE_EVERY_S, state.refresh, immediate=False)
        with parts.box("foot-row"):
            if visit.signed_in():
                ui.icon("lock_open")
                parts.text("Signed in", "grow", "span")
                with parts.box(tag="form") as form:
                    form.props["method"] = "post"
                    form.props["action"] = "/sign-out"
                    parts.text("Sign out", "as-link", "button")
            else:
                ui.icon("visibility")
                parts.text("Read only", "grow", "span")
                parts.link("Sign in", "/sign-in")
        _theme_switch(visit, mode)


def _theme_switch(visit: Visit, mode: ui.dark_mode) -> None:
    chosen = {"theme": visit.theme}
    with parts.box("foot-row"):
        words = parts.text(f"Theme: {visit.theme}", "grow", "span")

        def switch() -> None:
            chosen["theme"] = name = NEXT_THEME[chosen["theme"]]
            mode.value = THEMES[name]
            words.set_text(f"Theme: {name}")
            button.props(f"icon={THEME_ICONS[name]}")
            # Kept by the browser alone, and read when the next page is made.
            ui.run_javascript(
                f"document.cookie = '{theme.THEME_COOKIE}={name};path=/;max-age=31536000;"
                "samesite=strict'"
            )

        button = parts.button(act=switch, kind="plain", icon=THEME_ICONS[visit.theme])
        button.props('size=sm aria-label="Change theme"')


def _banner(visit: Visit) -> None:
    """What is wrong with the orchestrator, above whatever the page shows."""

    @ui.refreshable
    def banner() -> None:
        down = visit.down()
        if down is not None:
            with parts.box("banner") as shown:
                shown.props["role"] = "alert"
                ui.icon("error")
                with parts.box():
                    parts.text("The orchestrator is down", "strong")
                    parts.text(f"{why_down(down)} · for {wording.elapsed(down['since'])}")

    def look_again() -> None:
        banner.refresh()
        if app.storage.client.get(parts.UNANSWERED) and visit.down() is None:
            app.storage.client.pop(parts.UNANSWERED)
            ui.navigate.reload()

    banner()
    ui.timer(STATE_EVERY_S, look_again, immediate=False)
