"""The figures by which the service is watched."""

from __future__ import annotations

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation


@operation(access="admin", everywhere=True, http=("GET", "/v1/metrics"))
class Metrics(Operation[records.Metrics], frozen=True):
    """Figures to watch the service by, cheap enough to be asked for every second.

    Durations are counted by operation since the start. Memories are counted beside the requests
    and not for each of them: `age_s` says how old their number is.
    """
