"""The weights of the ranking are the same wherever they are written."""

from __future__ import annotations

import re
from pathlib import Path

from recollect.config.settings import RecallSettings
from recollect.orchestrator.assembly.searching import weights_of
from recollect.orchestrator.search.ranking import Weights

GUIDE = Path(__file__).parents[4] / "docs" / "search.md"
SHOWN_AS = {"turn_next": "turns", "turn_second": "turns", "recency_asked": "recency"}
UNSHOWN = {"context_words", "period_fade_days"}


def test_the_settings_have_the_weights_of_the_ranking() -> None:
    assert weights_of(RecallSettings()) == Weights()


def test_the_guide_shows_every_weight() -> None:
    shown = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", GUIDE.read_text(), re.M)
    weights = {
        (SHOWN_AS.get(name, name), f"{getattr(Weights(), name)}")
        for name in Weights.__struct_fields__
        if name not in UNSHOWN
    }
    assert set(shown) == weights
