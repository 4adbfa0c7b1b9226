"""Processes held to a share of a core each, as if every one had a small machine of its own.

By Linux' control groups, of either version, where this process may make some: as root, or where
they were delegated to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

PERIOD_US = 20_000
ROOTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu"))


@contextmanager
def held(pids: Sequence[int], share: float) -> Iterator[bool]:
    """Each of some processes has so much of a core while inside; whether that can be done."""
    with ExitStack() as groups:
        try:
            for pid in pids:
                groups.enter_context(_group(pid, int(share * PERIOD_US)))
        except OSError as error:
            print(f"processes cannot be held to a share of a core: {error}", flush=True)
            groups.close()
            yield False
            return
        yield True


@contextmanager
def _group(pid: int, quota_us: int) -> Iterator[None]:
    """A control group with one process in it, which goes back where it came from."""
    root = next((root for root in ROOTS if _limits(root)), ROOTS[0])
    group = root / f"recollect-bench-{os.getpid()}-{pid}"
    group.mkdir()
    try:
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        if Path(f"/proc/{pid}").exists():
            (root / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def _limits(root: Path) -> bool:
    """Whether a hierarchy of control groups limits the processor."""
    controllers = root / "cgroup.subtree_control"
    if controllers.exists():
        return "cpu" in controllers.read_text().split()
    return (root / "cpu.cfs_quota_us").exists() or (root / "cpu.shares").exists()
