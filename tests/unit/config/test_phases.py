"""Workflows as they are written in the settings."""

from __future__ import annotations

import pytest

from recollect.config import ConfigError, load
from recollect.config.phases import PHASES, BadPhases, read_phases


def test_the_default_leads_from_the_backlog_to_done_and_back() -> None:
    following = read_phases(PHASES)
    assert next(iter(following)) == "backlog"
    assert following["done"] == ("backlog",)
    work = [phase for phase in following if phase not in ("done", "blocked")]
    assert all("blocked" in following[phase] for phase in work)
    assert set(following["blocked"]) == set(work)
    for phase, then in zip(work, [*work[1:], "done"], strict=True):
        assert then in following[phase]


def test_a_phase_may_lead_nowhere() -> None:
    assert read_phases(["a >  b ,b", "b >"]) == {"a": ("b",), "b": ()}
    assert read_phases(["only"]) == {"only": ()}


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "1 to 64 phases"),
        (["a"] * 65, "1 to 64 phases"),
        (["a", "a"], "twice"),
        (["a > a"], "follow itself"),
        (["a > b"], "no line of its own"),
        (["A > b"], "name of a phase"),
        (["a > b,", "b"], "name of a phase"),
        (["a > b > c", "b", "c"], "name of a phase"),
        ([""], "name of a phase"),
    ],
)
def test_what_is_no_workflow_is_refused(lines: list[str], complaint: str) -> None:
    with pytest.raises(BadPhases, match=complaint) as refused:
        read_phases(lines)
    assert refused.value.advice


def test_a_bad_workflow_is_refused_at_load_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"workflow.phases: leads from `todo` to `done`"):
        load(None, {"RECOLLECT_WORKFLOW_PHASES": "todo > done"})
    loaded = load(None, {"RECOLLECT_WORKFLOW_PHASES": "todo > done:done"})
    assert loaded.workflow.phases == ("todo > done", "done")
