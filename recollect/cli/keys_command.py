"""Commands for keys, and for what their holders may do: new, list, grant and revoke."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from recollect.cli import options
from recollect.cli.failures import USAGE, Failure, reporting
from recollect.cli.keys_reach import Reached, reaching
from recollect.cli.output import ago, clean, note, out, print_json, show_failure
from recollect.client.sockets import check_endpoint
from recollect.orchestrator.access.grants import PATTERN_RULE, is_pattern, normalised
from recollect.orchestrator.access.own_keys import new_pair
from recollect.protocol import key_files
from recollect.protocol.errors import TransportError
from recollect.protocol.operations import (
    CreateIdentity,
    GrantAccess,
    ListIdentities,
    RevokeAccess,
)
from recollect.protocol.operations.access import Name as IdentityName

Access = Literal["read", "write", "admin"]
ACCESSES = ("read", "write", "admin")

keys = typer.Typer(
    name="keys",
    help="Make keys, and say what their holders may do.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(help="The identity.", metavar="NAME", show_default=False)]
PATTERN_HELP = "* for everything, a prefix such as user, or a namespace such as user:alice."
ACCESS_HELP = "read, write or admin."


@keys.command("new")
def new(
    name: Name,
    grant: Annotated[
        list[str] | None,
        typer.Option(
            help="What it may do where, such as user:alice=write; may be given again.",
            metavar="PATTERN=ACCESS",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--out",
            help="The key file to write; it must not exist. NAME.key here, if not given.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            help="How many requests it may make a second.", metavar="N", show_default=False
        ),
    ] = None,
    memories_max: Annotated[
        int | None,
        typer.Option(help="How many memories it may have stored.", metavar="N", show_default=False),
    ] = None,
    reached_at: Annotated[
        str | None,
        typer.Option(
            help="Where its holder reaches the orchestrator; written into the key file.",
            metavar="ENDPOINT",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Make an identity with a key of its own. Works also while no orchestrator runs."""
    with reporting(partial(show_failure, as_json=as_json)):
        _check_name(name)
        wanted = [_grant_from(text) for text in grant or ()]
        if reached_at is not None:
            check_endpoint(reached_at)
        path = Path(os.path.expanduser(to if to is not None else f"{name}.key"))
        with reaching(endpoint, key_file, data, config) as reached:
            identity = _make(
                reached, CreateIdentity(name, None, rate, memories_max), wanted, path, reached_at
            )
        if as_json:
            return print_json(
                {"status": "success", "identity": identity, "key_file": str(path.absolute())}
            )
        out.print(Text.assemble(("Made ", "green"), (name, "bold"), f": its key is in {path}"))
        _show_grants(identity)
        note(
            f"Whoever has this file is {name}. With it: export RECOLLECT_KEY_FILE={path.absolute()}"
        )
        if reached.asks_for_keys is False:
            note(
                "The orchestrator asks for no keys as it runs now: everybody on this machine may "
                "do everything. Set access.require_keys to true and start it again.",
                "yellow",
            )


def _make(
    reached: Reached,
    operation: CreateIdentity,
    grants: list[tuple[str, Access]],
    path: Path,
    reached_at: str | None,
) -> dict[str, Any]:
    """The new identity; its secret is made here and goes into the file alone."""
    server_key = reached.ask(ListIdentities())["server_key"]
    pair = new_pair(operation.name, server_key, reached_at or reached.endpoint)
    with _new_file(path, pair):
        created = reached.ask(
            CreateIdentity(
                operation.name, pair.public_key, operation.requests_per_s, operation.memories_max
            )
        )
    identity: dict[str, Any] = created["identity"]
    for pattern, access in grants:
        identity = reached.ask(GrantAccess(operation.name, pattern, access))["identity"]
    return identity


