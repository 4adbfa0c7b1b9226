"""The OpenAPI document, made of the declared operations, results and errors."""

from __future__ import annotations

import inspect
import sys
from http import HTTPStatus
from typing import Any

import msgspec

from recollect._version import VERSION
from recollect.client.encoding import WRITING
from recollect.gateway.rest.binding import Binding, kind_of
from recollect.gateway.rest.describing import Description
from recollect.gateway.rest.examples import example_of, values_of
from recollect.gateway.rest.problems import CONTENT_TYPE
from recollect.gateway.rest.routing import names_of
from recollect.protocol.errors import BY_CODE
from recollect.protocol.operation import CALL_OPTIONS, Operation, fields_of, result_of
from recollect.protocol.operations import REGISTRY
from recollect.protocol.records.memories import ALWAYS_SHOWN

Json = dict[str, Any]

OPENAPI_VERSION = "3.1.0"
REF = "#/components/schemas/{name}"
ABOUT = """\
One shared, durable memory for a fleet of AI agents.

Every operation is also a method of the Python client, a tool over MCP where that makes sense, and
a call over gRPC. Errors are `application/problem+json`; their `error` is the same everywhere.
A write that is sent again with the same `Idempotency-Key` takes effect once.

Every request may also say:

"""
FIRST = (
    *("memories", "search", "keyed", "batches", "sessions", "context", "documents", "learning"),
    *("decisions", "working", "longterm", "groups", "relationships", "feed"),
)
"""What most people look for; the other tags follow in the order of their names."""
ALWAYS = (400, 401, 403, 404, 405, 413, 429, 500, 503, 504)
WITH_BODY = (409, 410, 415, 422, 507)
PROBLEM: Json = {
    "type": "object",
    "description": "What went wrong (RFC 9457), with the error as every way in tells it.",
    "required": ["type", "title", "status", "detail", "error"],
    "properties": {
        "type": {"type": "string", "description": "The kind of error as a URN."},
        "title": {"type": "string", "description": "The HTTP status in words."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string", "description": "What happened and what to do, for people."},
        "error": {
            "type": "object",
            "required": ["code", "message", "retryable", "details"],
            "properties": {
                "code": {
                    "type": "string",
                    "enum": [*BY_CODE],
                    "description": "Stable, for programs.",
                },
                "message": {"type": "string"},
                "retryable": {"type": "boolean", "description": "Whether a retry can help."},
                "details": {"type": "object", "description": "Such as the field or the limit."},
            },
        },
    },
}
NAME: Json = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[!-~]+$"}
HEADER_PARAMETERS: dict[str, tuple[str, Json, str]] = {
    "agent": ("X-Recollect-Agent", NAME, "Who writes, as it names itself."),
    "session": ("X-Recollect-Session", NAME, "The session of new memories."),
    "task": ("X-Recollect-Task", NAME, "The task that the work is done for."),
    "fence": (
        "X-Recollect-Fence",
        NAME,
        "The lease under which it is done, as `name/token`; refused once it has another holder.",
    ),
    "timeout": (
        "X-Recollect-Timeout",
        {"type": "number", "exclusiveMinimum": 0},
        "Seconds to wait for the answer, up to what the gateway allows.",
    ),
    "request_id": (
        "X-Request-Id",
        {"type": "string"},
        "An id to follow the request by in logs and audit; made if absent.",
    ),
    "idempotency_key": (
        "Idempotency-Key",
        {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
        "A write with the same key takes effect once.",
    ),
    "if_match": (
        "If-Match",
        {"type": "string", "pattern": '^"[1-9][0-9]{0,17}"$'},
        "Only if this is the present version, as `ETag` gave it; else 412.",
    ),
}
EVERYWHERE = ("agent", "session", "task", "fence", "timeout", "request_id")
ANSWER_HEADERS: Json = {
    "ETag": {"description": "The version, for `If-Match`.", "schema": {"type": "string"}},
    "Link": {"description": 'The next page, as `rel="next"`.', "schema": {"type": "string"}},
    "X-Request-Id": {"description": "The id of the request.", "schema": {"type": "string"}},
}


def openapi_document() -> bytes:
    """The whole document as JSON."""
    return msgspec.json.encode(describe())


def describe() -> Json:
    """The whole document."""
    operations = list(REGISTRY.values())
    results = _components([result_of(cls) for cls in operations])
    for name, always in ALWAYS_SHOWN.items():
        results[name]["required"] = list(always)
    shapes = _components(operations)
    own = {cls.__name__ for cls in operations}
    nested = {name: schema for name, schema in shapes.items() if name not in own}
    paths: dict[str, Json] = {}
    for cls in operations:
        method, template = cls.spec.http
        paths.setdefault(template, {})[method.lower()] = _operation(cls, shapes[cls.__name__])
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Recollect",
            "version": VERSION,
            "description": ABOUT + _sayings(),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{}, {"key": []}],
        "tags": _tags(operations),
        "paths": paths,
        "components": {
            "schemas": {**nested, **results, "Problem": PROBLEM},
            "parameters": {name: _header(*given) for name, given in HEADER_PARAMETERS.items()},
            "headers": ANSWER_HEADERS,
            "responses": {str(status): _problem(status) for status in (*ALWAYS, *WITH_BODY, 412)},
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A bearer key: `recollect keys new NAME --bearer` makes one. "
                    "On loopback it works without, unless keys are asked for.",
                }
            },
        },
    }


