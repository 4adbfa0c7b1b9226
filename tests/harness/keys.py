"""Keys for tests: identities made at a running orchestrator, and keys that it does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect import MemoryClient
from recollect.orchestrator.access.own_keys import new_pair
from recollect.protocol import key_files
from recollect.protocol.bearer_keys import hash_of, new_bearer_key


def issue(
    admin: MemoryClient, path: Path, name: str, *grants: tuple[str, str], **bounds: Any
) -> Path:
    """The key file of a new identity with some grants."""
    key_file = stranger(admin, path, name)
    admin.create_identity(name, key_files.read(key_file).public_key, **bounds)
    for pattern, access in grants:
        admin.grant_access(name, pattern, access)  # type: ignore[arg-type]
    return key_file


def issue_bearer(
    admin: MemoryClient, name: str, *grants: tuple[str, str], label: str | None = None
) -> str:
    """A bearer key of a new identity with some grants, or one more of an identity there is."""
    known = admin.list_identities()["identities"]
    if name not in [found["name"] for found in known if not found["revoked_at"]]:
        admin.create_identity(name)
    for pattern, access in grants:
        admin.grant_access(name, pattern, access)  # type: ignore[arg-type]
    key = new_bearer_key()
    admin.create_bearer_key(name, hash_of(key), label)
    return key


def stranger(admin: MemoryClient, path: Path, name: str = "stranger") -> Path:
    """A key file that is right in all, but that nobody was told of."""
    server_key = admin.list_identities()["server_key"]
    key_files.write_new(path, new_pair(name, server_key))
    return path
