"""What was measured, kept as JSON with the machine, the day and the versions.

The page and its charts are made from these files alone, so that a run on another day or machine
replaces them without another word being written.
"""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from recollect import __version__

PACKAGES = ("apsw", "faiss-cpu", "msgspec", "numpy", "onnxruntime", "pyzmq")
FOLDER = Path(__file__).parent / "results"


def load() -> float:
    """How much the machine had to do in the last minute."""
    return round(os.getloadavg()[0], 1)


def now() -> str:
    """The moment as it is kept with what was measured."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# Before anything is measured: what others did on the machine.
LOAD_AT_START = load()


class Result(msgspec.Struct, frozen=True):
    """One program's figures, and under what they were taken."""

    program: str
    at: str
    machine: dict[str, Any]
    versions: dict[str, str]
    note: str
    found: dict[str, Any]


def folder() -> Path:
    """Where results are kept: BENCH_RESULTS, or beside the programs."""
    return Path(os.environ.get("BENCH_RESULTS") or FOLDER)


def keep(program: str, found: dict[str, Any], note: str = "") -> Path:
    """Write the results of a program in the place of its last ones."""
    result = Result(
        program=program,
        at=now(),
        machine=machine(),
        versions=versions(),
        note=note or os.environ.get("BENCH_NOTE", ""),
        found=found,
    )
    path = folder() / f"{program}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.format(msgspec.json.encode(result), indent=1)
    path.write_bytes(encoded + b"\n")
    return path


def read(program: str) -> Result | None:
    """The last results of a program, if there are any."""
    try:
        return msgspec.json.decode((folder() / f"{program}.json").read_bytes(), type=Result)
    except FileNotFoundError:
        return None


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "processor": _first("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count() or 1,
        "memory_gb": round(int((_first("/proc/meminfo", "MemTotal") or "0").split()[0]) / 2**20),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "load_at_start": LOAD_AT_START,
    }


def versions() -> dict[str, str]:
    """Recollect, Python and what does the work."""
    found = {"recollect": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _first(path: str, name: str) -> str | None:
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return line.partition(":")[2].strip()
    except OSError:
        return None
    return None
