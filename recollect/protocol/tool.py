"""How an operation is offered to a model that calls tools: declared beside the operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

FOR_PROGRAMS: Final[dict[str, Any]] = {"audience": "programs"}
"""`extra` of a field that no model should fill: it is left out of every tool."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool that carries out an operation; an operation may be offered as several."""

    when: str
    """When a model should reach for it, as the end of its description."""
    name: str | None = None
    """Its familiar name, where that is not the name of the operation."""
    title: str | None = None
    """Its name for people; made of its name if absent."""
    fields: tuple[str, ...] = ()
    """Only these fields, for a tool that offers less than the operation; all if empty."""
    example: Mapping[str, Any] = {}
    """Arguments that make sense together."""


def is_for_models(annotation: Any) -> bool:
    """Whether a model should fill a field of this type."""
    if get_origin(annotation) is not Annotated:
        return True
    inner, *metas = get_args(annotation)
    return is_for_models(inner) and not any(
        isinstance(meta, msgspec.Meta) and meta.extra == FOR_PROGRAMS for meta in metas
    )