def _components(types: list[Any]) -> dict[str, Json]:
    return msgspec.json.schema_components(types, ref_template=REF)[1]


def _tags(operations: list[type[Operation[Any]]]) -> list[Json]:
    modules = dict.fromkeys(cls.__module__ for cls in operations)
    told = {tag(m): (sys.modules[m].__doc__ or "").partition("\n\n")[0] for m in modules}
    order = [*(name for name in FIRST if name in told), *sorted(told.keys() - set(FIRST))]
    return [{"name": name, "description": told[name].replace("\n", " ")} for name in order]


def tag(module: str) -> str:
    """The tag of the operations that a module declares."""
    return module.rsplit(".", 1)[1]


def _operation(cls: type[Operation[Any]], shape: Json) -> Json:
    spec = cls.spec
    binding = Binding(cls, names_of(spec.http[1]))
    summary, _, rest = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")
    summary = summary.replace("\n", " ")
    said: Json = {
        "operationId": spec.name,
        "tags": [tag(cls.__module__)],
        "summary": summary,
        "description": f"{rest.strip()}\n\nNeeds `{spec.access}`.".strip(),
        "parameters": _parameters(cls, binding, shape),
    }
    if binding.takes_body:
        said["requestBody"] = _body(cls, binding, shape)
    result = result_of(cls).__name__
    said["responses"] = {
        "200": {
            "description": "Done.",
            "headers": _headers_told(cls),
            "content": _contents(cls, {"$ref": REF.format(name=result)}),
        }
    }
    for status in (*ALWAYS, *WITH_BODY, *((412,) if binding.has_version else ())):
        said["responses"][str(status)] = {"$ref": f"#/components/responses/{status}"}
    return said


def _contents(cls: type[Operation[Any]], schema: Json) -> Json:
    contents: Json = {"application/json": {"schema": schema}}
    if cls.spec.name == "read_changes":
        contents["text/event-stream"] = {"schema": {"type": "string"}}
    return contents


def _headers_told(cls: type[Operation[Any]]) -> Json:
    description = Description(cls)
    told = ["X-Request-Id"]
    told += ["ETag"] if description.has_version else []
    told += ["Link"] if description.has_pages else []
    return {name: {"$ref": f"#/components/headers/{name}"} for name in told}


def _parameters(cls: type[Operation[Any]], binding: Binding, shape: Json) -> list[Json]:
    examples = values_of(cls)
    types = {field.name: field.type for field in fields_of(cls)}
    required = set(shape.get("required", ()))
    told: list[Json] = []
    for name in binding.path_names:
        told.append(_parameter(name, "path", shape["properties"][name], examples, needed=True))
    for name in binding.query_names:
        schema = without_null(shape["properties"][name])
        one = _parameter(name, "query", schema, examples, needed=name in required)
        if kind_of(types[name]) == "json":
            # An object travels in the query as JSON text.
            one["content"] = {"application/json": {"schema": one.pop("schema")}}
            if "example" in one:
                one["content"]["application/json"]["example"] = one.pop("example")
        told.append(one)
    names = ["idempotency_key"] if cls.spec.access in WRITING else []
    names += ["if_match"] if binding.has_version else []
    return [*told, *({"$ref": f"#/components/parameters/{name}"} for name in names)]


def _parameter(name: str, where: str, schema: Json, examples: Json, *, needed: bool) -> Json:
    schema = dict(schema)
    said: Json = {"name": name, "in": where, "required": needed, "schema": schema}
    if description := schema.pop("description", None):
        said["description"] = description
    if needed and name in examples:
        said["example"] = examples[name]
    return said


def without_null(schema: Json) -> Json:
    """A schema as the query can fill it: what is null there is absent."""
    schema = dict(schema)
    if schema.get("default", "") is None:
        del schema["default"]
    if "anyOf" in schema:
        choices = [one for one in schema["anyOf"] if one != {"type": "null"}]
        if len(choices) == 1:
            del schema["anyOf"]
            return {**choices[0], **schema}
        schema["anyOf"] = choices
    return schema


def _body(cls: type[Operation[Any]], binding: Binding, shape: Json) -> Json:
    whole = cls.spec.http_body
    schema: Json
    if whole is not None:
        schema = shape["properties"][whole]
    else:
        left_out = CALL_OPTIONS.union(binding.path_names)
        properties = {n: s for n, s in shape["properties"].items() if n not in left_out}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [name for name in shape.get("required", ()) if name not in left_out]
        if required:
            schema["required"] = required
    needed = whole is not None or "required" in schema
    content = {"schema": schema, "example": example_of(cls, binding)}
    return {"required": needed, "content": {"application/json": content}}


def _sayings() -> str:
    """The headers that every operation takes, as text: a hundred times they would hide the rest."""
    told = [HEADER_PARAMETERS[name] for name in EVERYWHERE]
    return "\n".join(f"- `{name}`: {description}" for name, _, description in told) + "\n"


def _header(name: str, schema: Json, description: str) -> Json:
    return {"name": name, "in": "header", "schema": schema, "description": description}


def _problem(status: int) -> Json:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {CONTENT_TYPE.decode(): {"schema": {"$ref": REF.format(name="Problem")}}},
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}},
    }
