"""Commands for keys, and for what their holders may do: new, list, grant and revoke."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.failures import USAGE, Failure, reporting
from recollect.cli.keys import bearer_keys
from recollect.cli.keys.reach import Reached, reaching
from recollect.cli.keys.spelling import check_name, checked_grant, grant_from, misspelt
from recollect.cli.keys.views import show_changed, show_grants, show_list
from recollect.cli.output import note, out, print_json, show_failure
from recollect.client.endpoints import checked, split
from recollect.orchestrator.access.own_keys import new_pair
from recollect.protocol import key_files
from recollect.protocol.errors import RecollectError, TransportError
from recollect.protocol.operations import (
    CreateIdentity,
    GrantAccess,
    ListIdentities,
    RevokeAccess,
    RevokeBearerKey,
)

keys = typer.Typer(
    name="keys",
    help="Make keys, and say what their holders may do.",
    add_completion=False,
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
    bearer: Annotated[
        bool,
        typer.Option(
            "--bearer",
            help="Make a bearer key instead of a key file, and print it, this once. If there is "
            "an identity of this name, it gets one more key.",
        ),
    ] = False,
    label: Annotated[
        str | None,
        typer.Option(
            help="What the bearer key is for, to know it again in the list.",
            metavar="TEXT",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Make an identity with a key of its own. Works also while no orchestrator runs.

    For example: `recollect keys new planner --grant project:apollo=write`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        check_name(name)
        wanted = [GrantAccess(name, *grant_from(text)) for text in grant or ()]
        holder = CreateIdentity(name, None, rate, memories_max)
        if bearer:
            _check_for_bearer(to, reached_at)
            with reaching(endpoint, key_file, data, config, may_create=True) as reached:
                made = bearer_keys.make(reached, holder, wanted, label)
            _show_bearer(made, reached, as_json=as_json)
            return
        if label is not None:
            raise misspelt("Only a bearer key has a label.", "--bearer --label TEXT")
        if reached_at is not None:
            checked(split(reached_at))
        path = Path(os.path.expanduser(to if to is not None else f"{name}.key"))
        with reaching(endpoint, key_file, data, config, may_create=True) as reached:
            identity = _make(reached, holder, wanted, path, reached_at)
        if as_json:
            return print_json(
                {"status": "success", "identity": identity, "key_file": str(path.absolute())}
            )
        out.print(Text.assemble(("Made ", "green"), (name, "bold"), f": its key is in {path}"))
        show_grants(identity)
        note(
            f"Whoever has this file is {name}. With it: export RECOLLECT_KEY_FILE={path.absolute()}"
        )
        _remark_on_asking(reached)


def _show_bearer(made: bearer_keys.Made, reached: Reached, *, as_json: bool) -> None:
    """Show a bearer key: it is kept nowhere, and so cannot be shown again."""
    if as_json:
        return print_json(
            {
                "status": "success",
                "identity": made.identity,
                "key_id": made.key_id,
                "bearer_key": made.key,
            }
        )
    name = made.identity["name"]
    begin = "Made " if made.is_new else "One more key for "
    out.print(Text.assemble((begin, "green"), (name, "bold"), f": bearer key {made.key_id}"))
    show_grants(made.identity)
    out.print(made.key, soft_wrap=True)
    note(
        f"This is shown once. Whoever has it is {name}: at the gateway by `Authorization: Bearer "
        "KEY`, in a client by RECOLLECT_BEARER."
    )
    _remark_on_asking(reached)


def _remark_on_asking(reached: Reached) -> None:
    if reached.asks_for_keys is False:
        note(
            "The orchestrator asks for no keys as it runs now: everybody on this machine may do "
            "everything. Set access.require_keys to true and start it again.",
            "yellow",
        )


def _make(
    reached: Reached,
    operation: CreateIdentity,
    grants: list[GrantAccess],
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
        try:
            for grant in grants:
                identity = reached.ask(grant)["identity"]
        except TransportError:
            raise
        except RecollectError:
            # Nobody is to have a key that may do less than was asked for.
            reached.ask(RevokeAccess(operation.name))
            raise
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
    """Show all identities, by what they are known and what they may do.

    For example: `recollect keys list`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        with reaching(endpoint, key_file, data, config) as reached:
            answer = reached.ask(ListIdentities())
        if as_json:
            return print_json(answer)
        show_list(answer)


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
    """Let an identity read, write or administer a namespace and all below it, from now on.

    For example: `recollect keys grant planner user:anna read`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        operation = GrantAccess(name, *checked_grant(pattern, access))
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
    bearer: Annotated[
        str | None,
        typer.Option(
            help="Only this bearer key: its id, as the list shows it, or its label.",
            metavar="KEY",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Take back a grant, a bearer key, or an identity with all its keys and grants; effective at
    once.

    For example: `recollect keys revoke planner`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        if bearer is not None and pattern is not None:
            raise misspelt("A grant and a bearer key are taken back apart.", "--bearer KEY")
        with reaching(endpoint, key_file, data, config) as reached:
            if bearer is not None:
                key_id = bearer_keys.key_id_from(reached, name, bearer)
                answer = reached.ask(RevokeBearerKey(name, key_id))
            else:
                answer = reached.ask(RevokeAccess(name, pattern))
        _show_changed(answer, as_json=as_json)


def _show_changed(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        return print_json(answer)
    show_changed(answer["identity"])


def _check_for_bearer(to: str | None, reached_at: str | None) -> None:
    """Refuse what is about a key file, of which a bearer key has none."""
    if to is not None or reached_at is not None:
        raise misspelt(
            "--out and --reached-at are for a key file; a bearer key is printed.",
            "--bearer --label TEXT",
        )
