"""Past decisions, in words and as JSON: what held at an instant, and what the numbers alone do not tell."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from planning.loop import berlin
from servingplan.errors import InputError
from servingplan.planning.ledger import Entry
from servingplan.reporting.ledger import PlanName, history_document, past, past_document, remarks
from servingplan.reporting.ledger_tables import history_view, past_view
from support.terminal import printed

PLAN = PlanName(namespace="llm", name="support-chat", zone=ZoneInfo("Europe/Berlin"))
STEP = {"name": "demand", "value": "2/s", "reason": "Base", "message": "base asks for 2/s"}


def entry(at: str, before: int | None, desired: int, **changes) -> Entry:
    fields = {
        "required": 2,
        "floor": desired,
        "current": desired,
        "ready": desired,
        "because": "base",
        "trail": (STEP,),
    }
    return Entry(time=berlin(f"2026-12-01T{at}"), generation=4, before=before, desired=desired, **{**fields, **changes})


DAY = (entry("07:48", 2, 5, because="ready before window"), entry("20:00", 5, 3, because="window ends"))


def test_a_past_decision_as_json_has_what_came_next():
    document = past_document(past(PLAN, DAY, berlin("2026-12-01T08:10")))
    assert document["at"] == "2026-12-01T07:10:00Z"
    assert document["timeZone"] == "Europe/Berlin"
    assert (document["entry"]["time"], document["entry"]["desired"]) == ("2026-12-01T06:48:00Z", 5)
    assert document["entry"]["trail"] == [STEP]
    assert (document["until"], document["next"]["because"]) == ("2026-12-01T19:00:00Z", "window ends")
    assert document["remarks"] == []
    assert "reason" not in document["entry"]


def test_the_last_decision_is_in_force_until_nobody_knows_when():
    document = past_document(past(PLAN, DAY, berlin("2026-12-01T21:00")))
    assert (document["until"], document["next"]) == (None, None)


@pytest.mark.parametrize(
    ("entries", "reason", "words"),
    [
        ((), "NoLedger", "llm/support-chat has no ledger, so nothing is known of Tue 1 Dec 06:00 CET"),
        (DAY, "BeforeLedger", "begins Tue 1 Dec 07:48 CET, after Tue 1 Dec 06:00 CET. Until then 2 were asked for."),
    ],
    ids=["no ledger", "before its first entry"],
)
def test_what_no_ledger_tells_is_one_sentence(entries, reason, words):
    with pytest.raises(InputError) as refused:
        past(PLAN, entries, berlin("2026-12-01T06:00"))
    (problem,) = refused.value.problems
    assert problem.reason == reason
    assert words in problem.message


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (
            (entry("08:00", 5, 5, reason="Suspended", note="nothing is written", current=3),),
            [
                "suspended since Tue 1 Dec 08:00 CET: nothing is written",
                "5 were asked for, 3 were set",
            ],
        ),
        (
            (
                entry("07:00", 3, 5, current=3),
                entry("08:00", 5, 5, reason="Invalid", note="no such zone", current=None, trail=()),
            ),
            [
                "invalid since Tue 1 Dec 08:00 CET: no such zone",
                "nothing could be decided: the 3 that were set stayed, as far as nobody else scaled",
            ],
        ),
        (
            (
                entry(
                    "08:00", 5, 5, reason="SecondWriter", note="kubectl writes replicas too, and last set 1", current=1
                ),
            ),
            [
                "not acting (SecondWriter) since Tue 1 Dec 08:00 CET: kubectl writes replicas too, and last set 1",
                "5 were asked for, 1 were set",
            ],
        ),
        (
            (entry("08:00", 5, 5, behind=berlin("2026-12-01T09:00")),),
            ["the clock had gone back: Tue 1 Dec 09:00 CET was written down before this"],
        ),
        (
            (entry("08:00", 5, 5), entry("20:00", 7, 5)),
            ["what came between this and Tue 1 Dec 20:00 CET was not written down"],
        ),
    ],
    ids=["suspended", "invalid", "another writer", "a clock that went back", "a gap"],
)
def test_what_the_numbers_do_not_tell_is_said(entries, said):
    assert list(remarks(past(PLAN, entries, berlin("2026-12-01T10:00")))) == said


def test_people_read_what_held_and_until_when():
    text = printed(past_view(past(PLAN, DAY, berlin("2026-12-01T08:10"))))
    assert "llm/support-chat  Tue 1 Dec 08:10 CET: 5 replicas, ready before window" in text
    assert "in force until Tue 1 Dec 20:00 CET (then 3, window ends)" in text
    assert "base asks for 2/s" in text


def test_where_nothing_was_done_the_title_says_why_and_not_why_more_was_asked_for():
    held = entry("08:00", 5, 5, reason="Suspended", note="nothing is written", current=3, because="window working-day")
    text = printed(past_view(past(PLAN, (held,), berlin("2026-12-01T08:10"))))
    assert "llm/support-chat  Tue 1 Dec 08:10 CET: 3 replicas, suspended" in text


def test_a_list_has_a_row_a_decision_in_the_zone_of_the_plan():
    suspended = entry("21:00", 3, 3, reason="Suspended", note="nothing is written", because="")
    rows = printed(history_view(PLAN, (*DAY, suspended))).splitlines()
    assert rows[2].split()[:7] == ["Tue", "1", "Dec", "07:48", "CET", "2", "→"]
    assert rows[4].endswith("Suspended: nothing is written")
    assert [found["desired"] for found in history_document(PLAN, DAY)["entries"]] == [5, 3]
