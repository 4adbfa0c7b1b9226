"""Writes recollect.proto from the declarations: `python -m recollect.gateway.grpc.generate`."""

from __future__ import annotations

from recollect.gateway.grpc.declared import declared_file
from recollect.gateway.grpc.numbers import numbered
from recollect.gateway.grpc.proto_file import PATH, kept, render
from recollect.protocol.operations import REGISTRY


def generated() -> str:
    """The file as it should be, with the numbers of the file that is there."""
    return render(numbered(declared_file(REGISTRY), kept()))


def main() -> None:
    """Write the file."""
    PATH.write_text(generated())


if __name__ == "__main__":
    main()
