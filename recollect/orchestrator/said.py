"""What callers say in several fields, checked, before it becomes one text of a memory."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.validation import Validator
from recollect.protocol.errors import InvalidArgument


def needed(check: Validator, field: str, text: str) -> str:
    """A text of some length that must say something."""
    if not text.strip():
        raise InvalidArgument(f"{field} is empty; say something.", field=field)
    return check.prose(field, text, "content_chars_max")


def optional(check: Validator, field: str, text: str) -> str:
    """A text of some length; an empty one says nothing."""
    return check.prose(field, text, "content_chars_max")


def several(check: Validator, field: str, items: Sequence[str], items_max: str) -> list[str]:
    """Some short texts, in their order."""
    check.at_most(items_max, field, len(items), "items")
    for item in items:
        if not item.strip():
            raise InvalidArgument(f"{field} has an empty item; leave it out.", field=field)
    return [check.prose(field, item, "item_chars_max") for item in items]


def together(check: Validator, fields: str, lines: Sequence[str]) -> str:
    """The text that some lines make; `fields` is what they are made of."""
    text = "\n".join(lines)
    check.at_most("content_chars_max", f"{fields} together", len(text), "characters")
    return text


def named(check: Validator, field: str, name: str) -> str:
    """A name that something goes by."""
    if not name.strip():
        raise InvalidArgument(f"{field} is empty; give it a name.", field=field)
    return check.text(field, name, "key_chars_max")


def key_of(check: Validator, prefix: str, field: str, name: str) -> str:
    """The key of what goes by a name: the name after what it is the name of."""
    return key_asked(check, prefix, field, named(check, field, name))


def key_asked(check: Validator, prefix: str, field: str, name: str) -> str:
    """The same for what is only asked for by its name, which may be anything."""
    key = f"{prefix}/{check.asked(field, name, 'key_chars_max')}"
    check.at_most("key_chars_max", field, len(key), f"characters after {prefix}/")
    return key
