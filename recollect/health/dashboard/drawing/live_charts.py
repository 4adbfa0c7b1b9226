"""Throughput and latency of the last minutes, as numbers and as curves that move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import ui

from recollect.health.dashboard import parts, theme, wording
from recollect.health.dashboard.drawing import charts
from recollect.health.dashboard.drawing.live import EVERY_S, WINDOW_S, Live

LATENCY_MS_MIN = 0.1
WINDOW_MS = int(WINDOW_S * 1000)


def numbers(live: Live) -> None:
    """What one wants to know first."""
    with parts.box("grid"):
        held = parts.stat("Memories", "—")
        pace = parts.stat("Requests", "—")
        wait = parts.stat("Latency, p95", "—")
        disk = parts.stat("Store on disk", "—")

    def show(place: tuple[ui.label, ui.label], value: str, note: str, hint: str = "") -> None:
        place[0].set_text(value)
        place[0].props["title"] = hint or value
        place[1].set_text(note)

    def refresh() -> None:
        latest = live.latest()
        if latest is None:
            for place in (held, pace, wait, disk):
                show(place, "—", "no answer")
            return
        metrics, points = latest.metrics, live.points()
        memories = metrics["memories"]
        total, homes = memories["total"], len(memories["by_namespace"])
        more = "more than " if memories["other_namespaces"] else ""
        where = f"in {more}{wording.plural(homes, 'namespace')}"
        show(held, wording.count(total), where, f"{total:,} memories")
        rate = points[-1].requests_per_s if points else None
        if rate is not None:
            in_flight = f"{metrics['requests']['in_flight']} in flight"
            show(pace, f"{wording.count(round(rate, 1))} /s", in_flight)
        p95 = next((p.p95_ms for p in reversed(points) if p.p95_ms is not None), None)
        if p95 is not None:
            lag = f"writer lag {wording.duration(metrics['writer']['lag_s'])}"
            show(wait, wording.duration(p95 / 1000), lag)
        free = metrics["disk"]["free_bytes"]
        stored = metrics["disk"]["database_bytes"] + metrics["disk"]["log_bytes"]
        show(disk, wording.size(stored), f"{wording.size(free)} free", f"{stored:,} bytes")

    refresh()
    ui.timer(EVERY_S, refresh, immediate=False)


def following(live: Live, options: Callable[[Live], charts.Options]) -> None:
    """A chart that is drawn anew at every sample, in its place."""
    chart = ui.echart(options(live)).classes("chart")

    def refresh() -> None:
        chart.options.update(options(live))
        chart.update()

    ui.timer(EVERY_S, refresh, immediate=False)


def throughput(live: Live) -> charts.Options:
    points = live.points()
    asked = [[point.at_ms, _rounded(point.requests_per_s)] for point in points]
    failed = [[point.at_ms, _rounded(point.failed_per_s)] for point in points]
    return charts.plain(
        [
            charts.line("Requests", asked, theme.ACCENT, areaStyle={"opacity": 0.12}),
            charts.line("Failed", failed, theme.SERIES[4]),
        ],
        _window(live),
        charts.value_axis(minInterval=1, min=0),
    )


def latency(live: Live) -> charts.Options:
    curves = (("p50", theme.SERIES[1]), ("p95", theme.SERIES[2]), ("p99", theme.SERIES[4]))
    series, shown = [], live.points()
    for name, colour in curves:
        points: list[Any] = [[p.at_ms, _latency(getattr(p, f"{name}_ms"))] for p in shown]
        series.append(charts.line(name, points, colour, connectNulls=True))
    # By powers of ten: what is usual stays readable beside what is not.
    scale = charts.value_axis(type="log", min=LATENCY_MS_MIN, minorSplitLine={"show": False})
    return charts.plain(series, _window(live), scale)


def _window(live: Live) -> charts.Options:
    """A span of fixed length, so that the curves move and the axis does not jump."""
    end = live.now_ms
    label = {"formatter": "{HH}:{mm}"}
    return charts.time_axis(min=end - WINDOW_MS, max=end, axisLabel=label, splitNumber=4)


def _latency(amount_ms: float | None) -> float | None:
    return None if amount_ms is None else round(max(LATENCY_MS_MIN, amount_ms), 3)


def _rounded(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 3)
