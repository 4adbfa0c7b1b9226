"""The tools: which there are, how they are described, and what their arguments make."""

from __future__ import annotations

import difflib
import inspect
from functools import cached_property
from typing import Any

import mcp_types as types
import msgspec

from recollect.gateway.mcp import schemas
from recollect.gateway.mcp.answers import LEFT_OUT, READING
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.explaining import NAME_CHARS_SHOWN, explain
from recollect.protocol.operation import Operation, result_of
from recollect.protocol.operations import REGISTRY
from recollect.protocol.tool import Tool

ADDING = "POST"
REPEATABLE = frozenset({"PUT", "DELETE"})
SIZES = ("limit", "k")


class OfferedTool:
    """One declared tool of one declared operation."""

    def __init__(
        self, operation: type[Operation[Any]], declared: Tool, namespace: str | None = None
    ) -> None:
        self.operation = operation
        self.name = declared.name or operation.spec.name
        self._declared = declared
        self._namespace = namespace
        self._known = {field.name: field for field in schemas.fields_for(operation, declared)}

    @cached_property
    def described(self) -> types.Tool:
        """The tool as a client is told of it."""
        spec = self.operation.spec
        method = spec.http[0]
        reads = spec.access in READING
        title = self._declared.title or self.name.replace("_", " ").capitalize()
        return types.Tool(
            name=self.name,
            title=title,
            description=f"{_flowing(self.operation.__doc__ or '')}\n\n{self._declared.when}",
            input_schema=schemas.input_schema(self.operation, self._declared, self._namespace),
            # What is read may be cut to fit, and then has no shape to rely on.
            output_schema=None
            if reads
            else schemas.output_schema(result_of(self.operation), LEFT_OUT),
            annotations=types.ToolAnnotations(
                title=title,
                read_only_hint=reads,
                # Whatever is not only added to replaces something.
                destructive_hint=not reads and method != ADDING,
                idempotent_hint=reads or method in REPEATABLE,
                open_world_hint=False,
            ),
        )

    def made_of(self, arguments: dict[str, Any]) -> Operation[Any]:
        """The operation that arguments ask for; raises InvalidArgument.

        A number that came as a text is taken as one: some models write all of them so."""
        try:
            made: Operation[Any] = msgspec.convert(
                self._given(arguments), self.operation, strict=False
            )
        except msgspec.ValidationError as error:
            raise explain(error, self.operation, self.name) from None
        return made

    def size_field(self, list_name: str) -> str | None:
        """The field that says how many items of a list to answer with, if the answer to fewer is
        not just the beginning of the answer to more: it leads on by a cursor, or has the last."""
        if list_name in self._known:
            return list_name
        if "cursor" not in self._known:
            return None
        return next((name for name in SIZES if name in self._known), None)

    @property
    def takes_tokens(self) -> bool:
        """Whether it can be told how many tokens to answer in."""
        return "max_tokens" in self._known

    def _given(self, arguments: dict[str, Any]) -> dict[str, Any]:
        for name in arguments:
            if name not in self._known:
                # Looking for what is alike takes long for what is long.
                name = name[:NAME_CHARS_SHOWN]
                near = difflib.get_close_matches(name, self._known, 1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise InvalidArgument(
                    f"{self.name} takes no {name!r}, only {', '.join(self._known)}.{hint}",
                    field=name,
                )
        # Models say null for what they do not mean to say.
        given = {name: value for name, value in arguments.items() if value is not None}
        if self._namespace is not None and "namespace" in self._known:
            given.setdefault("namespace", self._namespace)
        return given


def offered(namespace: str | None = None) -> dict[str, OfferedTool]:
    """All tools by name. `namespace`: the one that is meant where none is given."""
    tools = [
        OfferedTool(operation, declared, namespace)
        for operation in REGISTRY.values()
        for declared in operation.spec.mcp
    ]
    by_name = {tool.name: tool for tool in tools}
    assert len(by_name) == len(tools), "two tools have one name"
    return by_name


def _flowing(text: str) -> str:
    """A docstring with its lines joined to paragraphs."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
