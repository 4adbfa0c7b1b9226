"""`python -m benchmarks`: every benchmark, one after the other."""

import sys

from benchmarks import core

if __name__ == "__main__":
    sys.exit(0 if core.main() else 1)
