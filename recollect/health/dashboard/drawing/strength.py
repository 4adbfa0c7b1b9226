"""The strength of a memory as it was and will be, unless it is used again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from recollect.health.dashboard import theme, wording
from recollect.health.dashboard.drawing import charts

POINTS = 80


def strength_curve(memory: Mapping[str, Any], threshold: float) -> charts.Options:
    """From the last access until well behind the moment at which it fades."""
    start = wording.moment(memory["last_accessed_at"]) or datetime.now(UTC)
    stability_s: float = memory["stability_s"]
    now = datetime.now(UTC).timestamp()
    lifetime_s = stability_s * math.log(1 / threshold)
    begin = start.timestamp()
    end = max(begin + lifetime_s * 1.25, now + lifetime_s * 0.1)
    points = [
        [int(1000 * moment), round(math.exp(-max(0.0, moment - begin) / stability_s), 4)]
        for moment in (begin + (end - begin) * step / POINTS for step in range(POINTS + 1))
    ]
    dashed = {"type": "dashed", "width": 1.5}
    label = {"color": theme.MUTED, "fontSize": 11, "fontFamily": theme.FONT}
    curve = charts.line(
        "Strength",
        points,
        theme.ACCENT,
        areaStyle={"opacity": 0.1},
        markLine={
            "symbol": "none",
            "silent": True,
            "data": [
                {
                    "yAxis": threshold,
                    "lineStyle": {"color": theme.STATES["degraded"], **dashed},
                    "label": {"formatter": "fades", "position": "insideEndTop", **label},
                },
                {
                    "xAxis": int(now * 1000),
                    "lineStyle": {"color": theme.MUTED, **dashed},
                    "label": {"formatter": "now", "position": "end", **label},
                },
            ],
        },
    )
    return charts.plain(
        [curve],
        charts.time_axis(max=int(end * 1000), splitNumber=3),
        charts.value_axis("value => Math.round(value * 100) + ' %'", min=0, max=1, interval=0.25),
    )
