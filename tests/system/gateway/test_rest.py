"""REST as its users meet it: a real orchestrator, a real gateway, plain HTTP."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import trustme

from tests.harness.gateways import REST_ALONE, GatewayProcess
from tests.harness.keys import issue_bearer
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import wait_for

BODY_BYTES_MAX = 10_000
STREAMS_MAX = 2
APP = "https://app.example.org"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    env = {
        **REST_ALONE,
        "RECOLLECT_GATEWAY_BODY_BYTES_MAX": str(BODY_BYTES_MAX),
        "RECOLLECT_GATEWAY_STREAMS_MAX": str(STREAMS_MAX),
        "RECOLLECT_GATEWAY_SHARE_MAX": "1",
        "RECOLLECT_GATEWAY_TIMEOUT_S": "5",
        "RECOLLECT_GATEWAY_ORIGINS_ALLOWED": json.dumps([APP]),
    }
    data = tmp_path_factory.mktemp("rest") / "data"
    with OrchestratorProcess(data) as process, GatewayProcess(process.data, env=env) as gateway:
        yield gateway


@pytest.fixture
def http(gateway: GatewayProcess) -> Iterator[httpx.Client]:
    with gateway.client() as client:
        yield client


def add(http: httpx.Client, content: str = "A note.", **fields: Any) -> str:
    answer = http.post("/v1/memories", json={"content": content, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["memory_id"])


def error(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The error in an answer, which must be a problem of this status."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status and problem["title"] and problem["detail"]
    assert problem["type"] == f"urn:recollect:error:{problem['error']['code']}"
    return dict(problem["error"])


def test_a_memory_is_stored_read_changed_and_deleted(http: httpx.Client) -> None:
    memory_id = add(http, tags=["ship"])
    read = http.get(f"/v1/memories/{memory_id}")
    assert read.json()["memory"]["tags"] == ["ship"]
    changed = http.patch(f"/v1/memories/{memory_id}", json={"content": "Changed."})
    assert changed.json()["version"] == 2
    assert http.delete(f"/v1/memories/{memory_id}").json()["deleted_ids"] == [memory_id]
    assert error(http.get(f"/v1/memories/{memory_id}"), 404)["code"] == "not_found"
    again = http.get(f"/v1/memories/{memory_id}", params={"include_deleted": True})
    assert again.json()["memory"]["content"] == "Changed."


def test_a_key_may_hold_anything_that_can_be_encoded(http: httpx.Client) -> None:
    for key in ("a/b", "a%2Fb", "\u00e9\u4e2d", "a b", "a?b#c", "a+b", "..."):
        path = f"/v1/namespaces/user:alice/keys/{httpx.QueryParams({'k': key})}".replace("k=", "")
        path = path.replace("+", "%20")
        assert http.put(path, json={"value": key}).json()["created"], key
        memory = http.get(path).json()["memory"]
        assert (memory["key"], memory["value"]) == (key, key)


def test_a_version_is_told_and_can_be_asked_for(http: httpx.Client) -> None:
    path = f"/v1/memories/{add(http)}"
    tag = http.get(path).headers["etag"]
    assert tag == '"1"'
    changed = http.patch(path, json={"content": "Two."}, headers={"If-Match": tag})
    assert changed.headers["etag"] == '"2"'
    late = http.patch(path, json={"content": "Three."}, headers={"If-Match": tag})
    assert error(late, 412)["code"] == "version_conflict"
    body = http.patch(path, params={"expected_version": 1}, json={"content": "Three."})
    assert error(body, 409)["code"] == "version_conflict"
    assert error(http.patch(path, json={}, headers={"If-Match": "W/x"}), 400)
    key = "/v1/namespaces/user:bob/keys/once"
    assert http.put(key, json={"value": 1}, headers={"If-None-Match": "*"}).status_code == 200
    assert http.put(key, json={"value": 2}, headers={"If-None-Match": "*"}).status_code == 412
    unversioned = http.get("/v1/ping", headers={"If-Match": '"1"'})
    assert error(unversioned, 400)["code"] == "invalid_argument"


def test_a_write_with_the_same_key_takes_effect_once(http: httpx.Client) -> None:
    headers = {"Idempotency-Key": "only-once"}
    first = http.post("/v1/memories", json={"content": "Once."}, headers=headers)
    second = http.post("/v1/memories", json={"content": "Once."}, headers=headers)
    assert first.json() == second.json()
    other = http.post("/v1/memories", json={"content": "Other."}, headers=headers)
    assert error(other, 409)["code"] == "idempotency_conflict"
    assert error(http.post("/v1/memories", headers={"Idempotency-Key": ""}), 400)


def test_who_speaks_and_for_what_is_kept_with_the_change(http: httpx.Client) -> None:
    session = http.post("/v1/sessions", json={"user_id": "u"}).json()["session_id"]
    headers = {
        "X-Recollect-Agent": "planner",
        "X-Recollect-Session": session,
        "X-Recollect-Task": "t-1",
        "X-Request-Id": "follow-me",
    }
    answer = http.post("/v1/memories", json={"content": "By whom?"}, headers=headers)
    assert answer.headers["x-request-id"] == "follow-me"
    memory = http.get(f"/v1/memories/{answer.json()['memory_id']}").json()["memory"]
    assert (memory["created_by"], memory["session_id"]) == ("planner", session)
    seq = answer.json()["seq"]
    [change] = http.get("/v1/changes", params={"after_seq": seq - 1, "limit": 1}).json()["changes"]
    assert (change["agent"], change["task_id"], change["trace"]) == ("planner", "t-1", "follow-me")
    made = http.get("/v1/ping", headers={"X-Request-Id": "x" * 200}).headers["x-request-id"]
    assert made and made != "x" * 200


def test_pages_lead_on_by_a_link(http: httpx.Client) -> None:
    for number in range(5):
        add(http, f"Page {number}.", namespace="project:paging")
    seen: list[str] = []
    url = "/v1/memories?namespace=project%3Apaging&limit=2"
    for _ in range(3):
        page = http.get(url)
        seen += [memory["content"] for memory in page.json()["memories"]]
        link = page.headers.get("link")
        if link is None:
            break
        url = link.removeprefix("<").partition(">")[0]
    assert seen == [f"Page {number}." for number in (4, 3, 2, 1, 0)]


def test_a_list_and_an_object_fit_into_a_query(http: httpx.Client) -> None:
    add(http, "Heavy.", namespace="project:query", importance=0.9)
    add(http, "Light.", namespace="project:query", importance=0.1)
    filters = json.dumps({"importance": {"gte": 0.5}})
    found = http.get("/v1/memories", params={"namespace": "project:query", "filters": filters})
    assert [memory["content"] for memory in found.json()["memories"]] == ["Heavy."]


def test_what_is_asked_wrongly_is_told_how_to_ask(http: httpx.Client) -> None:
    unknown = http.post("/v1/memories", json={"content": "x", "colour": "red"})
    assert "colour" in error(unknown, 400)["message"]
    assert error(http.get("/v1/nothing"), 404)["code"] == "unknown_operation"
    wrong = http.put("/v1/memories", json={})
    assert error(wrong, 405) and wrong.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    asked = http.request("OPTIONS", "/v1/memories")
    assert (asked.status_code, asked.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
    form = http.post("/v1/memories", data={"content": "x"})
    assert error(form, 415)["code"] == "malformed_request"
    assert error(http.post("/v1/memories", content=b'{"content": "x"}'), 415)
    broken = {"content-type": "application/json"}
    assert error(http.post("/v1/memories", content=b"{", headers=broken), 400)
    with_body = http.request("DELETE", "/v1/memories/x", json={"cascade": False})
    assert "query" in error(with_body, 400)["message"]
    for late in ("-1", "nan", "x"):
        assert error(http.get("/v1/ping", headers={"X-Recollect-Timeout": late}), 400)


def test_a_head_is_the_get_without_its_body(http: httpx.Client) -> None:
    path = f"/v1/memories/{add(http)}"
    head = http.head(path)
    assert head.status_code == 200 and not head.content and head.headers["etag"] == '"1"'
    changes = http.head("/v1/changes", headers=STREAM)
    assert changes.status_code == 200 and not changes.content
    assert changes.headers["content-type"] == "application/json"


def test_a_large_answer_is_zipped_for_who_takes_that(gateway: GatewayProcess) -> None:
    with gateway.client(headers={"accept-encoding": "identity"}) as plain:
        memory_id = add(plain, "Long. " * 500)
        whole = plain.get(f"/v1/memories/{memory_id}", params={"version": 1})
        with plain.stream(
            "GET", f"/v1/memories/{memory_id}?version=1", headers={"accept-encoding": "gzip"}
        ) as answer:
            raw = b"".join(answer.iter_raw())
    assert "content-encoding" not in whole.headers
    assert answer.headers["content-encoding"] == "gzip" and len(raw) < len(whole.content) / 5
    assert json.loads(gzip.decompress(raw))["memory"]["id"] == memory_id


def chunks() -> Iterator[bytes]:
    yield b'{"content": "'
    for _ in range(100):
        yield b"x" * 1000
    yield b'"}'


def test_a_body_that_is_too_large_is_refused_while_it_comes(http: httpx.Client) -> None:
    headers = {"content-type": "application/json"}
    for content in (b" " * (BODY_BYTES_MAX + 1), chunks()):
        refused = http.post("/v1/memories", content=content, headers=headers)
        assert error(refused, 413)["details"]["limit"] == "gateway.body_bytes_max"
    assert http.get("/v1/ping").status_code == 200


def test_only_the_pages_of_allowed_origins_may_read_answers(http: httpx.Client) -> None:
    asked = {"Origin": APP, "Access-Control-Request-Method": "PATCH"}
    allowed = http.request("OPTIONS", "/v1/memories/x", headers=asked)
    assert allowed.headers["access-control-allow-origin"] == APP
    read = http.get("/v1/ping", headers={"Origin": APP})
    assert read.headers["access-control-allow-origin"] == APP
    assert "ETag" in read.headers["access-control-expose-headers"]
    foreign = http.get("/v1/ping", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in foreign.headers
    assert foreign.status_code == 403


def test_the_pages_about_it_are_served_without_a_network(http: httpx.Client) -> None:
    page = http.get("/docs")
    assert (
        page.status_code == 200 and "default-src 'none'" in page.headers["content-security-policy"]
    )
    for asset in ("swagger-ui-bundle.js", "swagger-ui.css", "docs.js", "docs.css"):
        assert f"/docs/{asset}" in page.text
        assert http.get(f"/docs/{asset}").status_code == 200
    assert "http" not in page.text.replace("http-equiv", "")
    document = http.get("/openapi.json")
    assert document.headers["content-encoding"] == "gzip"
    assert document.json()["openapi"].startswith("3.1")
    assert http.get("/").headers["location"] == "/docs"


def test_it_lives_and_is_ready(http: httpx.Client) -> None:
    assert http.get("/health/live").json()["live"] is True
    assert http.get("/health/ready").json() == {"ready": True, "reasons": []}
    assert http.post("/health/ready").status_code == 405


def test_it_waits_as_long_as_it_is_told_and_no_longer(http: httpx.Client) -> None:
    seq = http.get("/v1/ping").json()["seq"]
    answer = http.get(
        "/v1/memories",
        params={"min_seq": seq + 1000},
        headers={"X-Recollect-Timeout": "0.2"},
    )
    assert error(answer, answer.status_code)["retryable"]
    assert answer.status_code in (503, 504)
    assert answer.elapsed.total_seconds() < 3


# The change feed as events.


class Events:
    """A reader of the feed; a heartbeat is no event."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.headers["content-type"] == "text/event-stream", answer.read()
        self._lines = answer.iter_lines()
        self.last_id = ""

    def next(self) -> dict[str, Any]:
        data = None
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "data":
                data = json.loads(value)
            elif not line and data is not None:
                return dict(data)
        raise EOFError


