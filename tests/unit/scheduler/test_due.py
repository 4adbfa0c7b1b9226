"""What waits to be run, and in which order."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from recollect.scheduler.due import Due, DueRuns

ONE, TWO = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 2))


def taken(*added: Due) -> list[Due]:
    async def take() -> list[Due]:
        runs = DueRuns()
        for due in added:
            runs.add(due)
        found = []
        try:
            async with asyncio.timeout(0.01):
                while True:
                    found.append(await runs.take())
        except TimeoutError:
            return found

    return asyncio.run(take())


def test_what_somebody_asked_for_comes_first_and_once() -> None:
    due, asked = Due("decay", ONE), Due("backup", job_run_id="r")
    assert taken(due, asked, asked) == [asked, due]


def test_moments_of_one_job_that_wait_are_one_run_for_the_last() -> None:
    late, backup = Due("decay", TWO), Due("backup", ONE)
    assert taken(Due("decay", ONE, "missed"), late, backup) == [late, backup]
    assert taken(late, Due("decay", ONE, "missed")) == [late]


def test_whoever_waits_is_woken() -> None:
    async def wait() -> Due:
        runs = DueRuns()
        waiting = asyncio.create_task(runs.take())
        await asyncio.sleep(0)
        runs.add(Due("decay", ONE))
        return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(wait()) == Due("decay", ONE)
