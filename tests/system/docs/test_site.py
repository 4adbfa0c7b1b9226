"""The documentation site, built as `make site` builds it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.forks import ROOT
from tests.harness.pages import PAGES
from website.staging import ROOT_PAGES

BUILT_WITHIN_S = 100


def test_the_site_is_built_without_a_warning_and_has_every_page(tmp_path: Path) -> None:
    if not shutil.which("zensical", path=str(Path(sys.executable).parent)):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("pip install 'recollect[docs]'")
    built = subprocess.run(
        [sys.executable, "-m", "website", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=BUILT_WITHIN_S,
        cwd=ROOT,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    site = tmp_path / "site"
    for name in PAGES:
        page = site / Path(ROOT_PAGES.get(name, Path(name).name)).with_suffix(".html")
        text = page.read_text()
        # Nothing is fetched from elsewhere by who reads it.
        assert 'src="http' not in text and 'rel="stylesheet" href="http' not in text
    assert json.loads((site / "search.json").read_text())
