"""Identities, and what each of them may do where."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields

Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,127}$(?!\n)",
        description="Name of the identity: letters, digits and _ . @ -",
    ),
]
Pattern = Annotated[
    str,
    Meta(
        min_length=1,
        description="`*` for everything, a prefix such as `user`, or a namespace such as "
        "`user:alice`; it covers all that is below.",
    ),
]


@operation(access="admin", everywhere=True, http=("POST", "/v1/identities"))
class CreateIdentity(Operation[records.IdentityChanged], frozen=True):
    """Make an identity known by its public key; it may do nothing until it is granted something.

    One without a public key is known by bearer keys alone, see `create_bearer_key`.
    The name of one that was revoked can be given again, with another key.
    """

    name: Name
    public_key: Annotated[
        Annotated[str, Meta(min_length=40, max_length=40)] | None,
        Meta(description="Its CURVE public key in Z85: 40 characters."),
    ] = None
    requests_per_s: Annotated[
        Annotated[float, Meta(gt=0, le=1_000_000)] | None,
        Meta(description="How many requests it may make a second; without limit if absent."),
    ] = None
    memories_max: Annotated[
        Annotated[int, Meta(ge=0, le=fields.INTEGER_MAX)] | None,
        Meta(description="How many memories it may have stored; without limit if absent."),
    ] = None


@operation(access="admin", everywhere=True, http=("GET", "/v1/identities"))
class ListIdentities(Operation[records.IdentitiesListed], frozen=True):
    """All identities with their grants and bearer keys, those that were revoked included."""


@operation(access="admin", everywhere=True, http=("PUT", "/v1/identities/{name}/grants"))
class GrantAccess(Operation[records.IdentityChanged], frozen=True):
    """Let an identity read, write or administer a namespace and all below it; effective at once.

    An earlier grant on the same pattern is replaced.
    """

    name: Name
    pattern: Pattern
    access: Annotated[
        Literal["read", "write", "admin"],
        Meta(description="read; write, which includes reading; admin, which includes both."),
    ] = "read"


@operation(access="admin", everywhere=True, http=("DELETE", "/v1/identities/{name}/grants"))
class RevokeAccess(Operation[records.IdentityChanged], frozen=True):
    """Take a grant back, or the identity itself with its keys and grants; effective at once."""

    name: Name
    pattern: Annotated[
        str | None, Meta(description="The grant to take back; the whole identity if absent.")
    ] = None


@operation(access="admin", everywhere=True, http=("POST", "/v1/identities/{name}/bearer-keys"))
class CreateBearerKey(Operation[records.IdentityChanged], frozen=True):
    """Give an identity a bearer key, beside those it has; effective at once.

    The key is made by the caller, of at least 256 random bits, and never sent: its hash is.
    """

    name: Name
    key_hash: Annotated[
        str,
        Meta(
            pattern=r"^[0-9a-f]{64}$(?!\n)",
            description="SHA-256 of the key, as 64 hexadecimal digits in small letters.",
        ),
    ]
    label: Annotated[
        Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,128}$(?!\n)")] | None,
        Meta(description="What the key is for, so that it is known again in a list."),
    ] = None


@operation(
    access="admin", everywhere=True, http=("DELETE", "/v1/identities/{name}/bearer-keys/{key_id}")
)
class RevokeBearerKey(Operation[records.IdentityChanged], frozen=True):
    """Take one bearer key of an identity back, and leave its others; effective at once."""

    name: Name
    key_id: Annotated[
        str,
        Meta(
            pattern=r"^[0-9a-f]{12}$(?!\n)",
            description="The key as `list_identities` names it: 12 digits of its hash.",
        ),
    ]


@operation(access="open", http=("GET", "/v1/identity"))
class WhoAmI(Operation[records.Myself], frozen=True):
    """Who the caller is to the orchestrator, and what it may do."""
