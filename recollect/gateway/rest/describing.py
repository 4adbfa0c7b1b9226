"""What an answer says of itself in headers: its version, and where the next page is."""

from __future__ import annotations

from typing import Any, get_type_hints, is_typeddict
from urllib.parse import quote, urlencode

from recollect.gateway.rest.problems import Header
from recollect.protocol.operation import Operation, fields_of, result_of

SAFE_IN_PATH = "/:@!$&'()*+,;=-._~%"


class Description:
    """The headers of the answers to one kind of operation, by the declared result."""

    def __init__(self, operation: type[Operation[Any]]) -> None:
        hints = get_type_hints(result_of(operation))
        self._version_path = _version_path(hints)
        names = {field.name for field in fields_of(operation)}
        self.has_version = bool(self._version_path)
        self.has_pages = operation.spec.http[0] == "GET" and "cursor" in names and "cursor" in hints

    def headers(self, answer: dict[str, Any], raw_path: bytes, query: bytes) -> list[Header]:
        """What to say of this answer, to the request of this path and query."""
        told: list[Header] = []
        version: Any = answer if self.has_version else None
        for name in self._version_path:
            version = version.get(name) if isinstance(version, dict) else None
        if isinstance(version, int):
            told.append((b"etag", b'"%d"' % version))
        if self.has_pages and (cursor := answer.get("cursor")) is not None:
            told.append((b"link", _next_page(raw_path, query, str(cursor))))
        return told


def _version_path(hints: dict[str, Any]) -> tuple[str, ...]:
    """Where the version of what was read or changed stands in an answer; empty if nowhere."""
    if hints.get("version") is int:
        return ("version",)
    for name, hint in hints.items():
        # Only what the answer is about as a whole: no list of others.
        if is_typeddict(hint) and get_type_hints(hint).get("version") is int:
            return (name, "version")
    return ()


def _next_page(raw_path: bytes, query: bytes, cursor: str) -> bytes:
    kept = [part for part in query.split(b"&") if part and not part.startswith(b"cursor=")]
    kept.append(urlencode({"cursor": cursor}, quote_via=quote).encode())
    # What stood in the request line is quoted anew, since a header ends at characters of its own.
    target = quote(raw_path, safe=SAFE_IN_PATH) + "?" + quote(b"&".join(kept), safe=SAFE_IN_PATH)
    return f'<{target}>; rel="next"'.encode()
