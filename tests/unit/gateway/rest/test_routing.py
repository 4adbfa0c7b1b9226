"""Paths lead to operations by their segments, as they were sent."""

from __future__ import annotations

from collections import Counter

import pytest

from recollect.gateway.rest.routing import PARAMETER, Router, names_of
from recollect.gateway.rest.serving import make_router
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operation import fields_of
from recollect.protocol.operations import REGISTRY

WANTED = {
    ("POST", "/v1/memory/store"),
    ("POST", "/v1/memory/search"),
    ("GET", "/v1/memory/tasks/{task_id}/context"),
    ("GET", "/v1/memory/patterns"),
    ("POST", "/v1/memory/patterns/extract"),
    ("POST", "/v1/memory/patterns/{pattern_id}/feedback"),
}
RESOURCES = ("memories", "sessions", "namespaces", "groups", "documents", "decisions", "jobs")


def test_no_two_operations_share_a_route() -> None:
    # Templates that differ only in the names of their parameters are the same route.
    routes = Counter(
        (cls.spec.http[0], PARAMETER.sub("{}", cls.spec.http[1])) for cls in REGISTRY.values()
    )
    assert [route for route, count in routes.items() if count > 1] == []


def test_the_published_routes_and_resources_are_there() -> None:
    routes = {cls.spec.http for cls in REGISTRY.values()}
    assert routes >= WANTED
    for resource in RESOURCES:
        assert any(path.startswith(f"/v1/{resource}") for _, path in routes), resource


def test_the_parameters_of_a_path_are_texts_of_the_operation() -> None:
    for cls in REGISTRY.values():
        fields = {field.name: field for field in fields_of(cls)}
        for name in names_of(cls.spec.http[1]):
            assert "str" in repr(fields[name].type), (cls.spec.name, name)
            assert "int" not in repr(fields[name].type), (cls.spec.name, name)
        if cls.spec.http_body is not None:
            assert cls.spec.http_body in fields


def test_every_route_leads_to_its_operation() -> None:
    router = make_router()
    for cls in REGISTRY.values():
        method, template = cls.spec.http
        names = names_of(template)
        path = template.format(**{name: f"{name}-1" for name in names})
        found = router.find(path.encode())
        assert found is not None, path
        assert found.targets[method].operation is cls
        assert found.values == tuple(f"{name}-1" for name in names)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (b"/v1/namespaces/user:alice/keys/a%2Fb", ("user:alice", "a/b")),
        (b"/v1/namespaces/user%3Aalice/keys/%C3%A9", ("user:alice", "\xe9")),
        (b"/v1/namespaces/user:alice/keys/a%252Fb", ("user:alice", "a%2Fb")),
        (b"/v1/namespaces/user:alice/keys/a+b", ("user:alice", "a+b")),
        (b"/v1/namespaces/user:alice/keys/...", ("user:alice", "...")),
    ],
)
def test_a_segment_is_decoded_after_the_path_was_split(
    path: bytes, values: tuple[str, ...]
) -> None:
    found = make_router().find(path)
    assert found is not None and found.values == values


@pytest.mark.parametrize(
    "path",
    [
        b"/v1/namespaces/user:alice/keys/a/b",
        b"/v1/namespaces/user:alice/keys/",
        b"/v1/memories/",
        b"//v1/memories",
        b"/v1/memories%2Fcount",
        b"/v1//memories",
        b"/v2/memories",
        b"/",
        b"",
        b"/v1/jobs/:begin",
        b"/v1/../v1/memories",
    ],
)
def test_what_is_no_route_leads_nowhere(path: bytes) -> None:
    assert make_router().find(path) is None


@pytest.mark.parametrize(
    "segment",
    [b"..", b"%2e%2e", b".", b"%2E", b"a%00b", b"%ff", b"a%0d%0ab", b"%7f", b"x" * 20_000],
)
def test_a_segment_that_nobody_can_mean_is_refused(segment: bytes) -> None:
    with pytest.raises(InvalidArgument):
        make_router().find(b"/v1/memories/" + segment)


def test_what_is_fixed_goes_before_what_is_not_and_a_wrong_turn_is_taken_back() -> None:
    router: Router[str] = Router()
    router.add("GET", "/a/{x}/b", "parameter")
    router.add("GET", "/a/fixed/c", "fixed")
    router.add("POST", "/a/{x}:go", "ending")
    found = {path: router.find(path) for path in (b"/a/fixed/c", b"/a/fixed/b", b"/a/1:go")}
    targets = [next(iter(one.targets.values())) for one in found.values() if one is not None]
    assert targets == ["fixed", "parameter", "ending"]
    assert found[b"/a/fixed/b"] is not None and found[b"/a/fixed/b"].values == ("fixed",)
