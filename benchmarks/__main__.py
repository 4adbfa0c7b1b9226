"""`python -m benchmarks`: every benchmark, one after the other, at sizes that take minutes.

Each can be run alone and at other sizes: `python -m benchmarks.search --sizes 1000000`.
"""

import os
import sys

from benchmarks import (
    ann,
    context,
    core,
    decay,
    feed,
    gateway,
    lexical,
    operational,
    postgres,
    recall,
    redis,
    search,
    sharing,
)

SIZE = ["--sizes", "100000"]


def main() -> bool:
    """Run all of them; whether every bound is met."""
    locomo = os.environ.get("LOCOMO")
    met = [
        core.main(),
        operational.main(),
        feed.main([]),
        gateway.main(),
        redis.main(),
        sharing.main(),
        decay.main([]),
        context.main([]),
        ann.main(SIZE),
        lexical.main(SIZE),
        search.main(SIZE),
        postgres.main([]),
        recall.main(["--locomo", locomo] if locomo else []),
    ]
    return all(met)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
