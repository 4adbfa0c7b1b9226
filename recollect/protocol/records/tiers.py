"""The shape of a migration between tiers."""

from __future__ import annotations

from typing import TypedDict


class SummaryMade(TypedDict):
    """A group of memories that was summed up."""

    summary_id: str | None
    """None in a dry run."""
    source_ids: list[str]
    text: str


class TiersMigrated(TypedDict):
    status: str
    run_id: str | None
    """None in a dry run, and if there was nothing to do."""
    dry_run: bool
    to_working: int
    """Moved from operational to working memory."""
    to_longterm: int
    """Moved from working to long-term memory as they are."""
    summarised: int
    """Summed up, and archived behind their summary."""
    summaries: list[SummaryMade]
    examined: int
    complete: bool
    """Whether all that was due is done; if not, the same again goes on."""
    resumed: bool
    """Whether it went on with a run that had been broken off."""
