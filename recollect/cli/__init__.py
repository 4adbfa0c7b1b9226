"""The command line: `recollect …`.

Its own packages come with the extra `server`; an installation of the client alone has none.
"""

from __future__ import annotations

import sys

INSTALL_HINT = "The command line needs more packages: pip install 'recollect[server]'"
INTERRUPTED = 130
EXTRA_MODULES = frozenset({"rich", "typer"})


def main() -> None:
    """Run the command that the arguments ask for, and exit with its code.

    What a command itself finds missing is said by `failures`, which needs Typer to be there.
    """
    try:
        from recollect.cli.app import run

        code = run()
    except ModuleNotFoundError as missing:
        name = (missing.name or "").partition(".")[0]
        if name not in EXTRA_MODULES:
            raise
        print(f"{INSTALL_HINT} (there is no module {name}).", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = INTERRUPTED  # While the modules were still coming in.
    sys.exit(code)
