"""The OpenAPI document says of every operation what its declaration says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from recollect.gateway.rest.binding import Binding
from recollect.gateway.rest.examples import example_of, values_of
from recollect.gateway.rest.openapi import describe, openapi_document
from recollect.gateway.rest.routing import names_of
from recollect.protocol.operation import CALL_OPTIONS, fields_of
from recollect.protocol.operations import REGISTRY


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return dict(json.loads(openapi_document()))


def operations_in(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            yield path, method.upper(), said


def test_every_operation_is_there_with_all_its_fields(document: dict[str, Any]) -> None:
    told = {said["operationId"]: (m, p, said) for p, m, said in operations_in(document)}
    assert told.keys() == REGISTRY.keys()
    for name, cls in REGISTRY.items():
        method, path, said = told[name]
        assert (method, path) == cls.spec.http
        named = {one["name"] for one in said["parameters"] if "name" in one}
        body = said.get("requestBody", {}).get("content", {}).get("application/json", {})
        if cls.spec.http_body is not None:
            named.add(cls.spec.http_body)
        else:
            named |= body.get("schema", {}).get("properties", {}).keys()
        assert named == {field.name for field in fields_of(cls)}, name
        assert not named & CALL_OPTIONS
        assert said["summary"] and said["responses"]["200"] and said["tags"]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for reference in set(re.findall(r'"\$ref":\s*"#/([^"]+)"', json.dumps(document))):
        place: Any = document
        for part in reference.split("/"):
            assert part in place, reference
            place = place[part]


def test_every_parameter_of_a_path_is_declared(document: dict[str, Any]) -> None:
    for path, _, said in operations_in(document):
        declared = {p["name"] for p in said["parameters"] if p.get("in") == "path"}
        assert declared == set(names_of(path))


@pytest.mark.parametrize("name", REGISTRY)
def test_the_example_of_every_operation_is_a_valid_request(name: str) -> None:
    cls = REGISTRY[name]
    binding = Binding(cls, names_of(cls.spec.http[1]))
    values = values_of(cls)
    body = msgspec.json.encode(example_of(cls, binding)) if binding.takes_body else b""
    query = "&".join(
        f"{n}={quote(values[n] if isinstance(values[n], str) else json.dumps(values[n]))}"
        for n in binding.query_names
        if n in values
    )
    path = tuple(values[n] for n in binding.path_names)
    made = binding.bind(path, query.encode(), body)
    assert made == msgspec.convert(values, cls)


def test_the_schemas_are_json_schemas(document: dict[str, Any]) -> None:
    validators = pytest.importorskip("jsonschema.validators")
    for schema in document["components"]["schemas"].values():
        validators.Draft202012Validator.check_schema(schema)


def test_it_is_made_anew_each_time_and_always_the_same() -> None:
    assert describe() == describe()


def test_what_is_found_promises_only_what_is_always_shown() -> None:
    schemas = describe()["components"]["schemas"]
    assert schemas["FoundMemory"]["required"] == ["id", "score"]
    assert "content" in schemas["MemoryRecord"]["required"]