STREAM = {"Accept": "text/event-stream"}


def test_changes_come_as_events_and_go_on_where_they_were_left(http: httpx.Client) -> None:
    query = "/v1/changes?namespace=project:events"
    with http.stream("GET", query, headers=STREAM) as answer:
        events = Events(answer)
        first = add(http, namespace="project:events")
        add(http, namespace="project:elsewhere")
        second = add(http, namespace="project:events")
        got = [events.next(), events.next()]
        assert [change["subject"] for change in got] == [first, second]
        assert [change["operation"] for change in got] == ["add_memory", "add_memory"]
    third = add(http, namespace="project:events")
    resumed = {**STREAM, "Last-Event-ID": str(got[0]["seq"])}
    with http.stream("GET", query, headers=resumed) as answer:
        events = Events(answer)
        assert [events.next()["subject"], events.next()["subject"]] == [second, third]
    assert error(http.get(query, headers={**STREAM, "Last-Event-ID": "x"}), 400)
    ahead = http.get(query, headers={**STREAM, "Last-Event-ID": str(1 << 60)})
    assert error(ahead, 409)["code"] == "changes_ahead"


def test_so_many_readers_follow_at_once(gateway: GatewayProcess, http: httpx.Client) -> None:
    with (
        gateway.client() as one,
        gateway.client() as two,
        one.stream("GET", "/v1/changes", headers=STREAM) as first,
        two.stream("GET", "/v1/changes", headers=STREAM) as second,
    ):
        assert (first.status_code, second.status_code) == (200, 200)
        refused = http.get("/v1/changes", headers=STREAM)
        assert error(refused, 503)["details"]["limit"] == "gateway.streams_max"
        assert int(refused.headers["retry-after"]) >= 1

    def is_free() -> bool:
        with http.stream("GET", "/v1/changes", headers=STREAM) as answer:
            return answer.status_code == 200

    wait_for(is_free)


