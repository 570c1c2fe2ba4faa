"""The bill: what days cost in every line alike, and nobody saves by missing the objective."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from planning.loop import berlin
from servingplan.planning.ledger import Entry
from servingplan.profiling.served import Served, Within
from servingplan.reporting.bill import Bill, Line, Meets, bill_document
from servingplan.reporting.bill_html import page
from servingplan.reporting.bill_markdown import bill_markdown
from servingplan.reporting.bill_tables import bill_view
from servingplan.reporting.billing import actual_replicas, bill
from servingplan.reporting.local import after_days
from support.plans import a_plan
from support.terminal import printed

MONDAY = berlin("2026-11-23T00:00")
STEP = timedelta(minutes=5)
DAY = berlin("2026-12-01T00:00")


def planned_rate(at: datetime) -> float:
    """What the worked example expects: 18/s on working days from 08:00 to 20:00, else 2/s."""
    local = at.astimezone(a_plan().zone)
    return 18.0 if local.weekday() < 5 and 8 <= local.hour < 20 else 2.0


def served(start: datetime, hours: int, *, factor: float = 1.0, gap: range = range(0), **changes) -> Served:
    """What arrived and how it was served: 99.5 % within TTFT, all within TPOT, 99.9 % within E2EL."""
    instants = [start + n * STEP for n in range(hours * 12)]
    requests = [None if n // 12 in gap else planned_rate(at) * factor * 300 for n, at in enumerate(instants)]
    shares = {"ttft": 0.995, "tpot": 1.0, "e2el": 0.999}
    within = {
        name: [Within(at_least=share * 100, at_most=share * 100, count=100)] * hours for name, share in shares.items()
    }
    found = Served(start=start, step_s=300, requests=requests, within=within, replicas=[], queries=())
    return replace(found, **changes)


def entries(*points: tuple[str, int]) -> tuple[Entry, ...]:
    return tuple(Entry(time=berlin(at), generation=1, desired=count, current=count) for at, count in points)


def billed(start: datetime = DAY, hours: int = 24, *, written=(), seen: Served | None = None, **changes) -> Bill:
    end = start + timedelta(hours=hours)
    actual = actual_replicas(written, seen, start, end)
    return bill(a_plan(**changes), start, end, actual=actual, served=seen, gpu_hour=Decimal("2.5"))


def line(found: Bill, name: str) -> Line:
    return next(each for each in found.lines if each.name == name)


# ---- planned and flat ----


def test_the_worked_examples_week_is_what_its_plan_says():
    found = billed(MONDAY, 7 * 24)
    assert found.planned.required == 5 * 60 + 2 * 108 == 516
    assert found.planned.leading == pytest.approx(3.0)
    assert found.planned.trailing == pytest.approx(0.5)
    assert [(each.name, each.gpu_hours) for each in found.lines] == [
        ("planned", pytest.approx(519.5)),
        ("flat peak", pytest.approx(5 * 168)),
    ]
    assert found.cost(found.lines[0]) == pytest.approx(1298.75)


@pytest.mark.parametrize(("monday", "hours"), [("2026-10-19", 169), ("2026-03-23", 167)], ids=["autumn", "spring"])
def test_a_week_with_a_clock_change_has_its_hour_more_or_less(monday, hours):
    start = berlin(f"{monday}T00:00")
    end = after_days(start, 7, a_plan().zone)
    found = bill(a_plan(), start, end, actual=None, served=None, gpu_hour=None)
    assert found.hours == hours
    assert line(found, "flat peak").gpu_hours == pytest.approx(5 * hours)


# ---- what was set ----


def test_actual_hours_are_the_ledgers_replicas():
    found = billed(written=entries(("2026-11-30T20:00", 2), ("2026-12-01T06:00", 6), ("2026-12-01T18:00", 3)))
    assert line(found, "actual").gpu_hours == pytest.approx(6 * 2 + 12 * 6 + 6 * 3)
    assert "by the ledger" in line(found, "actual").what


def test_hours_before_the_ledger_begins_count_in_no_line():
    found = billed(written=entries(("2026-12-01T05:30", 2)))
    assert [(span.start, span.end, span.why) for span in found.left_out] == [
        (DAY, DAY + timedelta(hours=6), "replicas are not known")
    ]
    assert line(found, "actual").gpu_hours == pytest.approx(18 * 2)
    assert line(found, "flat peak").gpu_hours == pytest.approx(18 * 5)


def test_prometheus_tells_where_the_ledger_begins_later_and_its_gaps_count_in_no_line():
    kept = served(DAY, 24, replicas=[None if n // 12 == 3 else 4.0 for n in range(24 * 12)])
    found = billed(written=entries(("2026-12-01T12:00", 2)), seen=kept)
    assert "Prometheus, every 5m" in line(found, "actual").what
    assert line(found, "actual").gpu_hours == pytest.approx(23 * 4)
    again = billed(written=entries(("2026-11-30T12:00", 2)), seen=kept)
    assert "the ledger" in line(again, "actual").what


# ---- attainment ----


def test_hours_that_prometheus_did_not_keep_count_in_no_line():
    seen = served(DAY, 24, gap=range(10, 12))
    found = billed(written=entries(("2026-11-30T20:00", 5)), seen=seen)
    assert [(span.start, span.why) for span in found.left_out] == [
        (DAY + timedelta(hours=10), "Prometheus kept no arrivals")
    ]
    assert found.counted == 22
    assert line(found, "actual").gpu_hours == pytest.approx(22 * 5)
    assert line(found, "flat peak").gpu_hours == pytest.approx(22 * 5)
    measured = line(found, "actual").measured
    assert measured is not None
    assert measured.requests == 22 * 100


def test_what_was_measured_is_told_by_objective_and_together_as_bounds():
    found = billed(written=entries(("2026-11-30T20:00", 5)), seen=served(DAY, 24))
    measured = line(found, "actual").measured
    assert measured is not None
    assert measured.at_most == pytest.approx(0.995)
    assert measured.at_least == pytest.approx(0.994)
    assert line(found, "actual").meets is Meets.YES
    assert all(each.measured is None for each in found.lines if each.name != "actual")


@pytest.mark.parametrize(
    ("shares", "meets"),
    [
        ({"ttft": (0.995, 0.995), "tpot": (1.0, 1.0)}, Meets.YES),
        ({"ttft": (0.97, 0.98), "tpot": (1.0, 1.0)}, Meets.NO),
        ({"ttft": (0.98, 0.995), "tpot": (1.0, 1.0)}, Meets.UNCLEAR),
        ({"ttft": (0.995, 0.995), "tpot": (0.992, 0.992)}, Meets.UNCLEAR),
    ],
    ids=["kept", "missed", "a limit between edges", "misses of both together"],
)
def test_an_objective_is_kept_where_even_the_worst_case_keeps_it(shares, meets):
    within = {
        name: [Within(at_least=low * 100, at_most=high * 100, count=100)] * 24 for name, (low, high) in shares.items()
    }
    found = billed(written=entries(("2026-11-30T20:00", 5)), seen=served(DAY, 24, within=within))
    assert line(found, "actual").meets is meets


def test_an_objective_that_nobody_counted_may_be_anything():
    seen = served(DAY, 24)
    seen = replace(seen, within={**seen.within, "tpot": [None] * 24})
    measured = line(billed(written=entries(("2026-11-30T20:00", 5)), seen=seen), "actual").measured
    assert measured is not None
    assert (measured.at_least, measured.at_most) == (0.0, pytest.approx(0.995))


def test_without_histograms_nothing_is_measured_and_the_model_decides():
    seen = served(DAY, 24, within={"ttft": [None] * 24})
    actual = line(billed(written=entries(("2026-11-30T20:00", 5)), seen=seen), "actual")
    assert actual.measured is None
    assert actual.modelled == pytest.approx(1.0, abs=1e-3)
    assert actual.meets is Meets.YES


def test_whoever_spends_less_and_misses_is_marked_and_the_plan_is_not():
    found = billed(written=entries(("2026-11-30T20:00", 2)), seen=served(DAY, 24, within={}))
    assert (line(found, "planned").meets, line(found, "actual").meets) == (Meets.YES, Meets.NO)
    assert found.cheap_by_missing(line(found, "actual"))
    assert not found.cheap_by_missing(line(found, "planned"))
    assert not found.cheap_by_missing(line(found, "flat peak"))
    text = printed(bill_view(found))
    assert "no: cheaper by missing the objective" in text


def test_reactive_autoscalers_serve_the_same_arrivals_with_the_same_reserve():
    found = billed(seen=served(DAY, 24))
    names = [each.name for each in found.lines]
    assert names == ["planned", "flat peak", "HPA in-flight", "rate-reactive"]
    for name in names[2:]:
        reactive = line(found, name)
        # 4 x 12 + 1 x 12 hours of need, one in reserve, and some more to stay below capacity.
        assert 60 + 24 - 6 < reactive.gpu_hours < 120
        assert reactive.modelled is not None


def test_days_without_requests_have_no_attainment():
    found = billed(seen=served(DAY, 24, factor=0.0))
    assert [each.name for each in found.lines] == ["planned", "flat peak"]
    assert all(each.modelled is None for each in found.lines)


# ---- as people and programs read it ----


def test_the_table_says_what_is_left_out_and_what_the_figures_mean():
    found = billed(written=entries(("2026-11-30T20:00", 5)), seen=served(DAY, 24, gap=range(10, 12)))
    text = printed(bill_view(found))
    assert "llm/support-chat  Tue 1 Dec 2026 00:00 to Wed 2 Dec 2026 00:00, Europe/Berlin: 22 of 24 hours count" in text
    assert "Tue 1 Dec 10:00 CET to Tue 1 Dec 12:00 CET: Prometheus kept no arrivals" in text
    assert "ttft within 1s500ms 99.50 %" in text
    assert "99.40 % to 99.50 %" in text
    assert "275.00" in text


def test_the_markdown_has_the_same_rows():
    found = billed(written=entries(("2026-11-30T20:00", 5)), seen=served(DAY, 24))
    text = bill_markdown(found)
    rows = [row for row in text.splitlines() if row.startswith("| ")]
    assert len(rows) == 1 + len(found.lines)
    assert rows[0].split(" | ")[1:3] == ["GPU-hours", "cost"]
    assert "| actual | 120.0 | 300.00 |" in text


def test_the_page_marks_whoever_saves_by_missing_and_loads_nothing():
    text = page(billed(written=entries(("2026-11-30T20:00", 2)), seen=served(DAY, 24, within={}, gap=range(3, 4))))
    assert text.count('<tr class="missed">') == 1
    assert "cheaper by missing the objective" in text
    assert "Left out of all lines" in text
    assert "src=" not in text


def test_the_document_has_every_figure():
    document = bill_document(billed(written=entries(("2026-11-30T20:00", 5)), seen=served(DAY, 24)))
    assert (document["from"], document["to"]) == ("2026-12-01T00:00:00+01:00", "2026-12-02T00:00:00+01:00")
    assert (document["hours"], document["countedHours"], document["leftOut"]) == (24.0, 24.0, [])
    assert document["objective"] == {"goodputShare": 0.99}
    actual = document["lines"][1]
    assert (actual["name"], actual["gpuHours"], actual["cost"], actual["meetsObjective"]) == (
        "actual",
        120.0,
        300.0,
        "yes",
    )
    assert actual["measuredAttainment"]["byObjective"]["ttft"] == {"atLeast": 0.995, "atMost": 0.995}
