"""The guard before the gateway: pages of others do not get in, by whatever name they lead here.

The name in `Host` must be one of ours, and an `Origin` the same place or one that is allowed. What
a browser fetches for a page of another site says so itself, and is refused without an Origin too.
Who shows two keys is turned away: whoever looked at the request before us may have taken the other.
"""

from __future__ import annotations

from recollect.config.gateway import GatewaySettings
from recollect.gateway.callers import unauthenticated
from recollect.gateway.rest.problems import Refusal
from recollect.protocol.errors import Forbidden
from recollect.web.hosts import Hosts

OPEN_TO_LINKS = frozenset({"/", "/docs", "/openapi.json", "/health/live", "/health/ready"})
"""A page of somebody else may lead to these: they show nothing of what is remembered."""
OURS = frozenset({b"same-origin", b"none"})

Headers = list[tuple[bytes, bytes]]


class Guard:
    """Tells whom to turn away before anything else is looked at."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._hosts = Hosts(settings.host, settings.hosts_allowed)
        self._origins = frozenset(origin.lower() for origin in settings.origins_allowed)

    def check(self, path: str, headers: Headers) -> None:
        """Raises Refusal."""
        host = origin = site = key = None
        for name, value in headers:
            if name == b"host":
                if host is not None:
                    raise _foreign_host()
                host = value
            elif name == b"origin":
                if origin is not None:
                    raise _foreign_page()
                origin = value
            elif name == b"sec-fetch-site":
                site = value
            elif name == b"authorization":
                if key is not None:
                    raise Refusal(unauthenticated("There is more than one Authorization"), 401)
                key = value
        if host is None or not self._hosts.is_ours(host.decode("latin-1")):
            raise _foreign_host()
        if origin is not None:
            text = origin.decode("latin-1")
            if text.lower() not in self._origins and not self._is_same_place(text, host):
                raise _foreign_page()
        elif site is not None and site not in OURS and path not in OPEN_TO_LINKS:
            raise _foreign_page()

    def _is_same_place(self, origin: str, host: bytes) -> bool:
        return self._hosts.is_same_place(origin, host.decode("latin-1"))


def _foreign_host() -> Refusal:
    why = "This is not a name of this server: gateway.hosts_allowed lists further ones."
    return Refusal(Forbidden(why), 421)


def _foreign_page() -> Refusal:
    why = "Pages of others may not ask here: gateway.origins_allowed lists those that may."
    return Refusal(Forbidden(why), 403)
