"""The last hour of requests: means that survive restarts of engines, and silence while too little is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from planning.loop import berlin
from servingplan.planning.record import Record
from servingplan.planning.signals import Reading, Signals, Traffic
from support.signals import a_reading

START = berlin("2026-12-01T09:00")
MINUTE = timedelta(minutes=1)


def counting(at: datetime, finished: float, tokens: tuple[float, float] = (900, 200), hits: float = 0.25) -> Reading:
    """An engine that has finished so many requests, all alike."""
    reading = a_reading(at, arrived=finished, finished=finished, prompts=finished)
    return replace(
        reading,
        prompt_tokens=finished * tokens[0],
        output_tokens=finished * tokens[1],
        prefix_queries=finished * tokens[0],
        prefix_hits=finished * tokens[0] * hits,
    )


def heard(minutes: int, a_minute: float, record: Record | None = None, start: datetime = START) -> Record:
    record = record or Record()
    for minute in range(minutes + 1):
        at = start + minute * MINUTE
        record = record.heard([counting(at, minute * a_minute)], at)
    return record


def traffic(record: Record, at: datetime) -> Traffic | None:
    signals = record.signals(at, timedelta(seconds=90), ["a"])
    assert isinstance(signals, Signals)
    return signals.traffic


def test_after_an_hour_the_means_of_its_requests_are_known() -> None:
    found = traffic(heard(60, 10), START + 60 * MINUTE)
    assert found is not None
    assert found.input_tokens == pytest.approx(900)
    assert found.output_tokens == pytest.approx(200)
    assert found.prefix_hit_share == pytest.approx(0.25)


@pytest.mark.parametrize(("minutes", "a_minute"), [(59, 10), (60, 6)], ids=["too short", "too few requests"])
def test_less_says_nothing(minutes: int, a_minute: float) -> None:
    assert traffic(heard(minutes, a_minute), START + minutes * MINUTE) is None


def test_what_is_older_than_an_hour_does_not_count() -> None:
    record, base = heard(60, 10), 600
    for minute in range(1, 70):
        at = START + (60 + minute) * MINUTE
        more = counting(at, minute * 10, (90, 20), hits=1.0)
        before = counting(at, base)
        together = replace(
            more,
            arrived=more.arrived + base,
            finished=more.finished + base,
            prompts=(more.prompts or 0) + base,
            prompt_tokens=(more.prompt_tokens or 0) + (before.prompt_tokens or 0),
            output_tokens=(more.output_tokens or 0) + (before.output_tokens or 0),
            prefix_queries=(more.prefix_queries or 0) + (before.prefix_queries or 0),
            prefix_hits=(more.prefix_hits or 0) + (before.prefix_hits or 0),
        )
        record = record.heard([together], at)
    found = traffic(record, START + 129 * MINUTE)
    assert found is not None
    assert (found.input_tokens, found.prefix_hit_share) == (pytest.approx(90), pytest.approx(1.0))


def test_an_engine_that_starts_again_takes_nothing_from_the_means() -> None:
    record = heard(30, 20)
    for minute in range(1, 31):
        at = START + (30 + minute) * MINUTE
        record = record.heard([counting(at, minute * 20)], at)
    found = traffic(record, START + 60 * MINUTE)
    assert found is not None
    assert found.input_tokens == pytest.approx(900)


def test_what_a_version_does_not_say_is_not_known() -> None:
    record = Record()
    for minute in range(61):
        at = START + minute * MINUTE
        reading = replace(counting(at, minute * 10), output_tokens=None, prefix_queries=None, prefix_hits=None)
        record = record.heard([reading], at)
    found = traffic(record, START + 60 * MINUTE)
    assert found is not None
    assert (found.output_tokens, found.prefix_hit_share) == (None, None)
