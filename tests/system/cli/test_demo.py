"""`recollect demo`: the story is told on a real system, and nothing of it is left behind."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from recollect.cli.demo import sample
from tests.system.cli.commands import ENDS_WITHIN_S, RECOLLECT, CommandLine, wait_for

NOW_US = 1_900_000_000_000_000


def count(text: str, what: str) -> int:
    """The number that stands before some words."""
    found = re.search(rf"(\d+) +{what}", text)
    assert found is not None, f"{what!r} is not in:\n{text}"
    return int(found[1])


def test_the_story_is_told_to_its_end_and_nothing_is_left(tmp_path: Path) -> None:
    places = {"TMPDIR": str(tmp_path), "RECOLLECT_NETWORK_BIND": "tcp://192.0.2.1:1"}
    told = CommandLine(tmp_path)("demo", "--no-wait", **places)
    assert told.code == 0, told
    assert "\x1b" not in told.out
    shown = " ".join(told.out.split())  # however it was wrapped
    for act in ("Remember and recall", "Recall", "Contradiction", "Decay", "A crash", "next task"):
        assert act in shown
    assert "The first ferry to Heron Island" in shown
    assert "The staging port is 8080" in shown, "the contradiction is shown"
    assert 'it answers: "The staging port is 8443"' in shown, "and settled"
    assert count(shown, "from short to medium") > 0
    assert count(shown, "into the archive") > 0
    assert count(shown, "writes were acknowledged before the kill") > 0
    assert count(shown, "are there") == count(shown, "were acknowledged in all")
    assert count(shown, "are lost") == count(shown, "are there twice") == 0
    assert "the database is whole" in shown
    assert f"is taken back, {count(shown, 'were acknowledged in all')} memories" in shown
    assert re.search(r"http://127\.0\.0\.1:\d+", shown), "the dashboard is named"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_cleans_up(tmp_path: Path, number: signal.Signals) -> None:
    output = tmp_path / "told.txt"
    folder = tmp_path / "temporary"
    folder.mkdir()
    with output.open("wb") as file:
        demo = subprocess.Popen(
            [*RECOLLECT, "demo"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=CommandLine(tmp_path).environment(TMPDIR=str(folder), PYTHONUNBUFFERED="1"),
        )
    try:
        wait_for(lambda: "The first result" in output.read_text(), output.read_text)
        children = psutil.Process(demo.pid).children(recursive=True)
        assert children, output.read_text()
        assert list(folder.iterdir()) != []
        demo.send_signal(number)
        assert demo.wait(ENDS_WITHIN_S) == 130
    finally:
        demo.kill()
    assert not any(child.is_running() for child in children)
    assert list(folder.iterdir()) == []
    assert "Traceback" not in output.read_text()


def test_the_sample_is_a_few_hundred_memories_of_one_team() -> None:
    lines = list(sample.lines())
    assert 200 <= len(lines) <= 400
    assert len({line.content for line in lines}) == len(lines)
    assert {line.tier for line in lines} == {"short", "medium", "long"}
    assert all(0 <= line.importance <= 1 and line.days >= 1 for line in lines)
    records = sample.records(NOW_US)
    assert len({record["id"] for record in records}) == len(records)
    assert all(r["created_us"] <= r["last_access_us"] <= NOW_US for r in records)
    assert any(record["fades_us"] < NOW_US for record in records), "some have faded"
