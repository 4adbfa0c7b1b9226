"""Stale documentation fails."""

from __future__ import annotations

import re
from pathlib import Path

from recollect.protocol import errors, reference
from recollect.protocol.operation import fields_of
from recollect.protocol.operations import REGISTRY

ROOT = Path(__file__).parents[2]


def test_the_operation_reference_is_current() -> None:
    assert (ROOT / reference.PATH).read_text() == reference.render(), "run `make docs`"


def test_every_field_of_every_operation_says_what_it_means() -> None:
    silent = [
        f"{name}.{field.name}"
        for name, cls in REGISTRY.items()
        for field in fields_of(cls)
        if not reference.description(field.type)
    ]
    assert silent == []


def test_every_error_is_drawn_in_the_tree_of_its_file() -> None:
    drawn = errors.__doc__ or ""
    for code, cls in errors.BY_CODE.items():
        assert cls.__name__ in drawn
        if not cls.__subclasses__():
            assert re.search(rf"\b{code}\b", drawn), code


def test_links_between_the_documents_lead_somewhere() -> None:
    broken = []
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md"), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []
