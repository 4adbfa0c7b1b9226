"""Errors waiting to be reported: counted by kind, bounded, never lost by a failed report."""

from __future__ import annotations

from recollect.client.reporting import (
    REPORT_INTERVAL_S,
    REPORT_KINDS_MAX,
    REPORT_PAUSE_S,
    ErrorBuffer,
    source_name,
)
from recollect.protocol.errors import ConnectionLost, RequestTimeout


class Clock:
    now_s = 10.0

    def __call__(self) -> float:
        return self.now_s


def test_errors_of_one_kind_are_counted_together() -> None:
    buffer = ErrorBuffer("tcp://x", Clock())
    assert not buffer.waiting
    for _ in range(7):
        buffer.add("get_memory", RequestTimeout("late"))
    buffer.add("add_memory", RequestTimeout("late"))
    assert buffer.waiting
    report = buffer.take("me")
    assert report is not None
    assert report.source == "me"
    assert [(e.code, e.context["operation"], e.count) for e in report.errors] == [
        ("timeout", "get_memory", 7),
        ("timeout", "add_memory", 1),
    ]
    assert not buffer.waiting


def test_one_report_is_under_way_and_the_next_waits_a_little() -> None:
    clock = Clock()
    buffer = ErrorBuffer("tcp://x", clock)
    buffer.add("get_memory", ConnectionLost("x"))
    assert buffer.take("me") is not None
    buffer.add("get_memory", ConnectionLost("x"))
    assert buffer.take("me") is None
    buffer.done(arrived=True)
    assert buffer.take("me") is None
    clock.now_s += REPORT_INTERVAL_S
    assert buffer.take("me") is not None


def test_what_did_not_arrive_is_kept_and_tried_again_after_a_pause() -> None:
    clock = Clock()
    buffer = ErrorBuffer("tcp://x", clock)
    buffer.add("get_memory", ConnectionLost("x"))
    assert buffer.take("me") is not None
    buffer.add("get_memory", ConnectionLost("x"))
    buffer.done(arrived=False)
    assert buffer.waiting
    assert buffer.take("me") is None
    clock.now_s += REPORT_PAUSE_S
    report = buffer.take("me")
    assert report is not None
    assert [error.count for error in report.errors] == [2]


def test_there_is_room_for_so_many_kinds_and_the_rest_is_counted() -> None:
    buffer = ErrorBuffer("tcp://x", Clock())
    for n in range(500):
        buffer.add(f"operation_{n}", ConnectionLost("x"))
    report = buffer.take("me")
    assert report is not None
    assert len(report.errors) == REPORT_KINDS_MAX
    assert report.errors[-1].code == "reports_dropped"
    assert sum(error.count for error in report.errors) == 500


def test_a_report_that_fails_does_not_report_itself() -> None:
    buffer = ErrorBuffer("tcp://x", Clock())
    buffer.add("report_errors", ConnectionLost("x"))
    assert not buffer.waiting


def test_the_source_names_the_agent_or_the_process() -> None:
    assert source_name("planner") == "client:planner"
    assert source_name(None).startswith("client:pid-")
    assert len(source_name("x" * 256)) == 256
