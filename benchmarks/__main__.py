"""`python -m benchmarks`: everything that is measured, in one table, on one page.

    python -m benchmarks            10,000 items beside other stores, 100,000 memories
    python -m benchmarks --quick    small sizes: whether everything runs, not how fast it is
    python -m benchmarks --full     100,000 items as well, a million memories, the soak

Each program can be run alone and at other sizes: `python -m benchmarks.search --sizes 1000000`.
One that fails is said so, and the others go on. `--only core,peers` runs some of them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from benchmarks import page, results
from benchmarks.table import SHOWN, Row, show

Arguments = Sequence[str] | None


class Program(msgspec.Struct, frozen=True):
    """A program, and what it is given; None leaves it out."""

    name: str
    usual: Arguments = ()
    quick: Arguments = ()
    full: Arguments = None
    """What `--full` gives it instead of the usual, if that differs."""

    def arguments(self, options: argparse.Namespace) -> Arguments:
        if options.quick:
            return self.quick
        return self.full if options.full and self.full is not None else self.usual


LARGE = ("--sizes", "100000")
SMALL = ("--sizes", "20000")
# First what everything else rests on, then the parts, then what compares and takes long.
PROGRAMS = (
    Program("core", quick=("--startup", "2000")),
    Program("operational"),
    Program("feed", quick=("--calls", "200", "--subscribers", "100")),
    Program("gateway", quick=None),
    Program("redis", quick=("--calls", "50")),
    Program("sharing", quick=("--memories", "5000")),
    Program("decay", quick=("--sizes", "1000", "10000", "--rounds", "1")),
    Program("context", quick=("--memories", "2000", "--calls", "10", "--rounds", "1")),
    Program("ann", LARGE, SMALL),
    Program("lexical", LARGE, SMALL),
    Program("search", LARGE, (*SMALL, "--no-model")),
    Program("postgres", quick=None),
    Program("recall", quick=("--sets", "updated_facts")),
    Program(
        "growth",
        quick=("--sizes", "1000,10000", "--calls", "50"),
        full=("--sizes", "1000,10000,100000,1000000"),
    ),
    Program(
        "peers.__main__",
        quick=("--sizes", "1000", "--calls", "50", "--seconds", "0.5", "--rounds", "1"),
        full=("--sizes", "10000,100000"),
    ),
    Program("soak", None, ("--minutes", "1", "--kill-every-s", "10"), ()),
)
# What keeps results of its own, beside its rows.
PAGES_OF_THEIR_OWN = ("growth", "peers", "recall", "soak")


def run(program: Program, arguments: Sequence[str]) -> dict[str, Any]:
    """One program: its title and rows, or why there are none."""
    shown_before, title = len(SHOWN), program.name.removesuffix(".__main__")
    given = list(arguments)
    if title == "recall" and (locomo := os.environ.get("LOCOMO")):
        given += ["--locomo", locomo]
    section: dict[str, Any] = {"program": title, "title": title, "rows": []}
    section |= {"at": results.now(), "load_at_start": results.load()}
    section["note"] = os.environ.get("BENCH_NOTE", "")
    began = time.monotonic()
    try:
        module = importlib.import_module(f"benchmarks.{program.name}")
        met = bool(module.main(given))
    except (Exception, SystemExit) as error:
        section["failed"], met = f"{type(error).__name__}: {error}", False
        print(f"{title} failed: {section['failed']}", flush=True)
    for name, rows in SHOWN[shown_before:]:
        section["title"] = name
        section["rows"] += [msgspec.to_builtins(row) for row in rows]
    return section | {"met": met, "took_s": time.monotonic() - began}


def merged(sections: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """These in the place of what the same programs found before, and the others as they were."""
    before = results.read("limits")
    kept = {s["program"]: s for s in (before.found["sections"] if before else ())}
    kept |= {section["program"]: section for section in sections}
    titles = [program.name.removesuffix(".__main__") for program in PROGRAMS]
    return [kept[title] for title in titles if title in kept]


def main(arguments: Sequence[str] = ()) -> bool:
    """Run all that is asked for, print one table, write the page; whether every bound is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="small sizes, and no page")
    sizes.add_argument("--full", action="store_true", help="large sizes and the soak as well")
    parser.add_argument("--only", help="programs to run, with commas")
    parser.add_argument("--note", default="", help="what to say of the machine, kept with results")
    options = parser.parse_args(arguments)
    os.environ["BENCH_NOTE"] = options.note or os.environ.get("BENCH_NOTE", "")
    if options.quick and "BENCH_RESULTS" not in os.environ:
        # What was measured properly must not be replaced by this.
        os.environ["BENCH_RESULTS"] = str(results.FOLDER.parent / "results-quick")
    only = options.only.split(",") if options.only else None
    began, sections = time.monotonic(), []
    for program in PROGRAMS:
        title, given = program.name.removesuffix(".__main__"), program.arguments(options)
        if given is None or (only is not None and title not in only):
            continue
        print(f"\n== {title}, after {time.monotonic() - began:,.0f} s", flush=True)
        sections.append(run(program, given))
    own = [s for s in sections if s["program"] not in PAGES_OF_THEIR_OWN]
    if own:
        results.keep("limits", {"sections": merged(own)})
    rows = [msgspec.convert(row, Row) for section in sections for row in section["rows"]]
    show(f"All of it, in {(time.monotonic() - began) / 60:.1f} minutes", rows)
    for section in sections:
        if "failed" in section:
            print(f"{section['program']} could not be measured: {section['failed']}")
    drawn = options.quick or page.main()
    return drawn and all(section["met"] for section in sections)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
