"""P24: what foreign pages, crafted paths and endless requests try over HTTP is refused, all of it;
and an orchestrator that is killed costs a wait, never a write."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from recollect.gateway.rest.routing import names_of
from recollect.protocol.operations import REGISTRY
from tests.faults.http_lines import CLOSED, connect, exchange, read_answer, request
from tests.faults.ledger import Trial
from tests.faults.polling import wait_for
from tests.harness.gateways import REST_ALONE, GatewayProcess
from tests.harness.processes import OrchestratorProcess

JSON = b"Content-Type: application/json"
NOTE = b'{"content": "Nobody should have written this."}'
BODY_BYTES_MAX = 20_000
SECRET = "what nobody may read"
QUICK_S = 5.0
RECOVERS_WITHIN_S = 30.0
KILLS = 2
WRITERS = 4


class Target(NamedTuple):
    """A gateway with an orchestrator behind it, and a file outside the folder of documents."""

    gateway: GatewayProcess
    orchestrator: OrchestratorProcess
    folder: Path

    def written(self) -> int:
        with self.orchestrator.client() as client:
            return client.count(include_deleted=True)["count"]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("http")
    (folder / "documents").mkdir()
    (folder / "secret.md").write_text(SECRET)
    (folder / "documents" / "link.md").symlink_to(folder / "secret.md")
    (folder / "documents" / "up").symlink_to(folder)
    env = {"RECOLLECT_DOCUMENTS_ROOTS": str(folder / "documents")}
    limits = {**REST_ALONE, "RECOLLECT_GATEWAY_BODY_BYTES_MAX": str(BODY_BYTES_MAX)}
    with (
        OrchestratorProcess(folder / "data", env=env) as process,
        GatewayProcess(process.data, env=limits) as gateway,
    ):
        yield Target(gateway, process, folder)


def refuse_all(target: Target, requests: list[bytes], *statuses: int) -> None:
    """Try them, and that each is refused, and nothing written or told."""
    before = target.written()
    with Trial("P24") as trial:
        for one in requests:
            trial.case()
            answer = exchange(target.gateway.url, one)
            allowed = statuses or (CLOSED, *range(400, 500))
            trial.check(answer.status in allowed, f"{one[:120]!r}: {answer.status}")
            trial.check(SECRET.encode() not in answer.body, f"{one[:120]!r} told the secret")
            trial.check(b"root:" not in answer.body, f"{one[:120]!r} told of the machine")
        trial.check(target.written() == before, "something was written")
    assert httpx.get(f"{target.gateway.url}/health/ready", trust_env=False).status_code == 200


def test_no_foreign_name_leads_in(target: Target) -> None:
    hosts = [
        *(b"rebound.example", b"rebound.example:7333", b"127.0.0.1.evil.example", b"10.0.0.1"),
        *(b"localhost.evil.example", b"[::2]", b"", b"127.0.0.1@evil.example", b"evil.example#"),
        *(b"xn--localhst-33a", b"0x7f.1", b"2130706433"),
    ]
    paths = [b"/v1/ping", b"/v1/memories", b"/mcp", b"/docs", b"/openapi.json", b"/health/live"]
    requests = [request("GET", path, host=host) for host in hosts for path in paths]
    requests += [request("POST", b"/v1/memories", JSON, host=host, body=NOTE) for host in hosts]
    requests += [b"GET /v1/ping HTTP/1.1\r\nConnection: close\r\n\r\n"]
    requests += [request("GET", b"/v1/ping", b"Host: evil.example")]
    requests += [request("GET", b"http://evil.example/v1/ping", host=b"evil.example")]
    refuse_all(target, requests, 400, 421)


def test_no_page_of_others_gets_in(target: Target) -> None:
    origins = [
        *(b"http://evil.example", b"https://127.0.0.1.evil.example", b"null", b"file://", b""),
        *(b"http://127.0.0.1:1", b"http://localhost", b"chrome-extension://abc", b"http://"),
        *(b"http://127.0.0.1@evil.example", b"javascript:alert(1)", b"http://[::1", b"*"),
    ]
    requests = []
    for origin in origins:
        header = b"Origin: " + origin
        requests += [request("GET", path, header) for path in (b"/v1/memories", b"/mcp", b"/docs")]
        requests.append(request("POST", b"/v1/memories", header, JSON, body=NOTE))
        requests.append(request("DELETE", b"/v1/memories/x", header))
        asks = b"Access-Control-Request-Method: POST"
        requests.append(request("OPTIONS", b"/v1/memories", header, asks))
    for site in (b"cross-site", b"same-site", b"anything"):
        fetched = b"Sec-Fetch-Site: " + site
        requests.append(request("GET", b"/v1/memories", fetched))
        requests.append(request("POST", b"/v1/memories", fetched, JSON, body=NOTE))
    refuse_all(target, requests, 403)


def test_no_form_of_a_foreign_page_writes(target: Target) -> None:
    kinds = [
        *(b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=x", b"text/plain"),
        *(b"text/json", b"application/jsonp", b"application/xml", b"text/plain; application/json"),
        *(b"", b"application/json-patch", b"image/png"),
    ]
    requests = [
        request(method, path, b"Content-Type: " + kind, body=NOTE)
        for kind in kinds
        for method, path in (
            ("POST", b"/v1/memories"),
            ("PUT", b"/v1/namespaces/user:a/keys/k"),
            ("PATCH", b"/v1/sessions/x/state"),
        )
    ]
    requests += [request("POST", b"/v1/memories", body=NOTE)]
    requests += [request("POST", b"/v1/memories", JSON, b"Content-Encoding: gzip", body=NOTE)]
    refuse_all(target, requests, 415)


def test_no_path_leads_out(target: Target) -> None:
    ups = [b"../", b"..%2f", b"%2e%2e/", b"%2e%2e%2f", b"..\\", b"..%5c", b"%252e%252e%252f"]
    ups += [b"....//", b"..;/", b"%c0%ae%c0%ae/", b"..%c0%af", b"..%00/", b"%uff0e%uff0e/"]
    places = [b"etc/passwd", b"proc/self/environ", str(target.folder / "secret.md").encode()[1:]]
    requests = []
    for up in ups:
        for place in places:
            for start in (b"/", b"/v1/", b"/docs/", b"/v1/memories/", b"/v1/documents/"):
                requests.append(request("GET", start + up * 8 + place))
    for start in (b"/docs/", b"//", b"/file:///", b"/docs//"):
        requests += [request("GET", start + place) for place in places]
    refuse_all(target, requests)


def test_no_character_ends_a_path_or_a_header_early(target: Target) -> None:
    ends = [b"%00", b"%0d%0aSet-Cookie:%20a=b", b"%0a", b"%7f", b"%ff", b"%c0%80", b"a%00.json"]
    requests = [
        request("GET", start + end)
        for end in ends
        for start in (b"/v1/memories/", b"/v1/sessions/", b"/docs/", b"/v1/namespaces/user:a/keys/")
    ]
    requests += [request("GET", b"/v1/memories/a" + raw) for raw in (b"\x00", b"\r", b"\x7f")]
    requests += [request("DELETE", b"/v1/memories/.."), request("DELETE", b"/v1/memories/%2e")]
    refuse_all(target, requests)


def test_no_header_is_brought_in_by_what_is_said(target: Target) -> None:
    crafted = [
        *(b"a\r\n Set-Cookie: a=b", b"a\nSet-Cookie: a=b", b"a\rSet-Cookie: a=b", b"a\x00b"),
        *(b"x" * 129, b"\xff\xfe", b"a b", b"\x01"),
    ]
    with Trial("P24") as trial:
        for value in crafted:
            trial.case()
            answer = exchange(
                target.gateway.url, request("GET", b"/v1/ping", b"X-Request-Id: " + value)
            )
            trial.check(b"set-cookie" not in answer.head.lower(), f"{value!r} brought a header in")
            trial.check(
                answer.status in (200, 400, CLOSED) and value not in answer.head,
                f"{value!r}: {answer.head!r}",
            )
        add_two(target)
        for query in (
            b"cursor=&limit=1%0d%0aSet-Cookie:a",
            b"limit=1&namespace=%0d%0aSet-Cookie:a",
        ):
            trial.case()
            answer = exchange(target.gateway.url, request("GET", b"/v1/memories?" + query))
            trial.check(b"set-cookie" not in answer.head.lower(), f"{query!r}: {answer.head!r}")


def add_two(target: Target) -> None:
    with target.orchestrator.client() as client:
        for number in range(2):
            client.add_memory(f"Note {number}.")


def test_no_request_hides_a_second_one(target: Target) -> None:
    hidden = request("POST", b"/v1/memories", JSON, body=NOTE)
    post = b"POST /v1/memories/x/restore HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n"
    requests = [
        post + b"Content-Length: 5\r\n" + chunked + b"\r\n0\r\n\r\n" + hidden,
        post + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden,
        post + b"Content-Length: -1\r\n\r\n" + hidden,
        post + b"Content-Length: +5\r\n\r\n" + hidden,
        post + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden,
        post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
        post + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
        post + chunked + b"\r\nzz\r\n\r\n" + hidden,
        post + chunked + b"\r\n-1\r\n\r\n" + hidden,
        post + chunked + b"\r\nffffffffffffffffff\r\n" + hidden,
    ]
    refuse_all(target, requests, 400, 415, CLOSED)


def test_nothing_without_measure_is_read(target: Target) -> None:
    large = b'{"content": "' + b"x" * BODY_BYTES_MAX + b'"}'
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (large[:9], large[9:])) + b"0\r\n\r\n"
    coded = b"Transfer-Encoding: chunked"
    requests = [
        request("POST", b"/v1/memories", JSON, body=large),
        request("POST", b"/v1/memories", JSON, b"Content-Length: 99999999999999", body=b"{"),
        request("POST", b"/v1/memories", JSON, coded, body=chunked, length=False),
        request("GET", b"/v1/memories/" + b"x" * 20_000),
        request("GET", b"/v1/memories?cursor=" + b"x" * 66_000),
        request("GET", b"/v1/memories?" + b"&".join([b"limit=1"] * 2_000)),
        request("GET", b"/v1/ping", b"X-Recollect-Agent: " + b"x" * 300),
        request("GET", b"/v1/ping", b"X-Recollect-Timeout: 1e999x"),
        request("POST", b"/v1/memories", JSON, body=b'{"metadata":' * 5_000),
        request("POST", b"/v1/memories", JSON, b"Idempotency-Key: " + b"x" * 200, body=NOTE),
        # Heads that do not end.
        b"GET /v1/ping HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 300_000,
        b"GET /v1/ping HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-Y: z\r\n" * 50_000,
        b"GET /" + b"x" * 300_000,
    ]
    refuse_all(target, requests)


def test_no_file_outside_the_documents_is_read(target: Target) -> None:
    inside = target.folder / "documents"
    paths = [
        *(
            "/etc/passwd",
            "/proc/self/environ",
            str(target.folder / "secret.md"),
            "file:///etc/passwd",
        ),
        *(f"{inside}/../secret.md", f"{inside}/link.md", f"{inside}/up/secret.md", "../secret.md"),
        *(
            f"{inside}/x\0/../../secret.md",
            f"{inside}//..//secret.md",
            "~/.ssh/id_rsa",
            str(inside),
        ),
    ]
    requests = []
    for path in paths:
        body = httpx.Request(
            "POST", "http://x", json={"path": path, "namespace": "project:p"}
        ).read()
        requests.append(request("POST", b"/v1/documents", JSON, body=body))
    for root in ("/etc", "/", str(target.folder), f"{inside}/up", f"{inside}/.."):
        body = httpx.Request(
            "POST", "http://x", json={"root": root, "namespace": "project:p"}
        ).read()
        requests.append(request("POST", b"/v1/documents:sync", JSON, body=body))
    refuse_all(target, requests)


def test_nobody_gets_anywhere_without_a_key_that_is_known(target: Target) -> None:
    env = {**REST_ALONE, "RECOLLECT_GATEWAY_REQUIRE_KEYS": "true"}
    other = GatewayProcess(target.folder / "data", target.orchestrator.endpoint, env)
    keys = (b"X: y", b"Authorization: Basic YTpi", b"Authorization: Bearer ", b"Authorization:")
    before = target.written()
    try:
        with other.start(), Trial("P24") as trial:
            for cls in REGISTRY.values():
                method, template = cls.spec.http
                path = template.format(**{name: "x" for name in names_of(template)}).encode()
                for key in keys:
                    trial.case()
                    answer = exchange(other.url, request(method, path, key))
                    trial.check(answer.status == 401, f"{method} {path!r} {key!r}: {answer.status}")
            made_up = b"Authorization: Bearer rk_" + b"x" * 43
            trial.case()
            answer = exchange(other.url, request("GET", b"/v1/memories", made_up))
            trial.check(answer.status == 401, f"a made-up key: {answer.status}")
            trial.check(target.written() == before, "something was written")
    finally:
        other.close()


def test_who_is_slow_keeps_nobody_waiting_and_is_not_waited_for(target: Target) -> None:
    head = b"POST /v1/memories HTTP/1.1\r\nHost: 127.0.0.1\r\n" + JSON + b"\r\n"
    with Trial("P24") as trial, contextlib.ExitStack() as open_lines:
        lines = [open_lines.enter_context(connect(target.gateway.url)) for _ in range(100)]
        for number, line in enumerate(lines):
            line.sendall(head if number % 2 == 0 else head + b"Content-Length: 1000\r\n\r\n{")
        with httpx.Client(base_url=target.gateway.url, trust_env=False, timeout=QUICK_S) as http:
            for _ in range(50):
                trial.case()
                began_s = time.monotonic()
                answer = http.get("/v1/ping")
                took_s = time.monotonic() - began_s
                trial.check(answer.status_code == 200 and took_s < QUICK_S, f"{took_s:.1f} s")
        for line in lines[::2]:
            trial.case()
            given_up = read_answer(line)
            trial.check(given_up.status == 408, f"a head that does not end: {given_up.status}")


class Writers:
    """Write over REST without pause, and repeat what failed with the same key until it is done."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.acknowledged: dict[str, str] = {}
        """The id that each content was acknowledged with."""
        self.wrong: list[str] = []
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(WRITERS)]

    def _run(self, number: int) -> None:
        with httpx.Client(base_url=self._url, trust_env=False, timeout=30.0) as http:
            count = 0
            while not self._stop.is_set():
                count += 1
                self._write(http, f"writer {number} wrote {count}")

    def _write(self, http: httpx.Client, content: str) -> None:
        headers = {"Idempotency-Key": content.replace(" ", "-"), "X-Recollect-Timeout": "5"}
        while True:
            answer = http.post("/v1/memories", json={"content": content}, headers=headers)
            with self._lock:
                self.statuses[answer.status_code] += 1
            if answer.status_code == 200:
                with self._lock:
                    self.acknowledged[content] = answer.json()["memory_id"]
                return
            if answer.status_code not in (503, 504) or not answer.json()["error"]["retryable"]:
                self.wrong.append(f"{answer.status_code} {answer.text}")
                return
            if answer.status_code == 503 and int(answer.headers.get("retry-after", "0")) < 1:
                self.wrong.append("a 503 without Retry-After")

    def wait_for_more(self, count: int) -> None:
        enough = len(self.acknowledged) + count
        wait_for(
            lambda: len(self.acknowledged) >= enough, within_s=RECOVERS_WITHIN_S, what="writes"
        )

    def wait_for_failure(self) -> None:
        enough = self.statuses[503] + 1
        wait_for(lambda: self.statuses[503] >= enough, within_s=RECOVERS_WITHIN_S, what="a 503")

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)


