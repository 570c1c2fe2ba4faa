"""Log lines: one JSON object a line, or text; with the demo clock's time in every line while that is on.

In: records of the standard library's logging. Out: lines on standard error. Fields that a call passes as
``extra={"fields": {...}}`` become keys.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from servingplan.controller.clock import Clock, SystemClock

FIELDS = "fields"


class _Formatter(logging.Formatter):
    """What both formats have in common. clock: shown when it is not the system's."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__()
        self._clock = clock or SystemClock()
        self._demo = bool(self._clock.describe())

    def shown_time(self) -> str | None:
        """Give the demo clock's time, to the second; None where the system's clock is used."""
        return self._clock.now().isoformat(timespec="seconds") if self._demo else None

    def trouble(self, record: logging.LogRecord) -> str:
        """Give the traceback, if the record has one."""
        if record.exc_info and record.exc_info[0] is not None:
            return self.formatException(record.exc_info)
        return record.exc_text or ""


class JsonFormatter(_Formatter):
    """One JSON object a line: time, level, logger, message, demoClock, then the fields of the call."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record as one line."""
        line: dict[str, Any] = {
            "time": _instant(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        shown = self.shown_time()
        if shown is not None:
            line["demoClock"] = shown
        fields = _fields(record)
        line |= {key: value for key, value in fields.items() if key not in line}
        trouble = self.trouble(record)
        if trouble:
            line["error"] = trouble
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(_Formatter):
    """For people: time, level, message, key=value; a traceback below."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record as a line, and a traceback below it."""
        shown = self.shown_time()
        clock = f" [demo clock {shown}]" if shown is not None else ""
        fields = "".join(f" {key}={_value(value)}" for key, value in _fields(record).items())
        message = record.getMessage().replace("\n", "\\n")
        trouble = self.trouble(record)
        line = f"{_instant(record)} {record.levelname:<7}{clock} {message}{fields}"
        return f"{line}\n{trouble}" if trouble else line


def set_up_logging(*, json_lines: bool, level: str, clock: Clock | None = None, stream: TextIO | None = None) -> None:
    """Send all log lines of the process to standard error, instead of wherever they went before.

    level: a name as in ``info``. kopf's and aiohttp's lines below warnings are left out unless level is debug.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(clock) if json_lines else TextFormatter(clock))
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    quiet = logging.NOTSET if level.lower() == "debug" else logging.WARNING
    for name in ("kopf", "aiohttp", "asyncio"):
        logging.getLogger(name).setLevel(quiet)


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields = getattr(record, FIELDS, None)
    return fields if isinstance(fields, Mapping) else {}


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return json.dumps(text, ensure_ascii=False) if any(c in text for c in ' "\n') and isinstance(value, str) else text
