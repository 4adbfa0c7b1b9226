"""What the types cannot say: limits that are configured, and what counts as JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from recollect.config.settings import LimitsSettings
from recollect.orchestrator.memories.rows import encode_json
from recollect.orchestrator.trust.secret_policy import SecretPolicy
from recollect.protocol.errors import InvalidArgument, LimitExceeded

NAMESPACE_RULE = (
    "a namespace begins with temp, session, user, app or project and goes on with parts after "
    "colons, such as user:alice or project:apollo:notes"
)
_NAMESPACE = re.compile(r"(temp|session|user|app|project)(:[^:\s\x00]+)+")
_PREFIX = re.compile(r"(temp|session|user|app|project)(:[^:\s\x00]+)*")

_PLAIN: frozenset[type] = frozenset({int, bool, type(None)})
_PLAIN_OR_TEXT: frozenset[type] = _PLAIN | {str}
NUL_IN_JSON = b"\\u0000"


class Validator:
    """Checks values against the configured limits; each refusal names its field and limit.

    All that is stored passes here, and leaves it without secrets where these are not wanted: what
    is returned is what may be stored.
    """

    def __init__(self, limits: LimitsSettings, secrets: SecretPolicy | None = None) -> None:
        self.limits = limits
        self._secrets = secrets
        # The namespace that was found good last: most calls of a batch or a client name the same.
        self._last_namespace = ""
        # The same of tags, with their text.
        self._last_tags: tuple[Sequence[str], str] = ((), "[]")

    def at_most(self, name: str, field: str, size: int, what: str) -> None:
        """Refuse a size beyond the limit of that name."""
        maximum: int = getattr(self.limits, name)
        if size > maximum:
            has = "asks for" if field == "limit" else "has"
            raise LimitExceeded(
                f"{field} {has} {size:,} {what}; the limit limits.{name} is {maximum:,}.",
                field=field,
                limit=f"limits.{name}",
                maximum=maximum,
                actual=size,
            )

    def text(self, field: str, text: str, limit: str) -> str:
        """A name within a limit and without NUL characters, which not every storage can hold."""
        self.asked(field, text, limit)
        return text if self._secrets is None else self._secrets.name(field, text)

    def prose(self, field: str, text: str, limit: str) -> str:
        """The same for what people read and nothing is found by."""
        self.asked(field, text, limit)
        return text if self._secrets is None else self._secrets.text(field, text)

    def asked(self, field: str, text: str, limit: str) -> str:
        """The same for what is only asked for and not stored."""
        self.at_most(limit, field, len(text), "characters")
        if "\x00" in text:
            raise InvalidArgument(
                f"{field} contains a NUL character; remove it and try again.", field=field
            )
        return text

    def content(self, content: str) -> str:
        if not content.strip():
            raise InvalidArgument("content is empty; give some text to remember.", field="content")
        return self.prose("content", content, "content_chars_max")

    def namespace(self, namespace: str) -> str:
        if namespace == self._last_namespace:
            return namespace
        self.text("namespace", namespace, "namespace_chars_max")
        if not _NAMESPACE.fullmatch(namespace):
            raise InvalidArgument(
                f"{namespace!r} is not a namespace: {NAMESPACE_RULE}.", field="namespace"
            )
        self._last_namespace = namespace
        return namespace

    def prefix(self, prefix: str) -> str:
        """A namespace, or what namespaces begin with, such as user."""
        self.text("prefix", prefix, "namespace_chars_max")
        if not _PREFIX.fullmatch(prefix):
            raise InvalidArgument(
                f"{prefix!r} is neither a namespace nor its first part: {NAMESPACE_RULE}.",
                field="prefix",
            )
        return prefix

    def tags(self, tags: Sequence[str] | None) -> str:
        """Tags as JSON text, each once."""
        if not tags:
            return "[]"
        last, text = self._last_tags
        if tags == last:
            return text
        self.at_most("tags_max", "tags", len(tags), "items")
        cleaned = [self.prose("tags", tag, "tag_chars_max") for tag in tags]
        for tag in tags:
            if not tag.strip():
                raise InvalidArgument("tags contains an empty tag; leave it out.", field="tags")
        text = encode_json(list(dict.fromkeys(cleaned))).decode()
        if cleaned == tags:
            self._last_tags = (cleaned, text)
        return text

    def json(self, field: str, value: Any, limit: str, name: str | None = None) -> str:
        """A JSON value as text, within its limits of depth and size; it may go by a name."""
        # The size first: encoding is fast, walking through every part is not.
        try:
            encoded = encode_json(value)
        except (TypeError, ValueError, RecursionError):
            encoded = b""
        self.at_most(limit, field, len(encoded), "bytes as JSON")
        # Most values have no NUL at all, which one look at the whole of it tells.
        nul_free = encoded and NUL_IN_JSON not in encoded
        self._walk(field, value, 1, _PLAIN_OR_TEXT if nul_free else _PLAIN)
        if self._secrets is not None:
            cleaned = self._secrets.named(field, name, value)
            if cleaned is not value:
                return self.json(field, cleaned, limit)
        return encoded.decode()

    def cleaned(self, field: str, value: Any, name: str | None = None) -> Any:
        """A JSON value that was found good, as it may be stored."""
        return value if self._secrets is None else self._secrets.named(field, name, value)

    def metadata(self, metadata: dict[str, Any] | None, field: str = "metadata") -> str:
        return "{}" if not metadata else self.json(field, metadata, "metadata_bytes_max")

    def page(self, limit: int) -> int:
        self.at_most("page_items_max", "limit", limit, "items")
        return limit

    def _walk(self, path: str, value: Any, depth: int, plain: frozenset[type]) -> None:
        """Refuse what is not JSON. Values of the `plain` types are good, whatever they are: no name
        is made for their place."""
        if isinstance(value, dict | list):
            if depth > self.limits.depth_max:
                field = path.split(".")[0].split("[")[0]
                raise LimitExceeded(
                    f"{field} is nested deeper than limits.depth_max allows "
                    f"({self.limits.depth_max}).",
                    field=field,
                    limit="limits.depth_max",
                    maximum=self.limits.depth_max,
                )
            if isinstance(value, dict):
                for key, item in value.items():
                    if not isinstance(key, str):
                        raise InvalidArgument(
                            f"{path} has the key {key!r}; keys of a JSON object are text.",
                            field=path,
                        )
                    if "\x00" in key:
                        raise InvalidArgument(f"A key in {path} has a NUL character.", field=path)
                    if type(item) not in plain:
                        self._walk(f"{path}.{key}", item, depth + 1, plain)
            else:
                for index, item in enumerate(value):
                    if type(item) not in plain:
                        self._walk(f"{path}[{index}]", item, depth + 1, plain)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise InvalidArgument(f"{path} is {value}, which JSON cannot hold.", field=path)
        elif isinstance(value, str):
            if "\x00" in value:
                raise InvalidArgument(f"{path} contains a NUL character.", field=path)
        elif not (value is None or isinstance(value, bool | int)):
            raise InvalidArgument(
                f"{path} is a {type(value).__name__}, which is not JSON; convert it to text, a "
                "number, a list or an object.",
                field=path,
            )