def test_an_orchestrator_that_is_killed_costs_a_wait_and_no_write(tmp_path: Path) -> None:
    with (
        OrchestratorProcess(tmp_path / "data") as process,
        GatewayProcess(process.data) as gateway,
        Trial("P24") as trial,
    ):
        with Writers(gateway.url) as writers:
            for _ in range(KILLS):
                writers.wait_for_more(20)
                process.kill()
                writers.wait_for_failure()
                process.start()
            writers.wait_for_more(20)
        trial.case(sum(writers.statuses.values()))
        for wrong in writers.wrong:
            trial.violated(wrong)
        stored = all_contents(process)
        for content, memory_id in writers.acknowledged.items():
            trial.check(stored.get(content) == [memory_id], f"{content}: {stored.get(content)}")
        trial.check(stored.keys() == writers.acknowledged.keys(), "something else was stored")


def all_contents(process: OrchestratorProcess) -> dict[str, list[str]]:
    """The ids of all memories by what they say."""
    found: dict[str, list[str]] = {}
    cursor: Any = None
    with process.client() as client:
        while True:
            page = client.list_memories(limit=500, cursor=cursor)
            for memory in page["memories"]:
                found.setdefault(memory["content"], []).append(memory["id"])
            cursor = page["cursor"]
            if cursor is None:
                return found
