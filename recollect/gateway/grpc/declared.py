"""The declared operations and records as messages and calls, still without numbers.

Texts with given choices stay strings, with the choices in the comment: a choice that is added later
reaches an old client as what it is, where a number of an enum would reach it as nothing. What may
be several types, or both absent and null, is a `google.protobuf.Value`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

from recollect.gateway.grpc.described import docs_of_fields
from recollect.gateway.grpc.proto_file import Field, Message, ProtoFile, Rpc
from recollect.protocol.operation import Operation, fields_of, result_of
from recollect.protocol.operations import ReadChanges
from recollect.protocol.records import FeedChange
from recollect.protocol.reference import description

VALUE = "google.protobuf.Value"
STRUCT = "google.protobuf.Struct"
SCALARS = {str: "string", int: "int64", float: "double", bool: "bool"}

SUBSCRIBE = "Subscribe"
FROM_SEQ = "from_seq"
# What of reading the feed the subscription sees to by itself.
OWN_OF_SUBSCRIBING = frozenset({"after_seq", "limit", "wait_s"})


class Kind(NamedTuple):
    """What a declared type becomes."""

    text: str
    repeated: bool = False
    nullable: bool = False
    choices: tuple[str, ...] = ()


def declared_file(operations: Mapping[str, type[Operation[Any]]]) -> ProtoFile:
    """The calls of these operations, and of following the feed, with all of their messages."""
    rpcs: list[Rpc] = []
    messages: list[Message] = []
    records = _Records()
    for cls in operations.values():
        name = cls.__name__
        about = inspect.cleandoc(cls.__doc__ or "")
        rpcs.append(Rpc(name, f"{name}Request", f"{name}Response", False, about))
        messages.append(Message(f"{name}Request", tuple(_asked(cls, records))))
        messages.append(Message(f"{name}Response", tuple(_record_fields(result_of(cls), records))))
    rpcs.append(_subscribe())
    messages += _subscribe_messages(records)
    messages += records.messages()
    names = [message.name for message in messages]
    assert len(set(names)) == len(names), "two messages have one name"
    return ProtoFile(tuple(rpcs), tuple(messages))


class _Records:
    """The records that were met on the way: messages that several others hold."""

    def __init__(self) -> None:
        self._met: dict[str, Any] = {}

    def meet(self, record: Any) -> str:
        name: str = record.__name__
        assert self._met.setdefault(name, record) is record, f"two records are named {name}"
        return name

    def messages(self) -> list[Message]:
        """All of them by name; what is met while they are written is written as well."""
        done: dict[str, Message] = {}
        while waiting := self._met.keys() - done.keys():
            for name in waiting:
                record = self._met[name]
                about = inspect.cleandoc(record.__doc__ or "") if _has_own_doc(record) else ""
                fields = _asked if issubclass(record, msgspec.Struct) else _record_fields
                done[name] = Message(name, tuple(fields(record, self)), comment=about)
        return [done[name] for name in sorted(done)]


def _has_own_doc(record: Any) -> bool:
    """A TypedDict or struct without a docstring has that of `dict`, or none."""
    return bool(record.__doc__) and record.__doc__ != dict.__doc__


def _asked(cls: Any, records: _Records) -> Iterator[Field]:
    """The fields of what is asked. Each scalar is optional: what is not given has its default, and
    of what has none it is noticed that it was not given."""
    infos = fields_of(cls) if issubclass(cls, Operation) else msgspec.structs.fields(cls)
    for info in infos:
        kind = kind_of(info.type, records)
        unset = not info.required and info.default is msgspec.UNSET
        if kind.nullable and (unset or info.default not in (None, msgspec.UNSET)):
            kind = Kind(VALUE, choices=kind.choices)
        about = [description(info.type), _choices(kind)]
        if unset and kind.text == VALUE:
            about.append("Null is a value of its own; absent leaves it as it is.")
        elif info.required and not kind.repeated:
            about.append("Required.")
        elif not info.required:
            about.append(_default(info))
        yield _field(info.name, kind, about, optional=True)


def _record_fields(record: Any, records: _Records) -> Iterator[Field]:
    """The fields of what is answered: a scalar is optional where it may be missing or null."""
    docs = docs_of_fields(record)
    for name, annotation in get_type_hints(record, include_extras=True).items():
        kind = kind_of(annotation, records)
        missing = may_be_missing(record, name, annotation)
        yield _field(name, kind, [docs.get(name, ""), _choices(kind)], kind.nullable or missing)


def may_be_missing(record: Any, name: str, annotation: Any) -> bool:
    """Whether a record may do without a key. Of annotations that are texts, as ours are, Python
    itself notices no NotRequired."""
    return get_origin(annotation) is NotRequired or name in record.__optional_keys__


def _field(name: str, kind: Kind, about: Iterable[str], optional: bool) -> Field:
    label = "repeated" if kind.repeated else ""
    if optional and kind.text in SCALARS.values() and not label:
        label = "optional"
    return Field(name, kind.text, label, comment=" ".join(filter(None, about)))


def _choices(kind: Kind) -> str:
    return f"One of: {', '.join(kind.choices)}." if kind.choices else ""


def _default(info: msgspec.structs.FieldInfo) -> str:
    default = info.default
    if info.default_factory is not msgspec.NODEFAULT:
        default = info.default_factory()
    if default is None or default is msgspec.UNSET:
        return ""
    return f"Default: {msgspec.json.encode(default).decode()}."


def kind_of(annotation: Any, records: _Records) -> Kind:
    """What a declared type becomes in a message."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Annotated, NotRequired, Required):
        return kind_of(arguments[0], records)
    if origin in (Union, UnionType):
        # Numbers that may come as bytes are packed in a message anyway.
        kinds = [kind_of(a, records) for a in arguments if a not in _NOTHING and a is not bytes]
        return _union(kinds, arguments)
    if origin is Literal:
        return Kind("string", choices=tuple(map(str, arguments)))
    if annotation in SCALARS:
        return Kind(SCALARS[annotation])
    if annotation is Any:
        return Kind(VALUE)
    if origin is list:
        inner = kind_of(arguments[0], records)
        assert not inner.repeated, "a list of lists has no message"
        return Kind(VALUE if inner.nullable else inner.text, repeated=True, choices=inner.choices)
    if origin is dict:
        inner = kind_of(arguments[1], records)
        if inner.text == VALUE or inner.repeated or inner.nullable:
            return Kind(STRUCT)
        return Kind(f"map<string, {inner.text}>", repeated=False)
    assert is_typeddict(annotation) or issubclass(annotation, msgspec.Struct), annotation
    return Kind(records.meet(annotation))


