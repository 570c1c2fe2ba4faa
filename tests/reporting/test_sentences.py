"""What a change changes in words: a reserve that is lost, more replicas, the days, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from servingplan.planning.plan import Bounds, Calendar, Override, Rate, Reserve, Total, TreatAs
from servingplan.reporting.difference import difference
from servingplan.reporting.local import DASH, TIMES
from servingplan.reporting.markdown import difference_markdown
from servingplan.reporting.outlook import coming_days
from servingplan.reporting.sentences import sentences
from servingplan.reporting.special_days import special_day_rows
from support.plans import a_plan, a_window

BERLIN = ZoneInfo("Europe/Berlin")
DECEMBER = datetime(2026, 12, 1, tzinfo=BERLIN)


def told(new, old=None, price=None):
    days = [coming_days(plan, DECEMBER, 7, price) for plan in (old or a_plan(), new)]
    return [plain(sentence) for sentence in sentences(difference(*days))]


def plain(text):
    return text.replace(DASH, "-").replace(TIMES, "x")


def window(**changes):
    return a_window(name="other", days=frozenset({3}), start=time(14), end=time(16), **changes)


CAPPED = a_plan(
    bounds=Bounds(minimum=1, maximum=5), windows=(a_window(), window(level=Rate(requests_per_second=Decimal(22))))
)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (CAPPED, "Thu 3 Dec, 14:00-16:00, loses its reserve (all 5 replicas are needed)."),
        (
            a_plan(windows=(a_window(), window(level=Total(replicas=7)))),
            "Thu 3 Dec, 14:00-16:00, needs 7 replicas instead of 5.",
        ),
        (
            a_plan(windows=(a_window(end=time(21)),)),
            "Mon-Fri x5, 20:00-21:00, needs 5 replicas instead of 2.",
        ),
        (a_plan(reserve=Reserve(replicas=2, quiet=1)), "Mon-Fri x5, 08:00-20:00, holds 6 replicas instead of 5."),
        (
            a_plan(reserve=Reserve(replicas=1, quiet=0)),
            "Tue-Thu x3, 20:00-08:00 +1d, loses its reserve (2 → 1 replicas).",
        ),
    ],
    ids=["bounds take the reserve", "more", "longer", "a larger reserve", "no reserve at night"],
)
def test_a_change_is_told_with_its_days_and_times(new, said):
    assert said in told(new)


def test_a_reserve_that_comes_is_told():
    assert "Mon-Fri x5, 08:00-20:00, gains a reserve of 1 (4 → 5 replicas)." in told(
        a_plan(), old=a_plan(reserve=Reserve(replicas=0, quiet=0))
    )


def test_the_last_sentence_is_what_it_costs_a_week():
    assert told(a_plan(windows=()))[-1] == "-183.5 GPU-hours a week (519.5 → 336.0)."
    priced = told(a_plan(windows=()), price=Decimal("2.5"))[-1]
    assert priced == "-183.5 GPU-hours a week (519.5 → 336.0), -458.75 at 2.5 a GPU-hour."


def test_what_changes_nothing_is_told_so():
    assert told(a_plan())[0] == "What is required in these days stays the same."


def test_markdown_escapes_what_a_plan_says():
    new = replace(CAPPED, name="a|b<c>")
    text = difference_markdown(difference(*(coming_days(plan, DECEMBER, 7) for plan in (a_plan(), new))))
    assert "a\\|b\\<c\\>" in text
    assert "<c>" not in text


def test_days_that_are_not_ordinary_stand_in_order():
    off = Calendar(name="holidays", dates=frozenset({date(2027, 3, 26)}), treat_as=TreatAs.BASE)
    sundays = Calendar(name="like", dates=frozenset({date(2027, 3, 29)}), treat_as=6)
    start, end = (datetime.fromisoformat(text) for text in ("2027-03-30T07:00", "2027-03-31T19:00"))
    launch = Override(name="launch", start=start, end=end, level=Total(replicas=7))
    plan = a_plan(calendars=(off, sundays), overrides=(launch,))
    outlook = coming_days(plan, datetime(2027, 3, 22, tzinfo=BERLIN), 14)
    assert special_day_rows(outlook) == (
        ("Fri 26 Mar", "calendar holidays", "no windows start: base"),
        ("Sun 28 Mar", "clock change", "02:00 becomes 03:00: the day lasts 23h"),
        ("Mon 29 Mar", "calendar like", "like Sun"),
        ("Tue 30 Mar", "override launch", "7 replicas from 07:00 to Wed 31 Mar 19:00"),
    )
