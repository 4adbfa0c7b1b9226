"""Stale documentation fails: references, links, and code that is not tried."""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from pathlib import Path

import pytest

from recollect.config import Settings, load
from recollect.config.declarations import KEYS, SECTIONS
from recollect.models.errors import ModelError
from recollect.protocol import errors, errors_page, explanations, reference
from recollect.protocol.operation import fields_of
from recollect.protocol.operations import REGISTRY
from tests.harness.forks import ROOT
from tests.harness.pages import PAGES, Block
from website.__main__ import CONFIGURATION, named
from website.staging import ROOT_PAGES

RUN = {"python", "sh"}
"""Languages whose blocks are run, by tests/system/docs."""
READ = {"yaml", "json", "ini", "toml"}
"""Languages whose blocks are read here."""
SHOWN = {"text"}
"""What is printed somewhere, and drawings."""
NOT_RUN_MAX = 12
"""So many blocks in all may say why no test runs them."""


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


@pytest.mark.parametrize("name", PAGES)
def test_every_link_of_a_page_leads_to_a_file_and_to_a_heading_in_it(name: str) -> None:
    page = PAGES[name]
    broken = []
    for link in page.links:
        if re.match(r"[a-z]+:", link):
            continue  # the world outside is not ours to test
        target, _, anchor = link.partition("#")
        led = (page.path.parent / target).resolve() if target else page.path
        if not led.exists() or not led.is_relative_to(ROOT):
            broken.append(link)
        elif anchor:
            there = PAGES.get(led.relative_to(ROOT).as_posix())
            broken += [] if there and anchor in there.anchors else [link]
    assert broken == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_that_is_named_to_who_changes_the_program_is_there(name: str) -> None:
    text = PAGES[name].path.read_text()
    paths = re.findall(r"`((?:recollect|tests|benchmarks|website)/[\w/.]*)`", text)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", [name for name in PAGES if name != "CHANGELOG.md"])
def test_every_setting_that_a_page_names_is_one(name: str) -> None:
    named = re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)(?:: [^`]*)?`", PAGES[name].path.read_text())
    files = (".json", ".py", ".md", ".yaml", ".jsonl", ".key", ".log", ".db")
    unknown = {
        setting
        for setting in named
        if setting.partition(".")[0] in SECTIONS and not setting.endswith(files)
    }
    assert unknown - KEYS.keys() - SECTIONS.keys() == set()


def test_the_page_about_jobs_has_every_job() -> None:
    table = PAGES["docs/jobs.md"].path.read_text()
    assert [job for job in Settings().jobs.__struct_fields__ if f"\n| `{job}` |" not in table] == []


def test_every_page_has_its_place_on_the_site() -> None:
    nav = tomllib.loads(CONFIGURATION.read_text())["project"]["nav"]
    there = {ROOT_PAGES.get(name, Path(name).name) for name in PAGES}
    placed = named(nav)
    assert len(placed) == len(set(placed))
    assert there - set(placed) == set(), "give these a place in website/zensical.toml"
    assert set(placed) <= there


def test_every_block_is_of_a_kind_that_is_tried_or_says_why_it_is_not() -> None:
    known = RUN | READ | SHOWN
    unknown = [
        f"{page.name}:{block.line}: {block.language!r}"
        for page in PAGES.values()
        for block in page.blocks
        if block.language not in known
    ]
    assert unknown == []
    marked = [
        f"{page.name}:{block.line}: {block.not_run}"
        for page in PAGES.values()
        for block in page.blocks
        if block.not_run is not None
    ]
    assert len(marked) <= NOT_RUN_MAX, marked


def read(block: Block, folder: Path) -> None:
    """Take a block for what its language says; raises if it is not that."""
    if block.language == "yaml":
        (folder / "memory_config.yaml").write_text(block.source)
        load(folder / "memory_config.yaml", {})
    elif block.language == "json":
        # Several values may follow one another, as lines of a file do.
        rest = block.source.strip()
        while rest:
            _, end = json.JSONDecoder().raw_decode(rest)
            rest = rest[end:].lstrip()
    elif block.language == "ini":
        configparser.ConfigParser().read_string(block.source)
    else:
        tomllib.loads(block.source)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (page.name, place)
        for page in PAGES.values()
        for place, block in enumerate(page.blocks)
        if block.language in READ and block.not_run is None
    ],
)
def test_settings_and_data_in_the_pages_are_valid(name: str, place: int, tmp_path: Path) -> None:
    read(PAGES[name].blocks[place], tmp_path)


def test_the_page_of_error_codes_is_current() -> None:
    assert (ROOT / errors_page.PATH).read_text() == errors_page.render(), "run `make docs`"


def test_every_code_that_anybody_can_meet_is_explained() -> None:
    models = {cls.code for cls in _below(ModelError)}
    commands = set()
    for path in (ROOT / "recollect" / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Failure":
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    commands.add(first.value)
    assert len(commands) > 20
    assert explanations.BY_CODE.keys() == errors.BY_CODE.keys() | models | commands
    for one in explanations.BY_CODE.values():
        assert one.meaning and one.causes and one.steps and one.example, one.code


def _below(cls: type[errors.RecollectError]) -> list[type[errors.RecollectError]]:
    return [cls, *(one for child in cls.__subclasses__() for one in _below(child))]
