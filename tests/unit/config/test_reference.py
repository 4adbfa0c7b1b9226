"""The generated files say what the declarations say."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from recollect.config import Settings, load
from recollect.config.declarations import KEYS, SECTIONS, section_help
from recollect.config.environment import READ_ELSEWHERE, SHORT_NAMES
from recollect.config.reference import COLUMNS_MAX, render_markdown, render_yaml, write

ROOT = Path(__file__).resolve().parents[3]
REWRITE = "run `python -m recollect.config.reference`"


def test_the_shipped_yaml_file_is_current() -> None:
    shipped = (ROOT / "memory_config.yaml").read_text(encoding="utf-8")
    assert shipped == render_yaml(), REWRITE


def test_the_configuration_page_is_current() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == render_markdown(), REWRITE


def test_the_shipped_yaml_file_loads_to_exactly_the_defaults() -> None:
    assert load(ROOT / "memory_config.yaml", {}) == Settings()


def test_the_yaml_file_means_the_same_to_a_reader_of_older_yaml() -> None:
    assert yaml.safe_load(render_yaml()) == msgspec.json.decode(msgspec.json.encode(Settings()))


def test_writing_makes_both_files(tmp_path: Path) -> None:
    write(tmp_path)
    assert (tmp_path / "memory_config.yaml").read_text() == render_yaml()
    assert (tmp_path / "docs" / "configuration.md").read_text() == render_markdown()


@pytest.mark.parametrize("dotted", KEYS)
def test_every_key_has_help_that_is_a_sentence(dotted: str) -> None:
    help_text = KEYS[dotted].help
    assert help_text.endswith(".")
    assert help_text[0].isupper() or help_text[0] == "`"


@pytest.mark.parametrize(
    "dotted", [key.dotted for key in KEYS.values() if key.kind in (int, float)]
)
def test_every_number_is_bounded_on_both_sides(dotted: str) -> None:
    bounds = KEYS[dotted].bounds
    assert {"gt", "ge"} & bounds.keys()
    assert {"lt", "le"} & bounds.keys()


@pytest.mark.parametrize("dotted", KEYS)
def test_every_default_is_a_value_that_its_key_takes(dotted: str) -> None:
    key = KEYS[dotted]
    assert key.accept(key.default) == key.default


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_has_help(section: str) -> None:
    assert section_help(section).endswith(".")
    assert section_help(section) in render_markdown()


def test_the_page_names_every_key_and_variable() -> None:
    page = render_markdown()
    for key in KEYS.values():
        assert f"| `{key.name}` |" in page
        assert f"`{key.variable}`" in page
    for variable in {*SHORT_NAMES, *READ_ELSEWHERE}:
        assert f"| `{variable}` |" in page


def test_every_row_of_a_table_has_as_many_cells_as_its_heading() -> None:
    for table in render_markdown().split("\n\n"):
        if table.startswith("|"):
            counts = {row.replace("\\|", "").count("|") for row in table.strip().splitlines()}
            assert len(counts) == 1


def test_no_line_of_the_yaml_file_is_too_wide() -> None:
    assert max(map(len, render_yaml().splitlines())) <= COLUMNS_MAX
