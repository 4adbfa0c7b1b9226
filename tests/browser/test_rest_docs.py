"""The page of the operations: shown and tried out in a real browser, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.harness.gateways import GatewayProcess
from tests.harness.processes import OrchestratorProcess

WITHIN_MS = 30_000


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    data = tmp_path_factory.mktemp("docs") / "data"
    with OrchestratorProcess(data), GatewayProcess(data) as gateway:
        yield gateway


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_an_operation_is_tried_out_on_the_page(
    browser: Browser, gateway: GatewayProcess, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    context.set_default_timeout(WITHIN_MS)
    page = context.new_page()
    wrong: list[str] = []
    asked: set[str | None] = set()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: asked.add(urlsplit(request.url).hostname))
    page.goto(f"{gateway.url}/docs#/memories/add_memory")
    page.locator(".opblock.is-open .execute").click()
    answer = page.locator(".live-responses-table").first
    expect(answer).to_contain_text('"memory_id"', timeout=WITHIN_MS)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong == []
    # What is inlined has no host.
    assert asked - {None, ""} == {"127.0.0.1"}
    dark = page.evaluate("document.documentElement.classList.contains('dark-mode')")
    assert dark == (scheme == "dark")
    context.close()
