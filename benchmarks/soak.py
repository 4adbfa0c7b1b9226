"""A long run with everything on: load, and each process killed in turn.

    python -m benchmarks.soak --minutes 20

`recollect up` runs with scheduler, gateway, health manager and a Redis of its own. Agents write,
read, search and assemble contexts all the while; at intervals the next process is killed with
SIGKILL. Throughput, latency and the memory of each process are noted over time; at the end every
acknowledged write is looked for.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import psutil

from benchmarks import results
from benchmarks.service import folder
from benchmarks.soak_load import Fleet, Noted, lost
from benchmarks.table import Row, at_least, at_most, p50, p99, show
from recollect import MemoryClient
from tests.system.whole.system import ROLES, WholeSystem

MINUTES = 20.0
AGENTS = 3
PARTS = 240
PART_S_MIN = 1.0
KILL_EVERY_S = 60.0
BACK_WITHIN_S = 30.0
SAMPLE_S = 1.0
SEED = 7
KILLED = (*ROLES, "redis")
# The ends of the run are compared: throughput, latency and memory should be the same in both.
THIRD = 3
THROUGHPUT_MIN, LATENCY_MAX, MEMORY_MAX = 0.8, 1.5, 1.3
WARM_SHARE = 0.1


def serving(system: WholeSystem, role: str) -> psutil.Process | None:
    return system.redis() if role == "redis" else system.serving(role)


def kill(system: WholeSystem, role: str) -> float | None:
    """Kill a process; the seconds until another one serves in its role."""
    before = serving(system, role)
    if before is None:
        return None
    before.kill()
    began = time.monotonic()
    while time.monotonic() - began < BACK_WITHIN_S:
        after = serving(system, role)
        if after is not None and after.pid != before.pid:
            return time.monotonic() - began
        time.sleep(0.02)
    return None


def weigh(system: WholeSystem) -> dict[str, int]:
    """The resident memory of each process that runs now."""
    weighed: dict[str, int] = {}
    for role in KILLED:
        try:
            if (process := serving(system, role)) is not None:
                weighed[role] = process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return weighed


def watch(system: WholeSystem, seconds: float, kill_every_s: float) -> dict[str, Any]:
    """Weigh and kill until the time is over."""
    began = time.monotonic()
    kills: list[dict[str, Any]] = []
    memory: list[dict[str, Any]] = []
    turns = itertools.cycle(KILLED)
    next_kill = began + kill_every_s
    # The last part is left alone, so that what was killed last is back at the end.
    while (now := time.monotonic()) < began + seconds:
        if now >= next_kill and now < began + seconds - kill_every_s / 2:
            role = next(turns)
            back_s = kill(system, role)
            kills.append({"at_s": now - began, "role": role, "back_s": back_s})
            told = "did not come back" if back_s is None else f"back after {back_s:.1f} s"
            print(f"  {now - began:5.0f} s: killed the {role}, {told}", flush=True)
            next_kill = time.monotonic() + kill_every_s
        memory.append({"at_s": now - began, "rss": weigh(system)})
        time.sleep(SAMPLE_S)
    return {"kills": kills, "memory": memory}


def over_time(noted: Sequence[Noted], part_s: float, parts: int) -> list[dict[str, Any]]:
    """Throughput, failures and latency of each part of the run, of all agents together."""
    series = []
    for part in range(parts):
        samples = [us for agent in noted for us in agent.calls_us.get(part, ())]
        failed = sum(agent.failed.get(part, 0) for agent in noted)
        entry: dict[str, Any] = {"at_s": part * part_s, "failed": failed}
        entry["per_s"] = len(samples) / part_s
        if samples:
            entry |= {"p50_ms": p50(samples) / 1000, "p99_ms": p99(samples) / 1000}
        series.append(entry)
    return series


def run(seconds: float, agents: int, kill_every_s: float) -> dict[str, Any]:
    """The whole run; what was found."""
    part_s = max(PART_S_MIN, seconds / PARTS)
    with folder() as place:
        system = WholeSystem(place)
        try:
            system.wait_ready()
            system.wait_healthy()
            fleet = Fleet(agents, system.endpoint, system.data, place, SEED)
            fleet.start(seconds, part_s)
            watched = watch(system, seconds, kill_every_s)
            noted = fleet.ended()
            with MemoryClient(system.endpoint, timeout=60.0) as client:
                missing = [what for agent in noted for what in lost(client, agent)]
            database = sum(path.stat().st_size for path in system.data.glob("recollect.db*"))
        finally:
            system.close()
    reasons: dict[str, int] = {}
    for agent in noted:
        for reason, count in agent.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + count
    return {
        **watched,
        "seconds": seconds,
        "agents": agents,
        "series": over_time(noted, part_s, int(seconds / part_s)),
        "acknowledged": sum(agent.acknowledged for agent in noted),
        "looked_for": sum(len(a.added) + len(a.put) for a in noted),
        "lost": missing[:20],
        "lost_count": len(missing),
        "calls": sum(len(us) for a in noted for us in a.calls_us.values()),
        "failed": sum(count for a in noted for count in a.failed.values()),
        "failed_for": reasons,
        "database_bytes": database,
    }


def rows(found: dict[str, Any]) -> list[Row]:
    """What must hold at the end: nothing lost, all back, and the last third like the first."""
    warm = found["series"][int(WARM_SHARE * len(found["series"])) :]
    size = max(1, len(warm) // THIRD)
    first, last = warm[:size], warm[-size:]

    def median(parts: Sequence[dict[str, Any]], name: str) -> float:
        return float(statistics.median(part[name] for part in parts if name in part))

    back = [kill["back_s"] for kill in found["kills"]]
    made = [
        Row(
            f"acknowledged writes lost, of {found['acknowledged']:,}",
            str(found["lost_count"]),
            f"{len(back)} kills",
            float(found["lost_count"]),
            "0",
            found["lost_count"] == 0,
        ),
        Row(
            "processes that came back",
            f"{sum(b is not None for b in back)}",
            f"killed {len(back)}",
            1.0,
            "all",
            all(b is not None for b in back),
        ),
        at_least(
            "calls/s, last third", median(last, "per_s"), median(first, "per_s"),
            THROUGHPUT_MIN, "/s", "first third",
        ),
        at_most(
            "p50, last third", median(last, "p50_ms"), median(first, "p50_ms"),
            LATENCY_MAX, "ms", "first third",
        ),
    ]  # fmt: skip
    for role in KILLED:
        weights = [sample["rss"][role] / 1e6 for sample in found["memory"] if role in sample["rss"]]
        weights = weights[int(WARM_SHARE * len(weights)) :]
        part = len(weights) // THIRD
        if part:
            made.append(
                at_most(
                    f"memory of the {role}, last third", statistics.median(weights[-part:]),
                    statistics.median(weights[:part]), MEMORY_MAX, "MB", "first third",
                )
            )  # fmt: skip
    return made


def main(arguments: Sequence[str] = ()) -> bool:
    """Run, verify, print and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--kill-every-s", type=float, default=KILL_EVERY_S)
    parser.add_argument("--note", default="", help="what to say of the machine, kept with results")
    options = parser.parse_args(arguments)
    print(f"A run of {options.minutes:g} minutes, {options.agents} agents", flush=True)
    found = run(60 * options.minutes, options.agents, options.kill_every_s)
    results.keep("soak", found, options.note)
    return show(f"A soak of {options.minutes:g} minutes, with kills", rows(found))


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
