"""Bearer keys at the command line: made here and shown once; the orchestrator gets their hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from recollect.cli.failures import USAGE, Failure
from recollect.cli.keys.reach import Reached
from recollect.protocol.bearer_keys import hash_of, key_id_of, new_bearer_key
from recollect.protocol.operations import (
    CreateBearerKey,
    CreateIdentity,
    GrantAccess,
    ListIdentities,
)


class Made(NamedTuple):
    """A bearer key that was made."""

    identity: dict[str, Any]
    key: str
    key_id: str
    is_new: bool
    """Whether its holder was made with it."""


def make(
    reached: Reached,
    holder: CreateIdentity,
    grants: Sequence[GrantAccess],
    label: str | None,
) -> Made:
    """A new bearer key for an identity, which is made if there is none of its name.

    The key comes last, so that there is none whose holder may do less than was asked for.
    """
    is_new = _find(reached, holder.name) is None
    if is_new:
        reached.ask(holder)
    elif holder.requests_per_s is not None or holder.memories_max is not None:
        raise Failure(
            "already_exists",
            f"There is an identity {holder.name!r} already, and how much it may do was said when "
            "it was made.",
            "Leave --rate and --memories-max out to give it one more key.",
            exit_code=USAGE,
        )
    for grant in grants:
        reached.ask(grant)
    key = new_bearer_key()
    answer = reached.ask(CreateBearerKey(holder.name, hash_of(key), label))
    return Made(answer["identity"], key, key_id_of(hash_of(key)), is_new)


def key_id_from(reached: Reached, name: str, given: str) -> str:
    """The id of the bearer key that is meant: by its id, or by the label of one that counts."""
    identity = _find(reached, name)
    living = [] if identity is None else living_keys(identity)
    ids = [key["key_id"] for key in living if given in (key["key_id"], key["label"])]
    if len(ids) > 1:
        raise Failure(
            "ambiguous_label",
            f"{name} has {len(ids)} bearer keys with the label {given!r}: {', '.join(ids)}.",
            "Name one of these.",
        )
    if not ids:
        raise Failure(
            "not_found",
            f"{name} has no bearer key {given!r} that counts.",
            "`recollect keys list` shows those there are.",
        )
    return str(ids[0])


def living_keys(identity: dict[str, Any]) -> list[dict[str, Any]]:
    """The bearer keys of an identity that were not revoked."""
    return [key for key in identity["bearer_keys"] if key["revoked_at"] is None]


def _find(reached: Reached, name: str) -> dict[str, Any] | None:
    """The identity that has a name now."""
    for identity in reached.ask(ListIdentities())["identities"]:
        if identity["name"] == name and identity["revoked_at"] is None:
            found: dict[str, Any] = identity
            return found
    return None
