"""What `recollect doctor` says of the rows of a store, whatever they lie in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from recollect.cli.findings import Finding, fail, ok, warn
from recollect.cli.output import counted
from recollect.orchestrator.maintenance import checks
from recollect.orchestrator.maintenance.checks import Problem
from recollect.orchestrator.storage import journal_walk
from recollect.orchestrator.storage.interface import Session


def schema_finding(number: int, known: int) -> Finding:
    """Whether the schema of a store is one that this version works with."""
    if number > known:
        return fail(
            "schema",
            f"The database has schema {number}; this version knows up to {known}.",
            "Install the version that wrote it, or a newer one.",
        )
    if number < known:
        return warn(
            "schema",
            f"The database has schema {number} of {known}.",
            "The next start of the orchestrator brings it up to date; make a backup before.",
        )
    return ok("schema", f"Schema {number} is the newest.")


def check_rows(session: Session, held_sql: str, restore: str, *, newest: bool) -> Iterator[Finding]:
    """Whether rows, vectors and words agree; all there is to say only of the newest schema."""
    if newest:
        yield _journal(session)
    [(living,)] = session.execute(checks.COUNT_LIVING)
    yield from _told(
        "vectors", checks.check_vectors(session), lambda: _vectors_well(session, living)
    )
    yield from _told(
        "words",
        checks.check_words(held_sql, restore, session),
        lambda: "The full-text index agrees with the memories.",
    )
    if newest:
        yield from _told(
            "links",
            checks.check_links(restore, session),
            lambda: "What hangs on memories has its memory.",
        )


def _journal(session: Session) -> Finding:
    if complaint := journal_walk.verify(session):
        return fail(
            "journal",
            f"The chain of the audit is broken: {complaint}.",
            "Somebody or something changed the past. Compare with a backup.",
        )
    [(entries,)] = session.execute("SELECT count(*) FROM journal")
    text = "1 entry fits" if entries == 1 else f"{entries:,} entries fit"
    return ok("journal", f"{text} the chain.")


def _told(name: str, problems: Iterator[Problem], well: Callable[[], str]) -> Iterator[Finding]:
    """What the orchestrator would find as well, or that all is well."""
    found = list(problems)
    for problem in found:
        tell = fail if problem.serious else warn
        yield tell(name, problem.text, problem.advice)
    if not found:
        yield ok(name, well())


def _vectors_well(session: Session, living: int) -> str:
    kinds = session.execute(checks.COUNT_KINDS)
    model = f" of {kinds[0][0]}" if kinds else ""
    return f"{counted(living, 'living memory')}, each with its vector{model}."
