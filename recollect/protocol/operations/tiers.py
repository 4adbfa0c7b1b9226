"""Tiers: what is no longer of the moment moves on, and old things are summed up."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields


class MigrateOptions(Operation[records.TiersMigrated], frozen=True, kw_only=True):
    limit: Annotated[
        int, Meta(ge=1, le=fields.RUN_ITEMS_MAX, description="How many memories to move at most.")
    ] = 1000
    older_than_days: Annotated[
        Annotated[float, Meta(ge=0, le=36_500)] | None,
        Meta(description="Instead of the configured ages: older than this."),
    ] = None


@operation(access="write", http=("POST", "/v1/tiers:migrate"))
class Migrate(MigrateOptions, frozen=True):
    """Move memories on to the next tier: operational to working by age or number, working to
    long-term by age, where groups of related ones are summed up. A run that can be undone."""

    namespace: fields.NamespaceFilter = None
    from_tier: Annotated[
        Literal["operational", "working"] | None,
        Meta(description="Only out of this tier; out of both if absent."),
    ] = None
    dry_run: fields.DryRun = False
