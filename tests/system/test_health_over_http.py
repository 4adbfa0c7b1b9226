"""What the health manager asks and tells over HTTP, against real servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

from recollect.config import HealthSettings
from recollect.health.probes.gateway import GatewayProbe
from recollect.health.webhook import Webhook
from tests.harness.ports import free_port

WITHIN_S = 20.0
SETTINGS = HealthSettings(
    webhook_timeout_s=0.3, webhook_attempts_max=3, webhook_backoff_ms=100, alerts_waiting_max=2
)


class Answering:
    """A server that answers with the codes that it is given, one after the other; 0 hangs."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.heard: list[Any] = []
        self.ended = threading.Event()
        answering = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answering.heard.append(msgspec.json.decode(body))
                self.do_GET()

            def do_GET(self) -> None:
                code = answering.codes.pop(0) if answering.codes else 204
                if code == 0:
                    answering.ended.wait(WITHIN_S)
                    return
                self.send_response(code)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Answering]:
    server = Answering()
    yield server
    server.close()


def told(webhook: Webhook, alerts: list[int], until: Callable[[], bool]) -> None:
    async def tell() -> None:
        for number in alerts:
            webhook.tell({"number": number})
        running = asyncio.create_task(webhook.run())
        async with asyncio.timeout(WITHIN_S):
            while not until():
                await asyncio.sleep(0.01)
        running.cancel()

    asyncio.run(tell())


def paused(pauses: list[float]) -> Callable[[float], Any]:
    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    return sleep


def test_an_alert_is_tried_again_with_growing_pauses_and_then_given_up(server: Answering) -> None:
    server.codes = [500, 0, 503, 204]
    pauses: list[float] = []
    webhook = Webhook(server.url, SETTINGS, paused(pauses))
    told(webhook, [1, 2], lambda: webhook.sent == 1)
    assert [alert["number"] for alert in server.heard] == [1, 1, 1, 2]
    assert (webhook.given_up, pauses) == (1, [0.1, 0.2])


def test_what_the_webhook_does_not_want_is_not_sent_again(server: Answering) -> None:
    server.codes = [404, 429, 204]
    webhook = Webhook(server.url, SETTINGS, paused([]))
    told(webhook, [1, 2], lambda: webhook.sent == 1)
    assert [alert["number"] for alert in server.heard] == [1, 2, 2]


def test_of_too_many_alerts_the_oldest_make_room(server: Answering) -> None:
    webhook = Webhook(server.url, SETTINGS, paused([]))
    told(webhook, [1, 2, 3, 4], lambda: webhook.sent == 2)
    assert [alert["number"] for alert in server.heard] == [3, 4]
    assert webhook.given_up == 2


def test_an_alert_that_cannot_be_sent_is_not_the_last(server: Answering) -> None:
    webhook = Webhook("http://127.0.0.1:port/", SETTINGS, paused([]))
    told(webhook, [1, 2], lambda: webhook.given_up == 2)
    webhook = Webhook(server.url, SETTINGS, paused([]))
    told(webhook, [object(), 2], lambda: webhook.sent == 1)  # type: ignore[list-item]
    assert (server.heard, webhook.given_up) == ([{"number": 2}], 1)


def test_a_gateway_is_asked_over_http(server: Answering) -> None:
    async def states() -> list[str]:
        probe = GatewayProbe(lambda: server.url, interval_s=1.0, timeout_s=0.3)
        free = f"http://127.0.0.1:{free_port()}/"
        nobody = GatewayProbe(lambda: free, interval_s=1.0, timeout_s=0.3)
        found: list[str] = [(await probe.look()).state for _ in range(3)]
        found.append((await nobody.look()).state)
        await probe.close()
        await nobody.close()
        return found

    server.codes = [200, 500, 0]
    assert asyncio.run(states()) == ["healthy", "degraded", "down", "down"]
