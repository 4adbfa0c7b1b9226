"""When schedules come, and when they came last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.config import Settings
from recollect.scheduler.jobs import JOBS
from recollect.scheduler.triggers import last_moment, next_moment, trigger_of

SUNDAY = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "moment"),
    [
        ("*/15 * * * *", "2026-03-01T12:15"),
        ("@hourly", "2026-03-01T13:00"),
        ("30 3 * * *", "2026-03-02T03:30"),
        ("0 5 * * 0", "2026-03-08T05:00"),
        ("0 5 * * 7", "2026-03-08T05:00"),
        ("0 5 * * mon", "2026-03-02T05:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        # Either will do, as in cron.
        ("0 0 15 * 3", "2026-03-04T00:00"),
        ("0 0 3 * 5", "2026-03-03T00:00"),
    ],
)
def test_a_schedule_comes_when_cron_says(schedule: str, moment: str) -> None:
    assert next_moment(trigger_of(schedule, "UTC"), SUNDAY) == at(moment)


def test_a_schedule_is_read_in_its_time_zone() -> None:
    trigger = trigger_of("30 3 * * *", "Asia/Tokyo")
    assert next_moment(trigger, SUNDAY) == at("2026-03-01T18:30")


@pytest.mark.parametrize(
    ("schedule", "away", "moment"),
    [
        ("*/15 * * * *", timedelta(minutes=5), "2026-03-01T12:00"),
        ("*/15 * * * *", timedelta(days=400), "2026-03-01T12:00"),
        ("15 1 * * *", timedelta(days=3), "2026-03-01T01:15"),
        ("15 1 * * *", timedelta(hours=2), None),
        ("0 5 * * 6", timedelta(days=30), "2026-02-28T05:00"),
        ("0 0 1 1 *", timedelta(days=900), "2026-01-01T00:00"),
        ("0 0 29 2 *", timedelta(days=1500), "2024-02-29T00:00"),
    ],
)
def test_of_all_that_was_missed_the_last_moment_is_found(
    schedule: str, away: timedelta, moment: str | None
) -> None:
    found = last_moment(trigger_of(schedule, "UTC"), SUNDAY - away, SUNDAY)
    assert found == (None if moment is None else at(moment))


def test_a_moment_that_was_covered_is_not_found_again() -> None:
    trigger = trigger_of("@hourly", "UTC")
    assert last_moment(trigger, SUNDAY, SUNDAY) is None
    assert last_moment(trigger, SUNDAY, SUNDAY + timedelta(minutes=59)) is None
    later = SUNDAY + timedelta(minutes=60)
    assert last_moment(trigger, SUNDAY, later) == later


def test_every_job_has_settings_and_every_setting_a_job() -> None:
    assert JOBS.keys() == set(Settings().jobs.__struct_fields__)
    for name in JOBS:
        assert next_moment(trigger_of(getattr(Settings().jobs, name).schedule, "UTC"), SUNDAY)
