"""Colours and the stylesheet: one palette for the pages and for their charts.

Charts are drawn on a canvas, which knows nothing of the page's variables. Their colours are of a
middle lightness, so that one set reads well on light and on dark.
"""

from __future__ import annotations

from pathlib import Path

ASSETS = Path(__file__).parent / "assets"
ASSETS_PATH = "/_dashboard"
THEME_COOKIE = "recollect-theme"

ACCENT = "#5b74e8"
TIERS = {"short": "#e3a13c", "medium": "#5b8def", "long": "#35a287"}
SERIES = ("#5b74e8", "#35a287", "#e3a13c", "#b06ad6", "#e0637a", "#4aa8c9", "#8c9a3c", "#9a7b5c")
STATES = {"healthy": "#2f9e6e", "degraded": "#d9922b", "down": "#d6455d"}
MUTED = "#7d8798"
GRID = "rgba(125, 135, 152, 0.18)"
FONT = "Roboto, system-ui, sans-serif"

STATE_ICONS = {"healthy": "check_circle", "degraded": "warning", "down": "error"}
