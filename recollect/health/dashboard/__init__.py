"""The dashboard: pages in the browser, served by the health manager.

NiceGUI is imported where it is used, so that health works without it.
"""

from __future__ import annotations

from recollect.health.dashboard.mounting import mount

__all__ = ["mount"]
