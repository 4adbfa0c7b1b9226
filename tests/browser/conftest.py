"""One browser and one system for all tests of the dashboard: filled once, and looked at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.filling import Filled, fill
from tests.browser.looking import FLAGS, Look
from tests.browser.scheduling import leave_jobs
from tests.harness.health import HealthProcess
from tests.harness.processes import OrchestratorProcess

WIDE, NARROW = 1280, 390
# Often enough to be waited for, and seldom enough to leave the machine to the browser.
CALM = {
    "RECOLLECT_HEALTH_PROBE_INTERVAL_S": "0.3",
    "RECOLLECT_HEALTH_CANARY_INTERVAL_S": "2.0",
    "RECOLLECT_HEALTH_INDEX_INTERVAL_S": "60",
}


class System(NamedTuple):
    """What is running, and what is in it."""

    orchestrator: OrchestratorProcess
    health: HealthProcess
    filled: Filled

    @property
    def token(self) -> str:
        return (self.health.data / "health" / "token").read_text().strip()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        assert not os.environ.get("CI"), "chromium is missing: apt-get install chromium"
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def system(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[System]:
    """An orchestrator and a health manager, with what a fleet of agents left behind."""
    data = tmp_path_factory.mktemp("dashboard") / "data"
    with OrchestratorProcess(data) as orchestrator:
        filled = fill(orchestrator.endpoint)
        with orchestrator.client() as client:
            leave_jobs(client)
        with HealthProcess(data, orchestrator.endpoint, CALM) as health:
            health.until_state("healthy")
            yield System(orchestrator, health, filled)


class Window(NamedTuple):
    """A browser of somebody who is not signed in; what it loaded once it does not load again."""

    context: BrowserContext
    kind: str


@pytest.fixture(scope="package", params=[WIDE, NARROW], ids=["wide", "narrow"])
def window(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Window]:
    context = context_of(browser, request.param)
    yield Window(context, f"{request.param}-light")
    context.close()


@pytest.fixture
def look(window: Window, system: System) -> Iterator[Look]:
    """A page, in which nothing may have gone wrong in the end."""
    page = window.context.new_page()
    look = Look(page, system.health.url, window.kind)
    yield look
    look.check()
    page.close()


@contextmanager
def looking(browser: Browser, url: str, width: int = WIDE, scheme: str = "light") -> Iterator[Look]:
    """A page of a browser that knows nothing yet, in which nothing may go wrong."""
    context = context_of(browser, width, scheme)
    try:
        look = Look(context.new_page(), url, f"{width}-{scheme}")
        yield look
        look.check()
    finally:
        context.close()


def context_of(browser: Browser, width: int, scheme: str = "light") -> BrowserContext:
    return browser.new_context(
        viewport={"width": width, "height": 900 if width == WIDE else 844},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )


@pytest.fixture
def empty(tmp_path: Path, browser: Browser) -> Iterator[tuple[OrchestratorProcess, HealthProcess]]:
    """A system of which nobody has made use yet."""
    with (
        OrchestratorProcess(tmp_path / "data") as orchestrator,
        HealthProcess(orchestrator.data, orchestrator.endpoint, CALM) as health,
    ):
        yield orchestrator, health