# Its own life.


def test_what_is_under_way_is_answered_before_the_end(tmp_path: Path) -> None:
    with (
        OrchestratorProcess(tmp_path / "data") as process,
        GatewayProcess(process.data) as gateway,
        gateway.client() as http,
        http.stream("GET", "/v1/changes", headers=STREAM) as streaming,
        socket.create_connection(address_of(gateway), 5) as line,
    ):
        events = Events(streaming)
        body = b'{"content": "Late, but in time."}'
        line.sendall(
            b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body)
        )
        # By this one knows that the request is being read.
        assert line.recv(1024).startswith(b"HTTP/1.1 100 ")
        gateway.signal(signal.SIGTERM)
        wait_for(lambda: not listens(gateway))
        line.sendall(body)
        assert line.recv(1024).startswith(b"HTTP/1.1 200 ")
        with pytest.raises(EOFError):
            events.next()
        assert gateway.wait_ended() == 0
        assert not (process.data / "gateway.json").exists()


def address_of(gateway: GatewayProcess) -> tuple[str, int]:
    address = urlsplit(gateway.url)
    assert address.hostname and address.port
    return address.hostname, address.port


def listens(gateway: GatewayProcess) -> bool:
    try:
        with socket.create_connection(address_of(gateway), 5):
            return True
    except OSError:
        return False


