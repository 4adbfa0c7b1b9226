"""When a schedule comes next, and when it came last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger

from recollect.config.cron import WEEKDAYS, read_schedule

# How far back to look for the last moment of a schedule: not further than there is need to, since
# every moment on the way is gone through.
LOOKS_BACK = tuple(timedelta(hours=hours) for hours in (1, 26, 8 * 24, 32 * 24, 367 * 24, 8 * 8784))
INSTANT = timedelta(microseconds=1)


def trigger_of(schedule: str, timezone: str) -> BaseTrigger:
    """The trigger of a schedule. Its days of the week are named, not numbered, because APScheduler
    counts them from Monday."""
    read = read_schedule(schedule)
    zone = ZoneInfo(timezone)

    def cron(days: Sequence[int], weekdays: Sequence[int]) -> CronTrigger:
        return CronTrigger(
            minute=_listed(read.minutes),
            hour=_listed(read.hours),
            day=_listed(days) if days else "*",
            month=_listed(read.months),
            day_of_week=",".join(WEEKDAYS[day] for day in weekdays) if weekdays else "*",
            timezone=zone,
        )

    if read.days and read.weekdays:
        return OrTrigger([cron(read.days, ()), cron((), read.weekdays)])
    return cron(read.days, read.weekdays)


def next_moment(trigger: BaseTrigger, now: datetime) -> datetime | None:
    """The first moment after now."""
    found: datetime | None = trigger.get_next_fire_time(None, now + INSTANT)
    return found


def last_moment(trigger: BaseTrigger, after: datetime, now: datetime) -> datetime | None:
    """The last moment of a schedule that has come, if one has since another moment."""
    for back in LOOKS_BACK:
        start = max(after, now - back)
        found, moment = None, trigger.get_next_fire_time(None, start + INSTANT)
        while moment is not None and moment <= now:
            found, moment = moment, trigger.get_next_fire_time(None, moment + INSTANT)
        if found is not None or start == after:
            return found
    return None


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
