"""Bearer keys: a secret text that says by itself whose it is, for whoever does not speak CURVE.

A key is made where its holder is, and the orchestrator is told its hash alone. It has 256 random
bits, so that nobody finds it by trying: one round of SHA-256 hides it as well as a slow hash would,
and can be afforded at every request. `docs/access.md` says how keys are made and used.
"""

from __future__ import annotations

import hashlib
import secrets

PREFIX = "rk_"
"""By this a key is known for what it is where it should not be: in a log, in a repository."""
SECRET_BYTES = 32
KEY_ID_CHARS = 12


def new_bearer_key() -> str:
    """A new key: the prefix and 43 characters of letters, digits, - and _."""
    return f"{PREFIX}{secrets.token_urlsafe(SECRET_BYTES)}"


def hash_of(bearer: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(bearer.encode()).hexdigest()


def key_id_of(key_hash: str) -> str:
    """The beginning of its hash, by which a key is named where people read."""
    return key_hash[:KEY_ID_CHARS]
