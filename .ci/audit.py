"""Asks whether anything that is locked is known to be vulnerable: `python .ci/audit.py LOCK…`.

Exits with 1 if so. Where no source of advisories can be reached, that is said loudly, and it exits
with 0: nothing was found out, for good or ill.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SOURCES = ("pypi", "osv")
WITHIN_S = 600


def ask(lock: Path, source: str) -> tuple[list[str], int, int]:
    """What is vulnerable, how many packages were looked up, and how many could not be."""
    command = ["-m", "pip_audit", "-r", str(lock), "--require-hashes", "--disable-pip"]
    done = subprocess.run(
        [sys.executable, *command, "-s", source, "-f", "json", "--progress-spinner", "off"],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    try:
        told = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return [], 0, 0
    found = [
        f"{one['name']} {one['version']}: {flaw['id']}, mended in {flaw['fix_versions'] or 'none'}"
        for one in told
        for flaw in one.get("vulns", ())
    ]
    looked_up = sum("skip_reason" not in one for one in told)
    return found, looked_up, len(told) - looked_up


def main() -> None:
    vulnerable = False
    for lock in map(Path, sys.argv[1:]):
        for source in SOURCES:
            found, looked_up, missed = ask(lock, source)
            if looked_up:
                break
        if not looked_up:
            print(f"*** {lock.name} WAS NOT AUDITED: no source of advisories can be reached. ***")
            continue
        print(f"{lock.name}: {looked_up} packages looked up at {source}, {missed} unknown there.")
        for text in found:
            print(f"  {text}")
        vulnerable |= bool(found)
    sys.exit(vulnerable)


if __name__ == "__main__":
    main()
