"""The pages of an empty store, without an orchestrator, and in the dark."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import NARROW, System, looking
from tests.harness.health import HealthProcess
from tests.harness.processes import OrchestratorProcess

PATHS = {
    "/": "Overview",
    "/memories": "Memories",
    "/graph": "Graph",
    "/namespaces": "Namespaces",
    "/sessions": "Sessions",
    "/jobs": "Jobs",
    "/learning": "Learning",
    "/analytics": "Analytics",
}


def test_an_empty_store_says_what_to_do_and_a_missing_one_that_it_is_missing(
    browser: Browser, empty: tuple[OrchestratorProcess, HealthProcess]
) -> None:
    orchestrator, health = empty
    with looking(browser, health.url) as look:
        for path, heading in PATHS.items():
            page = look.go(path, heading)
            expect(page.locator(".empty").first).to_be_visible()
            look.keep(f"empty-{heading.lower()}")
        expect(look.go("/memories").get_by_text("recollect add")).to_be_visible()
        missing = look.go("/memories/none", "Memory")
        expect(missing.get_by_text("Not found")).to_be_visible()

        orchestrator.kill()
        health.until_state("down")
        for path, heading in PATHS.items():
            page = look.go(path, heading)
            expect(page.get_by_text("The orchestrator is down")).to_be_visible()
            look.keep(f"down-{heading.lower()}")
        # The last of them is left open, and fills itself.
        orchestrator.start()
        expect(page.get_by_text("Nothing to tell yet")).to_be_visible()
        expect(page.get_by_text("The orchestrator is down")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_can_be_chosen(
    browser: Browser, system: System, scheme: str
) -> None:
    with looking(browser, system.health.url, scheme=scheme) as look:
        page = look.go("/", "Overview")
        kept = "body--dark" if scheme == "dark" else "body--light"
        expect(page.locator("body")).to_have_class(_holding(kept))
        look.keep("overview")
        page.get_by_role("button", name="Change theme").click()
        page.get_by_role("button", name="Change theme").click()
        page.wait_for_function("document.cookie.includes('theme=dark')")
        look.go("/analytics", "Analytics")
        expect(page.locator("body")).to_have_class(_holding("body--dark"))
        look.keep("analytics-chosen-dark")


def test_beyond_loopback_nothing_is_shown_without_the_token(
    browser: Browser, system: System
) -> None:
    health = HealthProcess(
        system.health.data.parent / "wide",
        system.orchestrator.endpoint,
        {"RECOLLECT_HEALTH_HOST": "0.0.0.0"},
    )
    health.data.mkdir()
    with health, looking(browser, health.url, NARROW) as look:
        page = look.page
        page.goto(f"{look.url}/memories")
        page.wait_for_url("**/sign-in")
        look.keep("sign-in")
        page.get_by_label("Token").fill((health.data / "health" / "token").read_text().strip())
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{look.url}/")
        expect(look.go("/memories", "Memories").locator("a.line").first).to_be_visible()


def _holding(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{name}\b")
