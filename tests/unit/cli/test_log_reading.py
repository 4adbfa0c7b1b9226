"""Logs of several processes, shown as one."""

from __future__ import annotations

import json
from pathlib import Path

from recollect.cli.up.log_reading import LogFile, in_order, log_files, shown


def entry(at: str, event: str, **fields: object) -> str:
    return json.dumps({"event": event, "timestamp": at, "level": "info", **fields}) + "\n"


def folder_with(folder: Path, **logs: str) -> Path:
    (folder / "logs").mkdir(exist_ok=True)
    for name, text in logs.items():
        (folder / "logs" / f"{name}.log").write_text(text)
    return folder


def test_lines_of_all_logs_come_in_order_and_a_traceback_stays_where_it_was(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path,
        orchestrator=entry("2026-01-01T10:00:01Z", "first") + "Traceback\n  at once\n",
        health=entry("2026-01-01T10:00:02Z", "second", state="down"),
    )
    lines = in_order(line for log in log_files(folder) for line in log.last(10))
    texts = [shown(line).plain for line in lines]
    assert "first" in texts[0] and texts[1].endswith("Traceback") and "at once" in texts[2]
    assert "health" in texts[3] and texts[3].endswith("second state=down")
    assert [log.path.stem for log in log_files(folder, ["health"])] == ["health"]


def test_what_comes_is_read_on_also_after_the_log_was_begun_anew(tmp_path: Path) -> None:
    folder_with(tmp_path, up="one\ntwo\nthr")
    log = LogFile(tmp_path / "logs" / "up.log")
    assert [line.text for line in log.last(1)] == ["two"]
    with log.path.open("a") as file:
        file.write("ee\n")
    assert [line.text for line in log.new()] == ["three"]
    assert log.new() == []
    log.path.write_text("anew\n")
    assert [line.text for line in log.new()] == ["anew"]


def test_what_a_log_holds_is_shown_and_never_obeyed(tmp_path: Path) -> None:
    folder_with(tmp_path, up=entry("2026-01-01T10:00:01Z", "\x1b[31mred", why="\x1b]0;title\x07"))
    [line] = LogFile(tmp_path / "logs" / "up.log").last(5)
    assert "\x1b" not in shown(line).plain
