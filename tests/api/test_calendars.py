"""Calendars: iCalendar or dates, read once for all years, and everything that can be wrong with them."""

from __future__ import annotations

from datetime import date

import pytest

from servingplan.api.calendars import FIRST_DATE, LAST_DATE
from servingplan.api.resolve import resolve
from servingplan.errors import InvalidPlan
from servingplan.planning.plan import Rate, TreatAs
from support.specs import config_maps, document, scheduled

HOLIDAYS = {"name": "holidays", "configMap": {"name": "days"}, "treatAs": "Base"}


def ics(*events):
    body = [line for event in events for line in ("BEGIN:VEVENT", *event, "END:VEVENT")]
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", *body, "END:VCALENDAR", ""])


def day(start, *more):
    return (f"UID:{start}", f"SUMMARY:On {start}", f"DTSTART;VALUE=DATE:{start}", *more)


def resolved(data, **calendar):
    plan = document(**scheduled(calendars=[{**HOLIDAYS, **calendar}]))
    return resolve(plan, config_maps({"days": data} if data is not None else {}))


def dates_of(text, key="calendar.ics"):
    return resolved({key: text}).calendars[0].dates


def problem_of(data):
    with pytest.raises(InvalidPlan) as invalid:
        resolved(data)
    (problem,) = invalid.value.problems
    assert problem.path == "spec.schedule.calendars[0].configMap.name"
    return problem


def test_an_all_day_event_is_its_date():
    assert dates_of(ics(day("20261225"))) == {date(2026, 12, 25)}


def test_the_end_of_an_event_is_not_part_of_it():
    assert dates_of(ics(day("20261225", "DTEND;VALUE=DATE:20261227"))) == {date(2026, 12, 25), date(2026, 12, 26)}


def test_a_yearly_event_is_expanded_over_all_known_years():
    expected = {date(year, 5, 1) for year in range(FIRST_DATE.year, LAST_DATE.year + 1)}
    assert dates_of(ics(day("19900501", "RRULE:FREQ=YEARLY"))) == expected


def test_exceptions_of_a_recurrence_are_left_out():
    text = ics(day("20260501", "RRULE:FREQ=YEARLY;COUNT=3", "EXDATE;VALUE=DATE:20270501"))
    assert dates_of(text) == {date(2026, 5, 1), date(2028, 5, 1)}


def test_an_event_that_began_before_the_known_years_covers_only_those():
    assert min(dates_of(ics(day("20231220", "DTEND;VALUE=DATE:20240103")))) == FIRST_DATE


def test_a_cancelled_event_does_not_count():
    assert dates_of(ics(day("20260501"), day("20260502", "STATUS:CANCELLED"))) == {date(2026, 5, 1)}


def test_a_timed_event_is_skipped_with_a_warning():
    timed = ("UID:t", "SUMMARY:Meeting", "DTSTART:20260501T100000Z", "DTEND:20260501T110000Z")
    plan = resolved({"calendar.ics": ics(day("20260502"), timed)})
    assert plan.calendars[0].dates == {date(2026, 5, 2)}
    (warning,) = plan.warnings
    assert warning.path == "spec.schedule.calendars[0].configMap.name"
    assert "'Meeting' is skipped" in warning.message


def test_a_timed_event_that_recurs_every_second_costs_nothing():
    timed = ("UID:t", "DTSTART:20240101T000000Z", "RRULE:FREQ=SECONDLY")
    assert dates_of(ics(day("20260502"), timed)) == {date(2026, 5, 2)}


def test_dates_are_one_a_line_with_comments():
    assert dates_of("# ours\n2026-12-28   # Monday\n\n2026-12-29\n", "dates") == {
        date(2026, 12, 28),
        date(2026, 12, 29),
    }


@pytest.mark.parametrize(
    ("data", "reason", "says"),
    [
        pytest.param(None, "ConfigMapNotFound", "create it", id="no ConfigMap"),
        pytest.param({}, "ConfigMapKeyMissing", "keys there: none", id="no key"),
        pytest.param({"holidays.ics": "x"}, "ConfigMapKeyMissing", "binaryData is not read", id="another key"),
        pytest.param({"calendar.ics": " \n"}, "ConfigMapEmpty", "is empty", id="an empty key"),
        pytest.param({"calendar.ics": "no calendar"}, "InvalidCalendar", "cannot be read", id="no iCalendar"),
        pytest.param({"calendar.ics": ics()}, "CalendarEmpty", "no date", id="no event"),
        pytest.param(
            {"calendar.ics": ics(("UID:t", "DTSTART:20260501T100000Z"))}, "CalendarEmpty", "all-day", id="only times"
        ),
        pytest.param(
            {"calendar.ics": ics(day("20260501", "RRULE:FREQ=HOURLY"))}, "InvalidCalendar", "daily", id="hourly"
        ),
        pytest.param({"dates": "# none yet"}, "CalendarEmpty", "no date", id="only comments"),
        pytest.param({"dates": "2026-02-30"}, "InvalidCalendar", "line 1: '2026-02-30'", id="no such date"),
        pytest.param({"dates": "25.12.2026"}, "InvalidCalendar", "2026-12-25", id="another format"),
        pytest.param({"dates": "2026-05-01", "validUntil": "soon"}, "InvalidCalendar", "'soon'", id="no such end"),
    ],
)
def test_a_calendar_that_cannot_be_used_says_what_to_do(data, reason, says):
    problem = problem_of(data)
    assert problem.reason == reason
    assert says in problem.message


def test_a_calendar_that_ran_out_resolves_and_says_until_when_it_was_valid():
    plan = resolved({"dates": "2024-12-25", "validUntil": "2024-12-31\n"})
    assert plan.calendars[0].valid_until == date(2024, 12, 31)


def test_a_calendar_is_never_known_beyond_the_last_expanded_date():
    plan = resolved({"dates": "2026-12-25", "validUntil": "9999-12-31"})
    assert plan.calendars[0].valid_until == LAST_DATE


def test_what_a_calendar_means():
    data = {"dates": "2026-05-01"}
    assert resolved(data).calendars[0].treat_as is TreatAs.BASE
    assert resolved(data, treatAs="Sun").calendars[0].treat_as == 6
    with_rate = document(**scheduled(calendars=[{**HOLIDAYS, "treatAs": None, "requestsPerSecond": 3}]))
    assert resolve(with_rate, config_maps({"days": data})).calendars[0].treat_as == Rate(requests_per_second=3)
