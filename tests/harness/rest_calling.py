"""A REST client as somebody else would have it: made of the OpenAPI document alone."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from recollect.protocol.errors import from_body
from recollect.protocol.operation import Operation, fields_of
from tests.harness.gateway_calling import GatewayCaller

JSON = {"content-type": "application/json"}


class RestCaller(GatewayCaller):
    """Calls over HTTP."""

    def __init__(self, http: httpx.Client) -> None:
        super().__init__()
        self._http = http
        document = http.get("/openapi.json").json()
        self._declared: dict[str, tuple[str, str, dict[str, Any]]] = {
            said["operationId"]: (method, path, said)
            for path, methods in document["paths"].items()
            for method, said in methods.items()
        }

    def call(self, operation: Operation[Any]) -> dict[str, Any]:
        self.called.add(operation.spec.name)
        answer = self._http.request(**self.request_of(operation))
        if answer.is_success:
            return dict(answer.json())
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["status"] == answer.status_code
        raise from_body(problem["error"])

    def request_of(self, operation: Operation[Any]) -> dict[str, Any]:
        """The request that the document describes."""
        method, path, said = self._declared[operation.spec.name]
        given = {
            info.name: msgspec.to_builtins(getattr(operation, info.name))
            for info in fields_of(type(operation))
            if getattr(operation, info.name) not in (msgspec.UNSET, _default(info)) or info.required
        }
        query: list[tuple[str, str]] = []
        for parameter in said["parameters"]:
            name = parameter.get("name")
            if name not in given:
                continue
            value = given.pop(name)
            if parameter["in"] == "path":
                path = path.replace(f"{{{name}}}", quote(value, safe=""))
            elif "content" in parameter or not isinstance(value, list | str):
                query.append((name, json.dumps(value)))
            else:
                values = value if isinstance(value, list) else [value]
                query += [(name, one) for one in values]
        headers = self.headers_of(operation)
        request = {"method": method.upper(), "url": path, "params": query, "headers": headers}
        if "requestBody" in said:
            schema = said["requestBody"]["content"]["application/json"]["schema"]
            body: Any = given
            if "properties" not in schema:
                [body] = given.values()
            headers.update(JSON)
            request["content"] = json.dumps(body)
        else:
            assert not given, f"{operation.spec.name}: the document has no place for {given}"
        return request


def _default(info: msgspec.structs.FieldInfo) -> Any:
    made = info.default_factory
    return info.default if made is msgspec.NODEFAULT else made()
