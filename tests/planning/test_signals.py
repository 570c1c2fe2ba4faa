"""Readings in, signals out: resets, pods that come and go, pauses, and values that make no sense."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.planning.reasons import Reason
from servingplan.planning.record import MINUTES_KEPT, TICKS_KEPT, Record
from servingplan.planning.signals import NoSignals, Reading, Signals, Within
from support.signals import Fleet, a_reading

START = datetime(2026, 12, 1, 9, tzinfo=UTC)
STALE = timedelta(seconds=90)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def heard(record: Record, now: datetime, *pods: str) -> Signals:
    signals = record.signals(now, STALE, pods or ("a",))
    assert isinstance(signals, Signals), signals
    return signals


def polled(seconds: int, every: int = 15, pod: str = "a", record: Record | None = None, **rates: float) -> Record:
    """A record of one pod whose counters rise evenly, polled until `seconds`."""
    record = record or Record()
    for at in range(0, seconds + 1, every):
        counters = {name: rate * at for name, rate in rates.items()}
        record = record.heard([a_reading(after(at), pod=pod, **counters)], after(at))
    return record


def test_one_reading_gives_gauges_and_no_rate():
    record = Record().heard([a_reading(START, arrived=1e9, running=7)], START)

    signals = heard(record, START)

    assert (signals.arrivals_2m, signals.arrivals_10m, signals.rejections) == (None, None, None)
    assert signals.in_flight == {"a": 7.0}
    assert (signals.in_flight_mean.value, signals.in_flight_mean.least) == (7.0, 0.0)


@pytest.mark.parametrize("every", [5, 15, 30, 60], ids=lambda s: f"each {s} s")
def test_rates_are_by_elapsed_time_whatever_the_scrape_interval(every):
    signals = heard(polled(900, every, arrived=4.0), after(900))

    assert signals.arrivals_2m is not None
    assert signals.arrivals_10m is not None
    assert signals.arrivals_2m.value == pytest.approx(4.0)
    assert signals.arrivals_10m.value == pytest.approx(4.0)
    assert signals.arrivals_2m.least == pytest.approx(4.0)


def test_two_and_ten_minutes_are_known_only_after_as_long():
    early, later = polled(105, arrived=4.0), polled(120, arrived=4.0)

    assert heard(early, after(105)).arrivals_2m is None
    assert heard(later, after(120)).arrivals_2m is not None
    assert heard(later, after(120)).arrivals_10m is None


def test_the_rate_now_is_the_largest_of_the_last_minute_two_and_five():
    rates = {240: 2.0, 420: 8.0, 540: 2.0, 585: 2.0, 660: 6.0}
    record, arrived = Record(), 0.0
    for at in range(0, 661, 15):
        record = record.heard([a_reading(after(at), arrived=arrived)], after(at))
        arrived += 15 * next(rate for until, rate in rates.items() if at < until or at == 660)

    now = heard(record, after(660)).arrivals_now

    # Six in the last minute; in five minutes: a minute of eight, three of two and the last.
    assert now == pytest.approx(6.0, abs=0.2)
    assert heard(polled(120), after(120)).arrivals_now is not None
    assert heard(polled(90), after(90)).arrivals_now is None


def test_whole_minutes_that_were_heard_are_told_for_three_hours():
    start = int(START.timestamp()) // 60
    short, long = heard(polled(615, arrived=4.0), after(615)), heard(polled(4 * 3600, arrived=4.0), after(4 * 3600))

    assert sorted(short.minutes) == list(range(start, start + 10))
    assert list(short.minutes.values()) == pytest.approx([240.0] * 10)
    assert sorted(long.minutes) == list(range(start + 60, start + 240))


def test_missed_polls_change_no_rate():
    record = Record()
    for at in (0, 15, 30, 45, 165, 180, 195):
        record = record.heard([a_reading(after(at), arrived=4.0 * at)], after(at))

    signals = heard(record, after(195))

    assert signals.arrivals_2m is not None
    assert signals.arrivals_2m.value == pytest.approx(4.0)
    assert signals.reach >= timedelta(seconds=120)


def test_a_poll_that_brings_the_same_sample_again_changes_nothing():
    record = polled(300, 30, arrived=4.0)
    again = record.heard([a_reading(after(300), arrived=4.0 * 300)], after(315))

    assert (again.ticks, again.gauges, again.last) == (record.ticks, record.gauges, record.last)


def test_what_waits_and_what_was_refused_has_arrived_too():
    signals = heard(polled(180, arrived=2.0, waiting=1.0, rejections=0.5), after(180))

    assert signals.arrivals_2m is not None
    assert signals.rejections is not None
    assert signals.arrivals_2m.value == pytest.approx(3.5)
    assert signals.rejections.value == pytest.approx(0.5)


def test_a_queue_that_drains_is_no_negative_arrival():
    record = Record()
    for at in range(0, 181, 15):
        reading = a_reading(after(at), waiting=1000.0 - at, arrived=0.5 * at)
        record = record.heard([reading], after(at))

    signals = heard(record, after(180))

    assert signals.arrivals_2m is not None
    assert signals.arrivals_2m.value == 0.0


def test_a_restarted_engine_counts_from_zero():
    record = polled(180, arrived=4.0)
    record = record.heard([a_reading(after(195), arrived=30.0)], after(195))
    record = record.heard([a_reading(after(210), arrived=90.0)], after(210))

    signals = heard(record, after(210))

    # 90 s at 4/s, then 30 and 60 requests after the start.
    assert signals.arrivals_2m is not None
    assert signals.arrivals_2m.value == pytest.approx((90 * 4 + 30 + 60) / 120)


def test_a_new_pod_brings_no_past():
    record = polled(180, arrived=4.0)
    for at in (195, 210):
        new = a_reading(after(at), pod="b", arrived=1e6)
        record = record.heard([a_reading(after(at), arrived=4.0 * at), new], after(at))

    signals = heard(record, after(210), "a", "b")

    assert signals.arrivals_2m is not None
    assert signals.arrivals_2m.value == pytest.approx(4.0)
    assert signals.first_heard["b"] == after(195)


def test_a_pod_younger_than_the_last_poll_counts_from_zero():
    record = polled(180, arrived=4.0)
    readings = [a_reading(after(195), arrived=4.0 * 195), a_reading(after(195), pod="b", arrived=60.0)]
    record = record.heard(readings, after(195), {"a": START, "b": after(185)})

    # The ticks up to 190 s: half of what the young pod counted in its ten seconds.
    signals = heard(record, after(195), "a", "b")
    assert signals.arrivals_2m is not None
    assert signals.arrivals_2m.value == pytest.approx(4.0 + 30 / 120)


def test_what_a_deleted_pod_served_still_arrived():
    record = Record()
    for at in range(0, 121, 15):
        both = [a_reading(after(at), pod=pod, arrived=2.0 * at) for pod in ("a", "b")]
        record = record.heard(both, after(at))
    for at in range(135, 181, 15):
        record = record.heard([a_reading(after(at), arrived=240 + 4.0 * (at - 120))], after(at))

    signals = heard(record, after(180))

    assert signals.arrivals_2m is not None
    assert signals.arrivals_2m.value == pytest.approx(4.0)
    assert set(signals.in_flight) == {"a"}


NONSENSE = {
    "NaN": {"arrived": math.nan},
    "infinite": {"waiting": math.inf},
    "negative": {"running": -1.0},
    "NaN in a gauge": {"running": math.nan},
}


@pytest.mark.parametrize("values", NONSENSE.values(), ids=NONSENSE)
def test_a_reading_that_is_no_number_is_named_and_not_counted(values):
    record = polled(180, arrived=4.0)
    record = record.heard([a_reading(after(195), **values)], after(195))

    signals = record.signals(after(195), STALE, ["a"])

    assert isinstance(signals, NoSignals)
    assert signals.reason is Reason.METRICS_INVALID
    assert "pod a" in signals.message


def test_optional_values_that_are_no_numbers_are_absent():
    broken = {"kv_usage": math.nan, "prompts": math.inf, "ttft": Within(below=math.nan, above=1, count=2)}
    signals = heard(Record().heard([a_reading(START, **broken)], START), START)

    assert (signals.kv_usage, signals.prompt_mean, signals.ttft) == (None, None, None)


def test_two_readings_of_one_pod_contradict_each_other():
    twice = [a_reading(START, running=3), a_reading(START, running=4)]
    signals = Record().heard(twice, START).signals(START, STALE, ["a"])

    assert isinstance(signals, NoSignals)
    assert signals.reason is Reason.METRICS_INVALID
    assert "several readings" in signals.message


def test_a_reading_from_the_future_is_not_believed():
    record = Record().heard([a_reading(after(600), running=3)], START)
    signals = record.signals(START, STALE, ["a"])

    assert isinstance(signals, NoSignals)
    assert signals.reason is Reason.METRICS_INVALID


def test_old_readings_are_stale():
    record = polled(180, arrived=4.0)

    assert isinstance(record.signals(after(270), STALE, ["a"]), Signals)
    stale = record.signals(after(271), STALE, ["a"])
    assert isinstance(stale, NoSignals)
    assert stale.reason is Reason.METRICS_STALE


def test_no_pods_and_no_readings_are_told_apart():
    nobody, silent = Record().signals(START, STALE, []), Record().signals(START, STALE, ["a"])

    assert isinstance(nobody, NoSignals)
    assert isinstance(silent, NoSignals)
    assert (nobody.reason, silent.reason) == (Reason.METRICS_AWAITED, Reason.METRICS_MISSING)


def test_some_pods_that_do_not_answer_are_named_and_the_others_count():
    signals = heard(polled(180, arrived=4.0), after(180), "a", "gone")

    assert set(signals.in_flight) == {"a"}
    assert {pod: why.reason for pod, why in signals.missing.items()} == {"gone": Reason.METRICS_MISSING}


def test_a_long_pause_starts_anew_instead_of_guessing():
    record = polled(180, arrived=4.0)
    record = record.heard([a_reading(after(1200), arrived=1e6)], after(1200))

    assert heard(record, after(1200)).arrivals_2m is None
    for at in range(1215, 1336, 15):
        record = record.heard([a_reading(after(at), arrived=1e6 + 3.0 * (at - 1200))], after(at))
    signals = heard(record, after(1335))
    assert signals.arrivals_2m is not None
    assert signals.arrivals_2m.value == pytest.approx(3.0)


def test_a_clock_that_goes_back_starts_anew():
    record = polled(180, arrived=4.0).heard([a_reading(after(-3600), arrived=1.0)], after(-3600))

    signals = heard(record, after(-3600))

    assert (signals.at, signals.arrivals_2m) == (after(-3600), None)


def test_a_sample_older_than_the_last_is_ignored():
    record = polled(180, arrived=4.0)
    back = record.heard([a_reading(after(170), arrived=4.0 * 170)], after(195))

    assert back.last == record.last


def test_pods_scraped_at_instants_of_their_own_add_up_to_the_whole():
    record = Record()
    for at in range(0, 301, 15):
        readings = [a_reading(after(at - lag), pod=f"p{lag}", arrived=2.0 * (at - lag + 20)) for lag in (0, 4, 9, 13)]
        record = record.heard(readings, after(at))

    signals = heard(record, after(300), "p0", "p4", "p9", "p13")

    assert signals.at == after(287)
    assert signals.arrivals_2m is not None
    assert signals.arrivals_2m.value == pytest.approx(8.0)


def test_even_arrivals_have_no_more_dispersion_than_chance():
    assert heard(polled(3600, arrived=10.0), after(3600)).dispersion == 1.0


def test_alternating_minutes_are_dispersed_and_one_change_of_level_hardly():
    bursty, ramped = Record(), Record()
    served = [0.0, 0.0]
    for at in range(0, 3601, 15):
        readings = [a_reading(after(at), arrived=total) for total in served]
        bursty = bursty.heard([readings[0]], after(at))
        ramped = ramped.heard([readings[1]], after(at))
        served[0] += 15 * (20 if (at // 60) % 2 else 10)
        served[1] += 15 * (2 if at < 1800 else 18)

    # Successive counts differ by 600 around 900: 600^2 / 2 / 900. The ramp: 960^2 / (2 x 59) / 600.
    assert heard(bursty, after(3600)).dispersion == pytest.approx(200.0, rel=0.02)
    assert heard(ramped, after(3600)).dispersion == pytest.approx(13.0, rel=0.05)


def test_attainment_has_bounds_where_the_limit_is_no_edge():
    record = Record()
    for at in range(0, 181, 15):
        histogram = Within(below=0.8 * at, above=0.9 * at, count=1.0 * at)
        record = record.heard([a_reading(after(at), ttft=histogram)], after(at))

    share = heard(record, after(180)).ttft

    assert share is not None
    assert (share.at_least, share.at_most, share.best) == pytest.approx((0.8, 0.9, 0.9))
    assert share.count == pytest.approx(120)


@pytest.mark.parametrize(
    ("quiet_for", "best"),
    [
        pytest.param(600, 1.0, id="a-burst-after-a-quiet-time"),
        pytest.param(540, 1.0, id="less-than-two-minutes-of-it"),
        pytest.param(400, 0.1, id="for-the-whole-window"),
    ],
)
def test_a_breach_must_fill_the_window_also_after_a_quiet_time(quiet_for, best):
    record = Record()
    for at in range(0, 631, 15):
        busy = max(0.0, at - quiet_for)
        histogram = Within(below=0.1 * busy, above=0.1 * busy, count=busy)
        record = record.heard([a_reading(after(at), ttft=histogram)], after(at))

    share = heard(record, after(630)).ttft

    assert share is not None
    assert (share.at_most, share.best) == pytest.approx((0.1, best))


def test_memory_is_bounded_over_a_day():
    record = Record()
    for at in range(0, 86_400, 60):
        readings = [a_reading(after(at), pod=f"p{at // 3600}", arrived=1.0 * at)]
        record = record.heard(readings, after(at))

    assert len(record.ticks) <= TICKS_KEPT + 2
    assert len(record.minutes) <= MINUTES_KEPT + 2
    assert len(record.last) <= 2
    assert len(record.first) == len(record.last)
    assert len(record.gauges) <= 3


def test_a_burst_of_twenty_seconds_lifts_the_mean_and_not_the_least():
    burst = (after(700), after(720))
    fleet = Fleet(now=START, pods=4, rate=lambda now: 60.0 if burst[0] <= now < burst[1] else 16.0)
    fleet.run(after(765))

    signals = fleet.signals()

    assert signals.arrivals_2m.value > 20
    assert signals.arrivals_2m.least == pytest.approx(16.0)


values = st.one_of(st.floats(), st.just(0.0), st.floats(0, 1e9))


@st.composite
def any_reading(draw: st.DrawFn) -> Reading:
    at = after(draw(st.integers(-600, 600)))
    names = ("running", "waiting", "arrived", "finished", "preemptions", "rejections", "prompts", "prompt_tokens")
    numbers = {name: draw(values) for name in names}
    within = Within(below=draw(values), above=draw(values), count=draw(values))
    return replace(a_reading(at, pod=draw(st.sampled_from("abc"))), **numbers, ttft=within, kv_usage=draw(values))


@given(st.lists(st.tuples(st.lists(any_reading(), max_size=4), st.integers(-300, 900)), max_size=8))
@settings(max_examples=150, deadline=None)
def test_any_readings_at_any_time_give_numbers_or_a_reason(polls):
    record = Record()
    for readings, at in polls:
        record = record.heard(readings, after(at))
        signals = record.signals(after(at), STALE, ["a", "b", "c"])
        if isinstance(signals, Signals):
            rates = (signals.arrivals_2m, signals.arrivals_10m, signals.rejections, signals.in_flight_mean)
            assert all(0 <= rate.least <= rate.value * (1 + 1e-9) + 1e-9 for rate in rates[:2] if rate is not None)
            assert all(math.isfinite(rate.value) and rate.value >= 0 for rate in rates if rate is not None)
            assert signals.dispersion >= 1
            assert math.isfinite(signals.dispersion)


@pytest.mark.parametrize(
    ("in_flight", "least"),
    [
        ((12, 12, 12, 12), 12.0),
        ((12, 13, 11, 10), 10.0),
        ((9, 11, 12, 9), 9.0),
        ((12, 12, 12, 7), 0.0),
        ((400, 400, 400, 390), 390.0),
        ((400, 400, 400, 370), 0.0),
    ],
    ids=["steady", "wavers", "one fewer in four", "worked off", "many, wavering", "many, worked off"],
)
def test_a_load_that_is_worked_off_does_not_last_and_one_that_wavers_by_chance_does(in_flight, least):
    record = Record()
    for index, running in enumerate(in_flight):
        record = record.heard([a_reading(after(15 * index), running=running)], after(15 * index))

    assert heard(record, after(45)).in_flight_mean.least == least
