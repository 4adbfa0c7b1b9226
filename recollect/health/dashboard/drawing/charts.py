"""Options of the charts. Names that come from memories stand in values, never in keys: a key that
begins with a colon would be run as a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.health.dashboard.theme import FONT, GRID, MUTED

Options = dict[str, Any]
AXIS_TEXT = {"color": MUTED, "fontSize": 11, "fontFamily": FONT}


def tooltip(**more: Any) -> Options:
    """What is shown beside the pointer; its texts are escaped by the chart itself."""
    return {
        "trigger": "axis",
        "confine": True,
        "className": "chart-tip",
        "backgroundColor": "var(--surface)",
        "borderColor": "var(--line)",
        "borderWidth": 1,
        "padding": [8, 12],
        "textStyle": {"color": "var(--text)", "fontSize": 12, "fontFamily": FONT},
        "axisPointer": {"lineStyle": {"color": MUTED, "type": "dashed"}},
        **more,
    }


def legend(**more: Any) -> Options:
    return {
        "top": 0,
        "left": 0,
        "icon": "roundRect",
        "itemWidth": 10,
        "itemHeight": 10,
        "itemGap": 16,
        "inactiveColor": GRID,
        "textStyle": {"color": MUTED, "fontSize": 12, "fontFamily": FONT},
        **more,
    }


def value_axis(formatter: str | None = None, **more: Any) -> Options:
    """The axis of amounts. The formatter is a script of ours."""
    label: Options = dict(AXIS_TEXT)
    if formatter:
        label[":formatter"] = formatter
    return {
        "type": "value",
        "axisLabel": label,
        "splitLine": {"lineStyle": {"color": GRID}},
        "splitNumber": 4,
        **more,
    }


def category_axis(names: Sequence[str], **more: Any) -> Options:
    return {
        "type": "category",
        "data": list(names),
        "axisLabel": {**AXIS_TEXT, "hideOverlap": True, **more.pop("axisLabel", {})},
        "axisLine": {"lineStyle": {"color": GRID}},
        "axisTick": {"show": False},
        **more,
    }


def time_axis(**more: Any) -> Options:
    return {
        "type": "time",
        "axisLabel": {**AXIS_TEXT, "hideOverlap": True, **more.pop("axisLabel", {})},
        "axisLine": {"lineStyle": {"color": GRID}},
        "axisTick": {"show": False},
        "splitLine": {"show": False},
        **more,
    }


def line(name: str, points: Sequence[Any], colour: str, **more: Any) -> Options:
    return {
        "name": name,
        "type": "line",
        "data": list(points),
        "showSymbol": False,
        "color": colour,
        "lineStyle": {"width": 2, "color": colour},
        "emphasis": {"disabled": True},
        **more,
    }


def bars(name: str, amounts: Sequence[float], colour: str, **more: Any) -> Options:
    return {
        "name": name,
        "type": "bar",
        "data": list(amounts),
        "color": colour,
        "barMaxWidth": 28,
        "itemStyle": {"borderRadius": 2},
        "emphasis": {"disabled": True},
        **more,
    }


def plain(series: Sequence[Options], x: Options, y: Options, **more: Any) -> Options:
    """A chart with two axes that does not move about while its values change."""
    return {
        "animation": False,
        "grid": {"left": 8, "right": 12, "top": 32, "bottom": 4, "containLabel": True},
        "tooltip": tooltip(),
        "legend": legend() if len(series) > 1 else {"show": False},
        "xAxis": x,
        "yAxis": y,
        "series": list(series),
        **more,
    }


def ring(parts: Mapping[str, float], colours: Mapping[str, str]) -> Options:
    """Shares of a whole."""
    return {
        "animation": False,
        "tooltip": tooltip(trigger="item", formatter="{b}: {c} ({d} %)"),
        "series": [
            {
                "type": "pie",
                "radius": ["62%", "88%"],
                "label": {"show": False},
                "emphasis": {"scale": False},
                "itemStyle": {"borderRadius": 3},
                "padAngle": 1.5,
                "data": [
                    {"name": name, "value": amount, "itemStyle": {"color": colours[name]}}
                    for name, amount in parts.items()
                ],
            }
        ],
    }