@contextmanager
def _new_file(path: Path, pair: key_files.KeyFile) -> Iterator[None]:
    """The file is there before the identity, and goes again if there comes to be none."""
    try:
        key_files.write_new(path, pair)
    except FileExistsError:
        raise Failure(
            "file_exists",
            f"{path} is there already, and no key is ever written over.",
            "Choose another file with --out.",
            exit_code=USAGE,
        ) from None
    try:
        yield
    except TransportError:
        raise  # Perhaps it was made after all, and then this is its only key.
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@keys.command("list")
def list_(
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show all identities and what they may do."""
    with reporting(partial(show_failure, as_json=as_json)):
        with reaching(endpoint, key_file, data, config) as reached:
            answer = reached.ask(ListIdentities())
        if as_json:
            return print_json(answer)
        table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
        for title in ("identity", "may", "requests/s", "memories", "made", ""):
            table.add_column(title, overflow="fold")
        for identity in answer["identities"]:
            table.add_row(
                clean(identity["name"]),
                "\n".join(_grant_lines(identity)) or Text("nothing", "dim"),
                _bound(identity["requests_per_s"]),
                _memories(identity),
                ago(identity["created_at"]),
                Text(f"revoked {ago(identity['revoked_at'])}", "red")
                if identity["revoked_at"]
                else "",
            )
        if answer["identities"]:
            out.print(table)
        else:
            note("Nobody has a key yet: `recollect keys new NAME` makes one.")
        if answer["server_key"]:
            note(f"Clients know the orchestrator by {answer['server_key']}")


@keys.command("grant")
def grant(
    name: Name,
    pattern: Annotated[
        str, typer.Argument(help=PATTERN_HELP, metavar="PATTERN", show_default=False)
    ],
    access: Annotated[str, typer.Argument(help=ACCESS_HELP, metavar="ACCESS")] = "read",
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Let an identity read, write or administer a namespace and all below it, from now on."""
    with reporting(partial(show_failure, as_json=as_json)):
        operation = GrantAccess(name, *_checked(pattern, access))
        with reaching(endpoint, key_file, data, config) as reached:
            answer = reached.ask(operation)
        _show_changed(answer, as_json=as_json)


@keys.command("revoke")
def revoke(
    name: Name,
    pattern: Annotated[
        str | None,
        typer.Argument(
            help="The grant to take back; the whole identity if not given.",
            metavar="[PATTERN]",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Take a grant back, or an identity with its key and all its grants; effective at once."""
    with reporting(partial(show_failure, as_json=as_json)):
        with reaching(endpoint, key_file, data, config) as reached:
            answer = reached.ask(RevokeAccess(name, pattern))
        _show_changed(answer, as_json=as_json)


def _show_changed(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        return print_json(answer)
    identity = answer["identity"]
    if identity["revoked_at"]:
        return out.print(Text.assemble(("Revoked ", "green"), (identity["name"], "bold")))
    out.print(Text(identity["name"], "bold"))
    _show_grants(identity)


def _show_grants(identity: dict[str, Any]) -> None:
    for line in _grant_lines(identity):
        out.print(f"  {line}", markup=False)
    if not identity["grants"]:
        note(f"It may do nothing yet: `recollect keys grant {identity['name']} PATTERN ACCESS`")


def _grant_lines(identity: dict[str, Any]) -> list[str]:
    return [f"{grant['access']:<6} {clean(grant['pattern'])}" for grant in identity["grants"]]


def _bound(number: float | None) -> str | Text:
    return Text("any", "dim") if number is None else f"{number:g}"


def _memories(identity: dict[str, Any]) -> str | Text:
    maximum = identity["memories_max"]
    return Text("any", "dim") if maximum is None else f"{identity['memories']:,} of {maximum:,}"


def _check_name(name: str) -> None:
    """Refuse what is no name before a file is called by it."""
    try:
        msgspec.convert(name, IdentityName)
    except msgspec.ValidationError:
        raise _misspelt(
            f"{name!r} is no name: it has letters, digits and _ . @ -, and begins with one of the "
            "first two.",
            "alice",
        ) from None


def _grant_from(text: str) -> tuple[str, Access]:
    pattern, equals, access = text.rpartition("=")
    if not equals:
        raise _misspelt(f"--grant {text!r} has no =.", "--grant user:alice=write")
    return _checked(pattern, access)


def _checked(pattern: str, access: str) -> tuple[str, Access]:
    """A pattern in its one spelling, and an access; refused before anything is made."""
    if access not in ACCESSES:
        raise _misspelt(f"{access!r} is no access: it is read, write or admin.", "user:alice write")
    if not is_pattern(normalised(pattern)):
        raise _misspelt(f"{pattern!r} is not a pattern: {PATTERN_RULE}.", "user:alice")
    return normalised(pattern), cast(Access, access)


def _misspelt(message: str, example: str) -> Failure:
    return Failure("invalid_argument", message, f"Write it as {example}.", exit_code=USAGE)
