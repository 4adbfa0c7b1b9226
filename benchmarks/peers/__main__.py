"""Recollect beside other stores on the same data: `python -m benchmarks.peers`.

    python -m benchmarks.peers --install            only make the environments
    python -m benchmarks.peers --sizes 10000,100000 --only ours,chroma

Each store is a process in an environment of its own, measured one after the other by the same
program. With a hundred thousand items only those are measured that are servers, unless asked for.
One that cannot be installed or run is said so in the table.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import results
from benchmarks.peers import data
from benchmarks.peers.environments import PEERS, CannotInstall, Peer, install
from benchmarks.peers.goals import rows
from benchmarks.peers.tables import table
from benchmarks.service import folder
from benchmarks.table import show
from recollect import __version__

SIZES = "10000"
ALL_UP_TO = 20_000
WITHIN_S = 900.0
ROOT = Path(__file__).parents[2]


def measure(peer: Peer, stored: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What one store does, or why it does not."""
    try:
        interpreter = install(peer)
    except CannotInstall as error:
        return {"failed": str(error)}
    # A short path: a socket lies in it.
    with tempfile.TemporaryDirectory(prefix="p", dir=os.environ.get("BENCH_DIR")) as name:
        place = Path(name)
        command = [
            *(str(interpreter), "-m", "benchmarks.peers.driving", peer.driver),
            *("--data", str(stored), "--folder", str(place / "d"), "--out", str(place / "out")),
            *("--calls", str(options.calls), "--seconds", str(options.seconds)),
            *("--rounds", str(options.rounds)),
        ]
        log = place / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                code = process.wait(options.within_s)
            except subprocess.TimeoutExpired:
                return {"failed": f"not done within {options.within_s:,.0f} s"}
            finally:
                _end(process)
        if code:
            said = log.read_text(errors="replace").strip().splitlines()
            return {"failed": (said[-1] if said else f"exit code {code}")[:200]}
        found: dict[str, Any] = msgspec.json.decode((place / "out").read_bytes())
        return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a store with all that it started, which is a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def measure_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every store at every size."""
    only = options.only.split(",") if options.only else None
    found: list[dict[str, Any]] = []
    for size in (int(size) for size in options.sizes.split(",")):
        with folder() as stored:
            data.make(stored, size)
            for peer in PEERS:
                if only is not None and peer.driver not in only:
                    continue
                if only is None and size > ALL_UP_TO and not peer.server:
                    continue
                began = time.monotonic()
                print(f"{peer.name}, {size:,} items", flush=True)
                measured = measure(peer, stored, options)
                took_s = time.monotonic() - began
                print(f"  {measured.get('failed', 'done')}, {took_s:.0f} s", flush=True)
                found.append(
                    {
                        "peer": peer.name,
                        "version": peer.version or __version__,
                        "size": size,
                        **measured,
                    }
                )
    return found


def with_others(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was measured now in the place of what was before, and the rest as it was."""
    before = results.read("peers")
    now = set(map(_which, found))
    kept = [s for s in (before.found["stores"] if before else ()) if _which(s) not in now]
    order = {peer.name: place for place, peer in enumerate(PEERS)}
    return sorted([*kept, *found], key=lambda s: (s["size"], order.get(s["peer"], len(order))))


def _which(store: dict[str, Any]) -> tuple[str, int]:
    return store["peer"], store["size"]


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure, print, and keep the results; whether every goal is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--install", action="store_true", help="only make the environments")
    parser.add_argument("--sizes", default=SIZES, help="how many items, with commas")
    parser.add_argument("--only", help="drivers to measure, with commas")
    parser.add_argument("--calls", type=int, default=500, help="calls of one client at most")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each kind of call")
    parser.add_argument("--rounds", type=int, default=3, help="rounds with eight clients")
    parser.add_argument("--within-s", type=float, default=WITHIN_S, help="bound for one store")
    parser.add_argument("--note", default="", help="what to say of the machine, kept with results")
    options = parser.parse_args(arguments)
    if options.install:
        met = True
        for peer in PEERS:
            try:
                install(peer)
            except CannotInstall as error:
                print(f"{peer.name} {error}")
                met = False
        return met
    found = measure_all(options)
    results.keep("peers", {"stores": with_others(found)}, options.note)
    table(found)
    return show("Recollect beside the other servers", rows(found))


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
