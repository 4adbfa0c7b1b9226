"""By what somebody is known: a CURVE public key as it is, or the hash of a bearer key.

Both are texts of one kind, so that whoever asks whether a key still counts need not know which it
is. A public key has 40 characters, and so is never taken for the other.
"""

from __future__ import annotations

from recollect.protocol.bearer_keys import KEY_ID_CHARS, hash_of

BEARER = "bearer:"


def of_bearer(bearer: str) -> str:
    """By what the holder of a bearer key is known."""
    return of_hash(hash_of(bearer))


def of_hash(key_hash: str) -> str:
    """The same, where only the hash of the key is known."""
    return f"{BEARER}{key_hash}"


def is_bearer(credential: str) -> bool:
    """Whether it is that of a bearer key."""
    return credential.startswith(BEARER)


def shown(credential: str) -> str:
    """As the audit names it: a public key is no secret; of a bearer key there is its id."""
    return credential[: len(BEARER) + KEY_ID_CHARS] if is_bearer(credential) else credential
