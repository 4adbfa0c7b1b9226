"""A .proto file as values: written out, and read back in the one form in which it is written."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).with_name("recollect.proto")
PACKAGE = "recollect.v1"
SERVICE = "Recollect"
STRUCT_FILE = "google/protobuf/struct.proto"
WIDTH = 100

HEAD = f"""\
// Recollect over gRPC: one call an operation.
//
// Written by `make docs` from the declared operations; a test fails if it is stale. The numbers
// that were once given stay: this file is the book in which they are kept.

syntax = "proto3";

package {PACKAGE};

import "{STRUCT_FILE}";
"""


class Field(NamedTuple):
    """One field of a message; its number is 0 until it is given one."""

    name: str
    kind: str
    """As it is written: `string`, `MemoryRecord`, `google.protobuf.Value`, `map<string, int64>`."""
    label: str = ""
    """`optional`, `repeated` or nothing."""
    number: int = 0
    comment: str = ""


class Message(NamedTuple):
    name: str
    fields: tuple[Field, ...]
    reserved_numbers: tuple[int, ...] = ()
    reserved_names: tuple[str, ...] = ()
    comment: str = ""


class Rpc(NamedTuple):
    name: str
    request: str
    response: str
    streams: bool = False
    """Whether the answer is a stream of responses."""
    comment: str = ""


class ProtoFile(NamedTuple):
    rpcs: tuple[Rpc, ...]
    messages: tuple[Message, ...]


def render(file: ProtoFile) -> str:
    """The file as text."""
    calls = "\n\n".join(_rpc(rpc) for rpc in file.rpcs)
    parts = [HEAD, f"service {SERVICE} {{\n{calls}\n}}\n", *map(_message, file.messages)]
    return "\n".join(parts)


def _rpc(rpc: Rpc) -> str:
    stream = "stream " if rpc.streams else ""
    line = f"  rpc {rpc.name}({rpc.request}) returns ({stream}{rpc.response});"
    return _comment(rpc.comment, "  ") + line


def _message(message: Message) -> str:
    lines = []
    if message.reserved_numbers:
        lines.append(f"  reserved {', '.join(map(str, message.reserved_numbers))};\n")
    if message.reserved_names:
        names = ", ".join(f'"{name}"' for name in message.reserved_names)
        lines.append(f"  reserved {names};\n")
    for field in message.fields:
        label = f"{field.label} " if field.label else ""
        lines.append(_comment(field.comment, "  "))
        lines.append(f"  {label}{field.kind} {field.name} = {field.number};\n")
    head = _comment(message.comment, "") + f"message {message.name} {{"
    return f"{head}\n{''.join(lines)}}}\n" if lines else f"{head}}}\n"


def _comment(text: str, indent: str) -> str:
    """Prose as lines of comment; paragraphs stay apart."""
    lines: list[str] = []
    for paragraph in filter(None, text.split("\n\n")):
        if lines:
            lines.append(f"{indent}//\n")
        for line in textwrap.wrap(" ".join(paragraph.split()), WIDTH - len(indent) - 3):
            lines.append(f"{indent}// {line}\n")
    return "".join(lines)


_MESSAGE = re.compile(r"message (\w+) \{(\}?)")
_FIELD = re.compile(r"  (?:(optional|repeated) )?([\w.]+|map<string, [\w.]+>) (\w+) = (\d+);")
_RESERVED = re.compile(r"  reserved (.+);")
_RPC = re.compile(r"  rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\);")


def parse(text: str) -> ProtoFile:
    """What `render` wrote, without its comments."""
    rpcs: list[Rpc] = []
    messages: list[Message] = []
    fields: list[Field] = []
    numbers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    name = ""
    for line in text.splitlines():
        if found := _MESSAGE.fullmatch(line):
            name, fields, numbers, names = found[1], [], (), ()
            if found[2]:
                messages.append(Message(name, ()))
        elif line == "}" and name:
            messages.append(Message(name, tuple(fields), numbers, names))
            name = ""
        elif found := _RESERVED.fullmatch(line):
            if '"' in found[1]:
                names = tuple(re.findall(r'"(\w+)"', found[1]))
            else:
                numbers = tuple(map(int, found[1].split(", ")))
        elif found := _FIELD.fullmatch(line):
            fields.append(Field(found[3], found[2], found[1] or "", int(found[4])))
        elif found := _RPC.fullmatch(line):
            rpcs.append(Rpc(found[1], found[2], found[4], bool(found[3])))
    return ProtoFile(tuple(rpcs), tuple(messages))


def kept() -> ProtoFile:
    """The file that is kept beside this module; empty as long as there is none."""
    return parse(PATH.read_text()) if PATH.exists() else ProtoFile((), ())
