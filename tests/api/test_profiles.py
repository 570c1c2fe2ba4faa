"""profile.csv: all rows or all problems, each with its line."""

from __future__ import annotations

from decimal import Decimal

import pytest

from servingplan.api.resolve import resolve
from servingplan.errors import InvalidPlan
from servingplan.planning.plan import WEEKDAYS
from support.specs import config_maps, document, scheduled

PLAN = document(**scheduled(profile={"configMap": {"name": "week"}}))


def hourly(**replaced):
    """All 168 rows; `replaced` maps ``Mon_3`` to another line, or to None."""
    rows = {f"{day}_{hour}": f"{day},{hour},{hour}.5" for day in WEEKDAYS for hour in range(24)}
    lines = [line for line in {**rows, **replaced}.values() if line is not None]
    return "\n".join(["weekday,hour,requests_per_second", *lines])


def profile_of(text):
    return resolve(PLAN, config_maps({"week": {"profile.csv": text}})).profile


def complaints_about(text):
    with pytest.raises(InvalidPlan) as invalid:
        profile_of(text)
    assert {problem.path for problem in invalid.value.problems} == {"spec.schedule.profile.configMap.name"}
    assert {problem.reason for problem in invalid.value.problems} == {"InvalidProfile"}
    return [problem.message for problem in invalid.value.problems]


def test_a_week_of_hours_starts_on_monday_at_midnight():
    rates = profile_of(hourly(Mon_0="Mon,0,7", Sun_23="Sun,23,0.1")).rates
    assert len(rates) == 168
    assert rates[0] == 7
    assert rates[25] == Decimal("1.5")
    assert rates[167] == Decimal("0.1")


def test_a_week_of_ten_minutes_has_1008_rates():
    lines = [f"{day},{hour},{minute},{minute}" for day in WEEKDAYS for hour in range(24) for minute in range(0, 60, 10)]
    rates = profile_of("\n".join(["weekday,hour,minute,requests_per_second", *lines])).rates
    assert len(rates) == 1008
    assert list(rates[:7]) == [0, 10, 20, 30, 40, 50, 0]


def test_columns_blank_lines_and_line_ends_may_differ():
    lines = ["\ufeffrequests_per_second, hour, weekday", ""]
    lines += [f"1,{hour:02d},{day} " for day in WEEKDAYS for hour in range(24)]
    assert set(profile_of("\r\n".join(lines)).rates) == {1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("day,hour,rate\nMon,0,1", "line 1: the header must be", id="another header"),
        pytest.param(hourly(Mon_0="Monday,0,1"), "line 2: weekday 'Monday'", id="a weekday spelled out"),
        pytest.param(hourly(Mon_0="Mon,24,1"), "line 2: hour '24'", id="hour 24"),
        pytest.param(hourly(Mon_0="Mon,0,nan"), "line 2: requests_per_second nan", id="not a number"),
        pytest.param(hourly(Mon_0="Mon,0,-1"), "line 2: requests_per_second -1", id="a negative rate"),
        pytest.param(hourly(Mon_0="Mon,0,Infinity"), "line 2: requests_per_second Infinity", id="infinity"),
        pytest.param(hourly(Mon_0="Mon,0,many"), "line 2: requests_per_second 'many'", id="a word"),
        pytest.param(hourly(Mon_0="Mon,0"), "line 2: has 2 columns, not 3", id="too few columns"),
        pytest.param(hourly(Mon_1="Mon,0,1"), "line 3: Mon 00:00 is already in line 2", id="an hour twice"),
        pytest.param(hourly(Tue_3=None), "1 of 168 rows are missing (Tue 03:00)", id="an hour missing"),
        pytest.param("weekday,hour,requests_per_second", "168 of 168 rows are missing", id="only the header"),
    ],
)
def test_a_wrong_row_is_named_by_its_line(text, says):
    (message,) = complaints_about(text)
    assert says in message


def test_all_wrong_rows_are_named_at_once_up_to_a_limit():
    assert len(complaints_about(hourly(Mon_0="Mon,0,x", Tue_0="Tue,0,y"))) == 2
    many = complaints_about(hourly(**{f"Mon_{hour}": f"Mon,{hour},x" for hour in range(24)}))
    assert len(many) == 10
    assert "(and 14 more problems in it)" in many[-1]
