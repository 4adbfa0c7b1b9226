"""Months and weekdays as people write them in English.

Named here, because Python's own names follow the language of the machine.
"""

from __future__ import annotations

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def month_number(name: str) -> int | None:
    """The number of a month by its name or the beginning of it, in any case."""
    lowered = name.lower()
    return next((n for n, full in enumerate(MONTHS, 1) if full.lower().startswith(lowered)), None)
