"""Who asks: what a request to the gateway says of its caller, whichever way it came."""

from __future__ import annotations

from recollect.protocol.errors import Unauthenticated

SCHEME = "bearer"


class Doorman:
    """Reads the bearer key of a request. Whose it is, the orchestrator finds out."""

    def __init__(self, *, keys_needed: bool) -> None:
        """`keys_needed`: whether somebody without a key is turned away here already. Otherwise
        they are whoever the gateway itself is to the orchestrator: on loopback, this machine."""
        self.keys_needed = keys_needed

    def bearer(self, authorization: str | None) -> str | None:
        """The bearer key in an `Authorization` header; None if there is none and none is needed."""
        if authorization is None:
            if self.keys_needed:
                raise unauthenticated("This gateway answers nobody without a key")
            return None
        scheme, _, key = authorization.partition(" ")
        key = key.strip()
        if scheme.lower() != SCHEME or not key:
            raise unauthenticated("The Authorization header holds no bearer key")
        return key


def unauthenticated(why: str) -> Unauthenticated:
    """Why a caller is not let in, and what to do about it."""
    return Unauthenticated(
        f"{why}: send `Authorization: Bearer KEY`. `recollect keys new NAME --bearer`, run where "
        "the orchestrator is served, makes one."
    )
