"""Logging for every process: a sentence with structured fields, as JSON or for people."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

import structlog

from recollect.config.settings import LoggingSettings


class LossyStream:
    """A stream that drops what cannot be written: a full disk costs lines of the log, not more."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def configure_logging(settings: LoggingSettings, process: str) -> None:
    """Send logs to stderr or a file, in the configured form."""
    stream: TextIO = sys.stderr
    if settings.file is not None:
        path = Path(settings.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a", buffering=1)
    people = settings.format == "console" or (settings.format == "auto" and stream.isatty())
    renderer: Any = (
        structlog.dev.ConsoleRenderer() if people else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[settings.level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, LossyStream(stream))),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)
