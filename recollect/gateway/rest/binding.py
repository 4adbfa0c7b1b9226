"""An operation from a request: path, query and body become its fields, each checked by its type."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect

from recollect.protocol.errors import InvalidArgument, MalformedRequest
from recollect.protocol.explaining import NAME_CHARS_SHOWN, explain
from recollect.protocol.operation import CALL_OPTIONS, Operation, fields_of

QUERY_BYTES_MAX = 64 * 1024
PARAMETERS_MAX = 1000
BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
HEADER_OF = {"timeout": "X-Recollect-Timeout", "idempotency_key": "Idempotency-Key"}
NOT_FINITE = frozenset({"nan", "inf", "infinity"})

Kind = Literal["plain", "text", "number_or_text", "json", "list"]
"""How the text of a query parameter is read: `plain` by the type itself (numbers, true, false)."""


class Binding:
    """Makes one kind of operation from requests to its route."""

    def __init__(self, operation: type[Operation[Any]], path_names: tuple[str, ...]) -> None:
        self.operation = operation
        self.path_names = path_names
        spec = operation.spec
        self.takes_body = spec.http[0] in BODY_METHODS
        names = [field.name for field in fields_of(operation)]
        self.has_version = "expected_version" in names
        self.has_wait = "wait_s" in names
        self._whole_body = spec.http_body
        rest = [name for name in names if name not in path_names]
        if not self.takes_body:
            self.query_names = rest
            self.body_names: list[str] = []
        elif self._whole_body is None:
            self.query_names, self.body_names = [], rest
        else:
            self.query_names = [name for name in rest if name != self._whole_body]
            self.body_names = [self._whole_body]
        types = {field.name: field.type for field in fields_of(operation)}
        self._kinds = {name: kind_of(types[name]) for name in self.query_names}
        self._decode = msgspec.json.Decoder(operation).decode

    def bind(self, values: tuple[str, ...], query: bytes, body: bytes) -> Operation[Any]:
        """The operation; raises InvalidArgument or MalformedRequest with what is wrong."""
        if self.takes_body and not values and not query and self._whole_body is None:
            return self._from_body(body)
        given: dict[str, Any] = {}
        if self.takes_body:
            given = self._fields_in(body)
        if query:
            given.update(self._fields_asked(query))
        given.update(zip(self.path_names, values, strict=True))
        try:
            # What came as text, in the query, is taken for the number that it says.
            made: Operation[Any] = msgspec.convert(
                given, self.operation, strict=not self.query_names
            )
        except msgspec.ValidationError as error:
            raise explain(error, self.operation, self.operation.spec.name) from None
        return made

    def _from_body(self, body: bytes) -> Operation[Any]:
        """The shortest way, of most operations: the body is the operation."""
        try:
            made: Operation[Any] = self._decode(body or b"{}")
        except msgspec.ValidationError as error:
            # Which names are known, only the whole body tells.
            self._check_names(_object_in(body))
            raise explain(error, self.operation, self.operation.spec.name) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _malformed(error) from None
        if made.timeout is not None or made.idempotency_key is not None:
            self._check_names(_object_in(body))
        return made

    def _fields_in(self, body: bytes) -> dict[str, Any]:
        given = _object_in(body)
        if self._whole_body is not None:
            return {self._whole_body: given}
        self._check_names(given)
        return given

    def _check_names(self, given: Collection[str]) -> None:
        for name in given:
            if name not in self.body_names:
                raise self._unknown(name, self.body_names, "body")

    def _unknown(self, name: str, known: list[str], where: str) -> InvalidArgument:
        called = self.operation.spec.name
        name = name[:NAME_CHARS_SHOWN]
        if name in CALL_OPTIONS:
            why = f"{name} is no part of the {where}: send it in the header {HEADER_OF[name]}."
        elif name in self.path_names:
            why = f"{name} is in the path already, and no part of the {where}."
        else:
            listed = f"it takes {', '.join(known)}" if known else "it takes none"
            why = f"{called} has no field {name!r} in its {where}: {listed}."
        return InvalidArgument(why, field=name, known=known)

    def _fields_asked(self, query: bytes) -> dict[str, Any]:
        if len(query) > QUERY_BYTES_MAX:
            raise InvalidArgument(f"The query has more than {QUERY_BYTES_MAX:,} bytes.")
        try:
            pairs = parse_qsl(
                query.decode(),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=PARAMETERS_MAX,
            )
        except ValueError as error:
            raise MalformedRequest(f"The query cannot be read: {error}.") from None
        texts: dict[str, list[str]] = {}
        for name, text in pairs:
            if name not in self._kinds:
                raise self._unknown(name, self.query_names, "query")
            texts.setdefault(name, []).append(text)
        return {name: _value(name, self._kinds[name], given) for name, given in texts.items()}


def kind_of(annotation: Any) -> Kind:
    """How a query parameter of this type is read."""
    kinds = _parts(inspect.type_info(annotation))
    if kinds & {inspect.AnyType, inspect.DictType, inspect.StructType, inspect.TypedDictType}:
        return "json"
    if kinds & {inspect.ListType, inspect.VarTupleType, inspect.TupleType, inspect.SetType}:
        return "list"
    if kinds & {inspect.StrType, inspect.LiteralType}:
        return "number_or_text" if kinds & {inspect.FloatType, inspect.IntType} else "text"
    return "plain"


def _parts(info: inspect.Type) -> set[type[inspect.Type]]:
    if isinstance(info, inspect.Metadata):
        return _parts(info.type)
    if isinstance(info, inspect.UnionType):
        return {part for one in info.types for part in _parts(one)}
    return {type(info)}


def _value(name: str, kind: Kind, texts: list[str]) -> Any:
    """What the text of a query parameter means; a list may be given as several."""
    if kind == "list":
        if len(texts) == 1 and texts[0].startswith("["):
            return _json(name, texts[0])
        return texts
    if len(texts) > 1:
        raise InvalidArgument(f"{name} is given {len(texts)} times; once is enough.", field=name)
    text = texts[0]
    if kind == "json":
        return _json(name, text)
    if kind == "plain" and text.lstrip("+-").lower() in NOT_FINITE:
        raise InvalidArgument(f"{name} must be a finite number, not {text!r}.", field=name)
    if kind == "number_or_text":
        try:
            return msgspec.json.decode(text, type=float)
        except (msgspec.MsgspecError, UnicodeError):
            return text
    return text


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidArgument(f"{name} must be JSON: {error}.", field=name) from None


def _object_in(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is; an empty one is none."""
    if not body:
        return {}
    try:
        given = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None
    if not isinstance(given, dict):
        raise MalformedRequest("The body must be one JSON object.")
    return given


def _malformed(error: Exception) -> MalformedRequest:
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return MalformedRequest(f"The body is not JSON: {why.rstrip('.')}.")
