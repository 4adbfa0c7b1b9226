"""What Recollect promises, how each promise is tried here, and what it takes to hold.

Where the trial asks for less than the promise says, its bar says so in its own words.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.faults.rounds import SLOWER_MAX


class Promise(NamedTuple):
    """One row of the table."""

    words: str
    tried: str
    bar: str


PROMISES: dict[str, Promise] = {
    "P1": Promise(
        "an acknowledged write survives `kill -9`",
        "four clients log every acknowledgement while the orchestrator is killed, at random "
        "moments and before commit, after commit, before the reply, while sealing a segment "
        "and while scrubbing; the same for critical events",
        "none lost or changed, each found by word and meaning, `integrity_check` ok each time",
    ),
    "P2": Promise(
        "it is on disk before it is acknowledged",
        "acknowledgements of four writers at once: SQLite's file layer notes writes and syncs "
        "beside the replies; where strace may attach, the system calls of another run as well",
        "before each reply its pages were written and `fdatasync` of that file had returned",
    ),
    "P3": Promise(
        "a retry never duplicates",
        "a proxy cuts a third of the requests or replies, before, amid or after them; copies in "
        "flight together; a kill in between; the same key with another payload",
        "each stored once, each other payload refused as a conflict",
    ),
    "P4": Promise(
        "you read what you wrote, also by search, and never a stale cache entry",
        "histories of a Hypothesis state machine by three clients against a simple model; texts "
        "that change while Redis holds their vectors",
        "no answer differs from the model; the histories are without Redis",
    ),
    "P5": Promise(
        "Redis may die or hang",
        "killed, stopped by SIGSTOP, and a silent server in its place, under seven kinds of "
        "requests; a request is compared with the same one to an orchestrator without Redis",
        "no request fails; the median of each kind takes at most 60 ms longer until the breaker "
        "opens and 1 ms after, plus a tenth of what it takes anyway, which is noise",
    ),
    "P6": Promise(
        "a damaged or missing index file never gives a wrong answer",
        "truncated, flipped, zeroed, swapped, deleted, replaced files and manifests, at rest and "
        "under a running orchestrator",
        "no wrong answer, no crash, rebuilt by itself",
    ),
    "P7": Promise(
        "a full disk is an explicit error; reads go on; it recovers by itself",
        "a limit on the size of files under load and amid large commits; where one may be mounted, "
        "a file system without space",
        "none lost, no restart, `storage_full` and nothing else; reads answered",
    ),
    "P8": Promise(
        "a damaged database is never served silently",
        "cut, emptied, deleted; pages that are zeroed, flipped, noise, swapped, torn, copied over "
        "others; a damaged header; at rest, then started",
        "refused with what to do, or every answer is right; what it says to do restores all. A "
        "changed letter inside a stored text is not noticed, and not tried: see security.md",
    ),
    "P9": Promise(
        "a slow or dead client hurts only itself",
        "readers that are stopped with a full queue, a subscription, 200 subscriptions",
        f"p99 of the others at most +{SLOWER_MAX - 1:.0%}, in the best round or in half of up to "
        "25 pairs of rounds; the orchestrator grows by at most 60 MB",
    ),
    "P10": Promise(
        "malformed input harms nothing",
        "generated noise on raw TCP; ZeroMQ frames, envelopes and MessagePack that are broken in "
        "every place; every field of every operation with strange values. The generator is ours "
        "and seeded; neither Hypothesis nor atheris is used",
        "no crash, no defect in the log, a typed answer to each, memory +100 MiB at most, counted "
        "from after each operation was used once",
    ),
    "P11": Promise(
        "oversize is refused by name of the limit",
        "twice the limit, for every setting of limits, every bounded field, batch and queue",
        "each refused, by name",
    ),
    "P12": Promise(
        "a clock that jumps a day harms nothing",
        "an injected clock, a day ahead and back, under a running orchestrator and at a start; a "
        "client whose wall clock jumps",
        "nothing fades, expires or is trimmed by it; leases, deadlines and breaker unmoved",
    ),
    "P13": Promise(
        "a wrong key gets nothing",
        "no key, an unknown, a revoked, another's; every operation; CURVE and bearer keys",
        "nothing delivered; each attempt in the audit log, repeated ones summed in one line",
    ),
    "P14": Promise(
        "namespaces are walls",
        "every operation by every stranger in another's namespace, after the owner filled the "
        "caches; with export, feed and idempotent replay; on SQLite and PostgreSQL",
        "no leak; absent and forbidden look the same",
    ),
    "P15": Promise(
        "the breaker opens on the Nth failure, lets one of 100 concurrent calls probe, closes on "
        "its success",
        "threads and asyncio, on a clock that is moved by hand",
        "exact",
    ),
    "P16": Promise(
        "a restart under 500 connected clients",
        "stopped and killed by turns while all of them write",
        "95 % answered again within 10 s of its being ready, all in the end, none lost",
    ),
    "P17": Promise(
        "a job has its effect once",
        "holders of a lease that fall silent and come back beside their successor; real schedulers "
        "stopped by SIGSTOP past their lease",
        "no double effect; each late write refused by its fence",
    ),
    "P18": Promise(
        "a backup taken under load restores",
        "backups beside four writers, each started elsewhere and compared",
        "all that was acknowledged before its start is there",
    ),
    "P19": Promise(
        "an upgrade is old or new, never between",
        "a database of every released schema, killed between the statements of a migration",
        "old or new each time, nothing lost, the next start finishes it",
    ),
    "P20": Promise(
        "SIGTERM drains",
        "under callers and long pipelines",
        "within 10 s, exit 0, each accepted write answered, nothing stored that was refused",
    ),
    "P21": Promise(
        "purge leaves nothing",
        "unique markers searched as bytes in database, log, segments, Redis and logs, at once, "
        "after more writes, restarts and kills",
        "no hit",
    ),
    "P22": Promise(
        "a changed audit log is noticed",
        "every column of entries edited; entries deleted, reordered, inserted, cut off, forged as "
        "a whole; at rest and in service; on SQLite and PostgreSQL",
        "each noticed, given the head",
    ),
    "P23": Promise(
        "what one source wrote can be taken back",
        "generated histories of several sources with summaries of them, killed in between",
        "all of the source and nothing else, and undone as a whole",
    ),
    "P24": Promise(
        "the HTTP side is closed to strangers",
        "foreign Host and Origin, forms of other pages, `../`, links, NUL, smuggled requests, slow "
        "and endless ones, at the gateway",
        "each refused; MCP, health and dashboard have tests of their own",
    ),
    "P25": Promise(
        "consolidation and decay destroy nothing",
        "invalid output of a model, kills amid a run and amid its undoing, a run past its limit",
        "no memory lost; undo restores all",
    ),
}
