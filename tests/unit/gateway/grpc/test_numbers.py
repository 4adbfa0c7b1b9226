"""The numbers of fields stay with their fields."""

from __future__ import annotations

from recollect.gateway.grpc.declared import declared_file
from recollect.gateway.grpc.numbers import numbered
from recollect.gateway.grpc.proto_file import Field, Message, ProtoFile, parse, render
from recollect.protocol.operation import Operation
from recollect.protocol.records import MemoryAdded, MemoryFetched


def made(*fields: Field) -> ProtoFile:
    return ProtoFile((), (Message("Note", fields),))


def numbers(file: ProtoFile) -> dict[str, int]:
    return {field.name: field.number for message in file.messages for field in message.fields}


TITLE, BODY, AUTHOR = (Field(name, "string") for name in ("title", "body", "author"))
FIRST = numbered(made(TITLE, BODY), ProtoFile((), ()))


def test_what_is_new_is_numbered_in_order() -> None:
    assert numbers(FIRST) == {"title": 1, "body": 2}


def test_a_field_that_is_added_in_between_takes_the_next_number() -> None:
    assert numbers(numbered(made(TITLE, AUTHOR, BODY), FIRST)) == {
        "title": 1,
        "author": 3,
        "body": 2,
    }


def test_a_field_that_goes_leaves_its_number_and_name_reserved() -> None:
    later = numbered(made(BODY, AUTHOR), FIRST)
    [message] = later.messages
    assert numbers(later) == {"body": 2, "author": 3}
    assert (message.reserved_numbers, message.reserved_names) == ((1,), ("title",))
    latest = numbered(made(AUTHOR, Field("colour", "string")), later)
    [message] = latest.messages
    assert numbers(latest) == {"author": 3, "colour": 4}
    assert (message.reserved_numbers, message.reserved_names) == ((1, 2), ("body", "title"))


def test_a_field_that_comes_back_has_another_number() -> None:
    back = numbered(made(TITLE, BODY), numbered(made(BODY), FIRST))
    [message] = back.messages
    assert numbers(back) == {"title": 3, "body": 2}
    assert (message.reserved_numbers, message.reserved_names) == ((1,), ())


def test_a_field_of_another_type_has_another_number() -> None:
    changed = numbered(made(Field("title", "int64"), Field("body", "string", "repeated")), FIRST)
    assert numbers(changed) == {"title": 3, "body": 4}
    assert changed.messages[0].reserved_numbers == (1, 2)


def test_a_field_that_becomes_optional_keeps_its_number() -> None:
    assert numbers(numbered(made(Field("title", "string", "optional"), BODY), FIRST)) == {
        "title": 1,
        "body": 2,
    }


def test_numbers_outlast_being_written_and_read() -> None:
    later = numbered(made(BODY, AUTHOR), FIRST)
    assert parse(render(later)) == later


class WriteNote(Operation[MemoryAdded], frozen=True):
    """A made-up operation."""

    title: str
    body: str = ""


class WriteNoteLater(Operation[MemoryFetched], frozen=True):
    """The same, when it was thought over."""

    author: str
    title: str


def test_a_declaration_that_changes_keeps_the_numbers_of_the_rest() -> None:
    before = numbered(declared_file({"write_note": WriteNote}), ProtoFile((), ()))
    WriteNoteLater.__name__ = "WriteNote"
    after = numbered(declared_file({"write_note": WriteNoteLater}), parse(render(before)))
    asked, answered = (
        next(m for m in after.messages if m.name == name)
        for name in ("WriteNoteRequest", "WriteNoteResponse")
    )
    assert {f.name: f.number for f in asked.fields} == {"author": 3, "title": 1}
    assert (asked.reserved_numbers, asked.reserved_names) == ((2,), ("body",))
    assert {f.name: f.number for f in answered.fields} == {"status": 1, "memory": 7}
