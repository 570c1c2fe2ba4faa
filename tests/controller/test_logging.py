"""Log lines: one line each, with the fields of the call and the demo clock."""

from __future__ import annotations

import io
import json
import logging
from datetime import datetime

import pytest

from servingplan.controller.clock import parse_demo_clock
from servingplan.controller.logging import set_up_logging

REAL = datetime.fromisoformat("2026-11-29T20:00:00+00:00")


@pytest.fixture
def lines():
    """Runs a block under the operator's logging, and restores what was there."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    quiet = {name: logging.getLogger(name).level for name in ("kopf", "aiohttp", "asyncio")}
    stream = io.StringIO()

    def start(**settings: object) -> io.StringIO:
        set_up_logging(stream=stream, **{"json_lines": True, "level": "info", **settings})
        return stream

    yield start
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in quiet.items():
        logging.getLogger(name).setLevel(before)


def test_a_json_line_has_the_message_and_the_fields(lines) -> None:
    stream = lines()
    logging.getLogger("servingplan.test").info(
        "reconciled %s", "llm/chat", extra={"fields": {"desired": 5, "at": REAL}}
    )
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "servingplan.test",
        "message": "reconciled llm/chat",
        "desired": 5,
        "at": "2026-11-29 20:00:00+00:00",
    }


def test_a_field_never_hides_what_every_line_has(lines) -> None:
    stream = lines()
    logging.getLogger("x").info("true", extra={"fields": {"message": "false", "level": "false"}})
    assert json.loads(stream.getvalue())["message"] == "true"


@pytest.mark.parametrize("json_lines", [True, False], ids=["json", "text"])
def test_a_message_with_line_breaks_stays_one_line(lines, json_lines: bool) -> None:
    stream = lines(json_lines=json_lines)
    logging.getLogger("x").info("one\ntwo", extra={"fields": {"said": "three\nfour"}})
    assert stream.getvalue().count("\n") == 1


def test_a_traceback_is_inside_the_json_line(lines) -> None:
    stream = lines()
    try:
        int("broken")
    except ValueError:
        logging.getLogger("x").exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert "ValueError: invalid literal" in json.loads(stream.getvalue())["error"]


def test_a_text_line_quotes_what_needs_it(lines) -> None:
    stream = lines(json_lines=False)
    logging.getLogger("x").warning("scaled", extra={"fields": {"because": "working day", "to": 5, "plan": "llm/chat"}})
    assert stream.getvalue().endswith('WARNING scaled because="working day" to=5 plan=llm/chat\n')


@pytest.mark.parametrize("json_lines", [True, False], ids=["json", "text"])
def test_the_demo_clock_is_in_every_line_while_it_is_on(lines, json_lines: bool) -> None:
    clock = parse_demo_clock("2026-12-01T06:30:00+01:00@60x", real_now=lambda: REAL)
    stream = lines(json_lines=json_lines, clock=clock)
    logging.getLogger("x").info("one")
    logging.getLogger("y").error("two")
    assert all("2026-12-01T05:30:00+00:00" in line for line in stream.getvalue().splitlines())


def test_the_usual_clock_is_not_mentioned(lines) -> None:
    stream = lines()
    logging.getLogger("x").info("one")
    assert "demoClock" not in stream.getvalue()


@pytest.mark.parametrize(
    ("level", "shown"), [("info", ["ours", "kopf warns"]), ("debug", ["ours", "kopf talks", "kopf warns"])]
)
def test_kopf_is_quiet_unless_debugging(lines, level: str, shown: list[str]) -> None:
    stream = lines(level=level)
    logging.getLogger("servingplan").info("ours")
    logging.getLogger("kopf.objects").info("kopf talks")
    logging.getLogger("kopf.objects").warning("kopf warns")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == shown
