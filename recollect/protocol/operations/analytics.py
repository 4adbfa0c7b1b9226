"""The store as a whole: how it grows, what is used, what fades."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields


class AnalyticsOptions(Operation[records.Analytics], frozen=True, kw_only=True):
    days: Annotated[
        int, Meta(ge=1, le=365, description="How many days of growth, up to today.")
    ] = 30


@operation(access="admin", everywhere=True, http=("GET", "/v1/analytics"))
class Analytics(AnalyticsOptions, frozen=True):
    """How the store grows, what is used most and least, what fades within a week, and counts.

    A large store is judged by its newest memories; the answer says so."""

    namespace: fields.NamespaceFilter = None
