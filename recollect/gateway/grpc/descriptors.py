"""The messages of the kept .proto as classes, made at start without generated code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from google.protobuf import struct_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as AnyMessage
from google.protobuf.message_factory import GetMessageClass

from recollect.gateway.grpc.proto_file import (
    PACKAGE,
    PATH,
    SERVICE,
    STRUCT_FILE,
    Field,
    Message,
    ProtoFile,
)

MessageClass: TypeAlias = type[AnyMessage]

TYPES = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "bool": FieldDescriptorProto.TYPE_BOOL,
}
MAP = "map<string, "


def descriptor_of(file: ProtoFile) -> FileDescriptorProto:
    """The file as a compiler of protocol buffers would describe it."""
    described = FileDescriptorProto(
        name=PATH.name, package=PACKAGE, dependency=[STRUCT_FILE], syntax="proto3"
    )
    described.message_type.extend(map(_message, file.messages))
    service = described.service.add(name=SERVICE)
    for rpc in file.rpcs:
        method = MethodDescriptorProto(
            name=rpc.name,
            input_type=f".{PACKAGE}.{rpc.request}",
            output_type=f".{PACKAGE}.{rpc.response}",
        )
        if rpc.streams:
            method.server_streaming = True
        service.method.append(method)
    return described


def _message(message: Message) -> DescriptorProto:
    described = DescriptorProto(name=message.name)
    for number in message.reserved_numbers:
        described.reserved_range.add(start=number, end=number + 1)
    described.reserved_name.extend(message.reserved_names)
    for field in message.fields:
        entry = _field(field)
        if field.kind.startswith(MAP):
            name = _camel(field.name, upper=True) + "Entry"
            entry.label = FieldDescriptorProto.LABEL_REPEATED
            entry.type = FieldDescriptorProto.TYPE_MESSAGE
            entry.type_name = f".{PACKAGE}.{message.name}.{name}"
            described.nested_type.append(_map_entry(name, field.kind[len(MAP) : -1]))
        if field.label == "optional":
            # What `optional` means in proto3: a choice of one.
            entry.proto3_optional = True
            entry.oneof_index = len(described.oneof_decl)
            described.oneof_decl.add(name=f"_{field.name}")
        described.field.append(entry)
    return described


def _field(field: Field) -> FieldDescriptorProto:
    repeated = field.label == "repeated"
    described = FieldDescriptorProto(
        name=field.name,
        json_name=_camel(field.name),
        number=field.number,
        label=FieldDescriptorProto.LABEL_REPEATED
        if repeated
        else FieldDescriptorProto.LABEL_OPTIONAL,
    )
    if field.kind in TYPES:
        described.type = TYPES[field.kind]
    elif not field.kind.startswith(MAP):
        described.type = FieldDescriptorProto.TYPE_MESSAGE
        package = "" if "." in field.kind else f"{PACKAGE}."
        described.type_name = f".{package}{field.kind}"
    return described


def _map_entry(name: str, kind: str) -> DescriptorProto:
    described = DescriptorProto(name=name)
    described.field.append(_field(Field("key", "string", number=1)))
    described.field.append(_field(Field("value", kind, number=2)))
    described.options.map_entry = True
    return described


def _camel(name: str, *, upper: bool = False) -> str:
    first, *rest = name.split("_")
    return (first.capitalize() if upper else first) + "".join(part.capitalize() for part in rest)


class Messages:
    """The classes of all messages, in a pool of their own."""

    def __init__(self, file: ProtoFile, beside: Iterable[bytes] = ()) -> None:
        """`beside`: other files that a caller may ask about, as their compilers describe them."""
        self.file = file
        self.pool = DescriptorPool()
        self.pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
        for other in beside:
            self.pool.AddSerializedFile(other)
        self.pool.AddSerializedFile(descriptor_of(file).SerializeToString())

    def __getitem__(self, name: str) -> MessageClass:
        """The class of the message of this name; one with a dot is of another package."""
        full = name if "." in name else f"{PACKAGE}.{name}"
        return GetMessageClass(self.pool.FindMessageTypeByName(full))
