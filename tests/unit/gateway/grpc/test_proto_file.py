"""The kept .proto: written from the declarations, and what is served."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from recollect.gateway.grpc.declared import SUBSCRIBE
from recollect.gateway.grpc.descriptors import Messages, descriptor_of
from recollect.gateway.grpc.generate import generated as generated_text
from recollect.gateway.grpc.proto_file import (
    PACKAGE,
    PATH,
    Field,
    Message,
    ProtoFile,
    Rpc,
    kept,
    parse,
    render,
)
from recollect.protocol.operation import fields_of, result_of
from recollect.protocol.operations import REGISTRY
from tests.harness.grpc_calling import generated


def test_the_kept_file_is_what_the_declarations_say() -> None:
    assert PATH.read_text() == generated_text(), "run `make docs`"


def test_every_operation_is_a_call_with_messages_of_its_own() -> None:
    file = kept()
    assert {rpc.name for rpc in file.rpcs} == {
        SUBSCRIBE,
        *(cls.__name__ for cls in REGISTRY.values()),
    }
    fields = {message.name: {f.name for f in message.fields} for message in file.messages}
    for cls in REGISTRY.values():
        assert fields[f"{cls.__name__}Request"] == {info.name for info in fields_of(cls)}
        assert fields[f"{cls.__name__}Response"] == result_of(cls).__annotations__.keys() | {
            name for base in result_of(cls).__mro__ for name in getattr(base, "__annotations__", ())
        }


def test_what_is_served_is_what_protoc_reads_in_the_kept_file() -> None:
    [compiled] = FileDescriptorSet.FromString(generated().descriptor_set).file
    served = FileDescriptorProto()
    messages = Messages(kept())
    messages.pool.FindFileByName(PATH.name).CopyToProto(served)
    assert descriptor_of(kept()) == compiled
    assert served == compiled
    assert served.package == PACKAGE


def test_a_file_is_read_as_it_was_written() -> None:
    file = ProtoFile(
        (Rpc("Ask", "AskRequest", "AskResponse"), Rpc("Hear", "AskRequest", "AskResponse", True)),
        (
            Message("AskRequest", ()),
            Message(
                "AskResponse",
                (
                    Field("a", "string", "optional", 4),
                    Field("b", "map<string, int64>", "", 2),
                    Field("c", "google.protobuf.Value", "repeated", 9),
                ),
                (1, 3),
                ("old", "older"),
            ),
        ),
    )
    assert parse(render(file)) == file
