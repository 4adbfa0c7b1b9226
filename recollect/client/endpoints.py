"""Which orchestrators a client was given: one, several, or a name that stands for several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recollect.client import sockets
from recollect.client.settings import endpoint_or_default
from recollect.protocol.errors import InvalidArgument

if TYPE_CHECKING:
    from recollect.client.keys import Keys

ENDPOINTS_MAX = 64
SEPARATOR = ","
_NUMERIC = frozenset("0123456789.")


def endpoints_from(
    endpoint: str | None, endpoints: Sequence[str] | None, keys: Keys | None = None
) -> tuple[str, ...]:
    """The endpoints given in either way, else those of the environment, else that of the key file,
    else the one on this machine; each once."""
    if endpoints is None:
        return checked(split(endpoint_or_default(endpoint, keys)))
    if endpoint is not None:
        raise InvalidArgument("Give endpoint or endpoints, not both.", field="endpoints")
    if isinstance(endpoints, str):
        return checked(split(endpoints))
    return checked(endpoints)


def split(text: str) -> Iterable[str]:
    """The endpoints in a text that has commas between them."""
    if not isinstance(text, str) or SEPARATOR not in text:
        return (text,)
    return [part.strip() for part in text.split(SEPARATOR) if part.strip()]


def checked(endpoints: Iterable[str]) -> tuple[str, ...]:
    """The same, each once; refused if one is none, if there are none, or too many."""
    found = tuple(dict.fromkeys(endpoints))
    for endpoint in found:
        sockets.check_endpoint(endpoint)
    if not 1 <= len(found) <= ENDPOINTS_MAX:
        raise InvalidArgument(
            f"endpoints must be 1 to {ENDPOINTS_MAX} addresses of orchestrators, not {len(found)}.",
            field="endpoints",
        )
    return found


class Named(NamedTuple):
    """An endpoint whose host is a name, which may stand for several addresses."""

    host: str
    port: int

    def at(self, address: str) -> str:
        """The endpoint at one of its addresses."""
        return (
            f"tcp://[{address}]:{self.port}" if ":" in address else f"tcp://{address}:{self.port}"
        )


def named(endpoint: str) -> Named | None:
    """The name in an endpoint; None for an address, for this machine, and for a path."""
    scheme, _, rest = endpoint.partition("://")
    host, _, port = rest.rpartition(":")
    if scheme != "tcp" or not port.isdecimal() or host in ("", "localhost", "*"):
        return None
    # A semicolon comes behind an address of our own to connect from, which ZeroMQ understands.
    if _NUMERIC.issuperset(host) or host.startswith("[") or ";" in host:
        return None
    return Named(host, int(port))