def test_it_follows_an_orchestrator_that_moves(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with (
        OrchestratorProcess(data) as first,
        GatewayProcess(data) as gateway,
        gateway.client() as http,
    ):
        memory_id = add(http)
        assert first.stop() == 0
        gone = http.get("/health/ready")
        assert gone.status_code == 503 and gone.json()["reasons"]
        with OrchestratorProcess(data):
            wait_for(lambda: http.get("/health/ready").status_code == 200)
            assert http.get(f"/v1/memories/{memory_id}").status_code == 200


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with OrchestratorProcess(tmp_path / "data") as process, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        gateway = GatewayProcess(process.data)
        with pytest.raises(AssertionError, match=r"gateway\.port"):
            gateway.start(RECOLLECT_GATEWAY_PORT=str(taken.getsockname()[1]))


def test_it_serves_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    env = {
        **REST_ALONE,
        "RECOLLECT_GATEWAY_TLS_CERTIFICATE": str(tmp_path / "cert.pem"),
        "RECOLLECT_GATEWAY_TLS_KEY": str(tmp_path / "key.pem"),
    }
    trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    with (
        OrchestratorProcess(tmp_path / "data") as process,
        GatewayProcess(process.data, env=env) as gateway,
        gateway.client(verify=trusted) as http,
    ):
        assert gateway.url.startswith("https://")
        memory_id = add(http, "x" * 100_000)
        assert len(http.get(f"/v1/memories/{memory_id}").json()["memory"]["content"]) == 100_000


def test_a_caller_who_asks_too_often_is_told_to_wait(tmp_path: Path) -> None:
    env = {**REST_ALONE, "RECOLLECT_GATEWAY_REQUESTS_PER_S": "3"}
    with (
        OrchestratorProcess(tmp_path / "data") as process,
        GatewayProcess(process.data, env=env) as gateway,
        gateway.client() as http,
    ):
        answers = [http.get("/v1/ping") for _ in range(10)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused and error(refused[0], 429)["code"] == "rate_limited"
        assert int(refused[0].headers["retry-after"]) >= 1


def test_with_keys_each_caller_is_who_its_key_says(tmp_path: Path) -> None:
    env = {"RECOLLECT_ACCESS_REQUIRE_KEYS": "true"}
    with OrchestratorProcess(tmp_path / "data", env=env) as process:
        with process.client() as admin:
            alice = issue_bearer(admin, "alice", ("user:alice", "write"))
            bob = issue_bearer(admin, "bob", ("user:alice", "read"))
        with GatewayProcess(process.data) as gateway, gateway.client() as http:

            def ask(key: str | None, method: str, path: str, **given: Any) -> httpx.Response:
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                return http.request(method, path, headers=headers, **given)

            nobody = ask(None, "GET", "/v1/identity")
            assert error(nobody, 401)["code"] == "unauthenticated"
            assert nobody.headers["www-authenticate"].startswith("Bearer")
            assert error(ask("rk_wrong", "GET", "/v1/identity"), 401)
            assert ask(alice, "GET", "/v1/identity").json()["identity"] == "alice"
            note = {"content": "Hers.", "namespace": "user:alice"}
            stored = ask(alice, "POST", "/v1/memories", json=note)
            memory_id = stored.json()["memory_id"]
            assert ask(bob, "GET", f"/v1/memories/{memory_id}").status_code == 200
            assert error(ask(bob, "POST", "/v1/memories", json=note), 403)["code"] == "forbidden"
            assert error(ask(bob, "GET", "/v1/stats"), 403)
            assert http.get("/health/ready").status_code == 200
            assert http.get("/openapi.json").status_code == 200
            with http.stream(
                "GET",
                "/v1/changes?after_seq=0",
                headers={**STREAM, "Authorization": f"Bearer {bob}"},
            ) as answer:
                assert Events(answer).next()["subject"] == memory_id
