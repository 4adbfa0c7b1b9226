"""The numbers of fields: what was given stays, what is new comes behind, what goes is reserved.

On the wire a field is its number and its type. So a number belongs to a name and a type for good;
a field that changes its type gets another one.
"""

from __future__ import annotations

from recollect.gateway.grpc.proto_file import Field, Message, ProtoFile


def numbered(declared: ProtoFile, book: ProtoFile) -> ProtoFile:
    """The declared file with numbers, as far as they are in the book with those."""
    former = {message.name: message for message in book.messages}
    messages = [_numbered(m, former.get(m.name, Message(m.name, ()))) for m in declared.messages]
    return declared._replace(messages=tuple(messages))


def _numbered(message: Message, former: Message) -> Message:
    given = {_identity(field): field.number for field in former.fields}
    taken = {*given.values(), *former.reserved_numbers}
    latest = max(taken, default=0)
    fields = []
    for field in message.fields:
        number = given.get(_identity(field))
        if number is None:
            latest += 1
            number = latest
        fields.append(field._replace(number=number))
    used = {field.number for field in fields}
    present = {field.name for field in fields}
    gone = {*former.reserved_names, *(field.name for field in former.fields)} - present
    return message._replace(
        fields=tuple(fields),
        reserved_numbers=tuple(sorted(taken - used)),
        reserved_names=tuple(sorted(gone)),
    )


def _identity(field: Field) -> tuple[str, str, bool]:
    """What must be the same for old and new speakers to understand each other."""
    return field.name, field.kind, field.label == "repeated"
