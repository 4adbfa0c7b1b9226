"""The last minutes of throughput and latency, from what the health manager saw anyway.

Each pair of looks is compared once, however many browsers show the curves.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from recollect.health.figures import Figures, Sample, figures_of, is_continued

EVERY_S = 2.0
WINDOW_S = 300.0
POINTS_MAX = 600
GAP_LOOKS = 4
"""So many looks without an answer, and the curve is broken rather than drawn on."""


class Point(msgspec.Struct, frozen=True):
    """What happened between two looks; all are None where the orchestrator did not answer."""

    at_ms: int
    requests_per_s: float | None = None
    failed_per_s: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


class Live:
    """Curves that grow with the manager's samples. Touched by the event loop alone."""

    def __init__(
        self, samples: Sequence[Sample], interval_s: float, now_s: Callable[[], float] = time.time
    ) -> None:
        self._samples = samples
        self._gap_s = interval_s * GAP_LOOKS + 1
        self._now_s = now_s
        self._seen_s = 0.0
        self._points: deque[Point] = deque(maxlen=POINTS_MAX)

    def points(self) -> list[Point]:
        """The curves up to now, the oldest point first."""
        for earlier, later in pairwise(self._samples):
            if later.at_s > self._seen_s:
                self._seen_s = later.at_s
                self._take(earlier, later)
        since_ms = (self._now_s() - WINDOW_S) * 1000
        return [point for point in self._points if point.at_ms >= since_ms]

    @property
    def now_ms(self) -> int:
        """The end of the axis."""
        return int(self._now_s() * 1000)

    def latest(self) -> Sample | None:
        """The last look, unless it is too long ago to say anything about now."""
        if not self._samples or self._now_s() - self._samples[-1].at_s > self._gap_s:
            return None
        return self._samples[-1]

    def _take(self, earlier: Sample, later: Sample) -> None:
        at_ms = int(later.at_s * 1000)
        if later.at_s - earlier.at_s > self._gap_s:
            self._points.append(Point(int(earlier.at_s * 1000) + 1))
        if is_continued(earlier.metrics, later.metrics):
            self._points.append(_point(at_ms, figures_of(earlier, later)))


def _point(at_ms: int, figures: Figures) -> Point:
    return Point(
        at_ms,
        figures["requests_per_s"],
        figures["failed_per_s"],
        figures["p50_ms"],
        figures["p95_ms"],
        figures["p99_ms"],
    )
