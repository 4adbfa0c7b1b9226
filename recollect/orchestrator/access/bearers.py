"""In whose name a request with a bearer key is done: of whose it is, never of who carries it.

The key is looked up at each request, as the key of a connection is, and a request whose key is not
known is answered and left a line in the audit in the same way.
"""

from __future__ import annotations

from recollect.orchestrator.access import credentials
from recollect.orchestrator.access.attempts import UNREADABLE, Attempts
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.access.keyring import Keyring, unknown_key
from recollect.protocol.envelope import BEARER_CHARS_MAX, Request
from recollect.protocol.errors import LimitExceeded
from recollect.protocol.operations import REGISTRY


class Bearers:
    """Knows the holders of bearer keys. Lives on the event loop."""

    def __init__(self, keyring: Keyring, attempts: Attempts) -> None:
        self._keyring = keyring
        self._attempts = attempts

    def identity(self, request: Request) -> Identity:
        """Whose bearer key a request carries; one that is nobody's is refused, whatever it asks.

        Found by its hash, so that how long the search takes says nothing of a key.
        """
        bearer = request.bearer or ""
        if len(bearer) > BEARER_CHARS_MAX:
            raise LimitExceeded(
                f"bearer has more than {BEARER_CHARS_MAX} characters, which no key has.",
                field="bearer",
                limit="bearer",
                maximum=BEARER_CHARS_MAX,
            )
        credential = credentials.of_bearer(bearer)
        identity = self._keyring.identity(credential)
        if identity is None:
            self._turn_away(request, credential)
            raise unknown_key(credential)
        return identity

    def _turn_away(self, request: Request, credential: str) -> None:
        name = self._keyring.revoked_name(credential)
        reason = "unknown key" if name is None else "revoked key"
        operation = request.op if request.op in REGISTRY else UNREADABLE
        self._attempts.denied(credentials.shown(credential), "", reason, name, operation)
