"""What was tried and what went wrong: one line a promise in test-output/promises.jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

PATH = Path(__file__).parents[2] / "test-output" / "promises.jsonl"
VIOLATIONS_SHOWN = 10


class Ledger:
    """Cases and violations by promise, summed over the tests of one run."""

    def __init__(self, *, impatient: bool = False) -> None:
        self.sums: dict[str, tuple[int, int]] = {}
        self.impatient = impatient
        """Whether a trial ends with its first violation."""

    def add(self, promise: str, cases: int, violations: int) -> None:
        before = self.sums.get(promise, (0, 0))
        self.sums[promise] = (before[0] + cases, before[1] + violations)

    def write(self, path: Path = PATH) -> None:
        """Replace the lines of the promises tried in this run; the others stay."""
        known: dict[str, tuple[int, int]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                known[entry["promise"]] = (entry["cases"], entry["violations"])
        known.update(self.sums)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            json.dumps({"promise": promise, "cases": cases, "violations": violations})
            for promise, (cases, violations) in sorted(known.items(), key=_by_number)
        ]
        path.write_text("".join(f"{line}\n" for line in lines))


def _by_number(entry: tuple[str, tuple[int, int]]) -> int:
    return int(entry[0].removeprefix("P"))


RUN = Ledger()
_books = [RUN]


@contextmanager
def aside() -> Iterator[Ledger]:
    """Have trials be written into another book for a while: those of what is broken on purpose."""
    book = Ledger(impatient=True)
    _books.append(book)
    try:
        yield book
    finally:
        _books.remove(book)


class Trial:
    """A promise on trial: counts cases, gathers violations, fails at its end if there are any."""

    def __init__(self, promise: str, ledger: Ledger | None = None) -> None:
        self._promise = promise
        self._ledger = ledger or _books[-1]
        self.cases = 0
        self.violations: list[str] = []

    def case(self, count: int = 1) -> None:
        self.cases += count

    def violated(self, what: str) -> None:
        self.violations.append(what)
        if self._ledger.impatient:
            raise AssertionError(what)

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            self.violated(what)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        broken = len(self.violations) + (error is not None and not self.violations)
        self._ledger.add(self._promise, self.cases, broken)
        if self.violations:
            shown = "\n  ".join(self.violations[:VIOLATIONS_SHOWN])
            raise AssertionError(
                f"{self._promise}: {len(self.violations)} violations in {self.cases} cases:\n  "
                f"{shown}"
            ) from error
        if error is None:
            assert self.cases > 0, f"{self._promise}: nothing was tried"