_NOTHING = (NoneType, msgspec.UnsetType)


def _union(kinds: list[Kind], arguments: tuple[Any, ...]) -> Kind:
    nullable = NoneType in arguments
    if len({(kind.text, kind.repeated) for kind in kinds}) > 1:
        return Kind(VALUE, nullable=nullable)
    return kinds[0]._replace(nullable=nullable)


def _subscribe() -> Rpc:
    about = (
        "The changes as they come, in order, each once, of the namespaces that the caller may "
        "read, until the call is ended. A call that broke off is gone on with from `next_seq`."
    )
    return Rpc(SUBSCRIBE, f"{SUBSCRIBE}Request", f"{SUBSCRIBE}Response", True, about)


def _subscribe_messages(records: _Records) -> list[Message]:
    last_known = "The last change that is known; from now on if absent."
    from_seq = Field(FROM_SEQ, "int64", "optional", comment=last_known)
    wanted = [f for f in _asked(ReadChanges, records) if f.name not in OWN_OF_SUBSCRIBING]
    changes = Field("changes", records.meet(FeedChange), "repeated")
    next_seq = Field(
        "next_seq",
        "int64",
        comment="Where to go on from: behind the last change that was looked at, fitting or not.",
    )
    return [
        Message(f"{SUBSCRIBE}Request", (from_seq, *wanted)),
        Message(
            f"{SUBSCRIBE}Response",
            (changes, next_seq),
            comment="What has come. The first is sent at once, and tells where it begins.",
        ),
    ]
