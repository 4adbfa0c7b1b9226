"""Which operations work as runs is said once, and of all that do."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

from recollect.orchestrator import services
from recollect.orchestrator.consolidation.runs import RUN_KINDS
from recollect.protocol.operations import Undo

BEGINS_A_RUN = "_running.carry_out("


def sources() -> Iterator[str]:
    """The source text of every service."""
    for module in pkgutil.iter_modules(services.__path__, services.__name__ + "."):
        yield inspect.getsource(importlib.import_module(module.name))


def handlers() -> Iterator[Any]:
    for module in pkgutil.iter_modules(services.__path__, services.__name__ + "."):
        for _, service in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if service.__module__ == module.name:
                yield from (h for h in vars(service).values() if hasattr(h, "__handles__"))


def test_every_operation_that_begins_a_run_is_known_as_one() -> None:
    begin = [h for h in handlers() if BEGINS_A_RUN in inspect.getsource(h)]
    # None of them is begun where this test does not look.
    assert len(begin) == sum(source.count(BEGINS_A_RUN) for source in sources()) > 0
    named = {handler.__handles__[1].spec.name for handler in begin}
    assert named | {Undo.spec.name} == RUN_KINDS
