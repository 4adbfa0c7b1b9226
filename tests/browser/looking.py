"""A window of the browser, and all that must not happen in it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Locator, Page, Request, expect

FLAGS = [
    *("--no-sandbox", "--headless=new", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-extensions", "--no-first-run", "--disable-default-apps"),
]
SCREENSHOTS = Path(__file__).parents[2] / "test-output" / "screenshots"
LOOPBACK = ("127.0.0.1", "localhost")
PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)


class Look:
    """One window. What goes wrong in it is remembered until `check`."""

    def __init__(self, page: Page, url: str, kind: str) -> None:
        self.page = page
        self.url = url
        self._kind = kind
        self._wrong: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._wrong.append(f"{page.url}: {error}"))
        page.on("request", self._asked)
        page.on("websocket", lambda socket: self._reached(socket.url))

    def go(self, path: str, heading: str | None = None) -> Page:
        """Open a page, and wait until it is drawn."""
        self.page.goto(f"{self.url}{path}")
        drawn = self.page.get_by_role("heading", level=1)
        expect(drawn).to_have_text(heading or drawn.inner_text())
        return self.page

    def text(self, words: str) -> Locator:
        return self.page.get_by_text(words, exact=False).first

    def keep(self, name: str) -> None:
        """Keep a picture, and see that nothing sticks out at the side."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}-{self._kind}.png", full_page=True)
        surplus = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if surplus > 0:
            self._wrong.append(f"{name} is {surplus} px too wide")

    def check(self) -> None:
        """Nothing went wrong, nothing beyond this machine was asked, and no script was run."""
        if self.page.evaluate("window.broken !== undefined"):
            self._wrong.append("what a memory says was taken for a script")
        if self._wrong:
            raise AssertionError("\n".join(self._wrong))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._wrong.append(f"{self.page.url}: {message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")):
            self._reached(request.url)

    def _reached(self, url: str) -> None:
        if urlsplit(url).hostname not in LOOPBACK:
            self._wrong.append(f"{url} was asked for")
