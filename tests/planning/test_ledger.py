"""The ledger: which entry was in force, since when, and the replicas that were set."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planning.loop import berlin
from servingplan.planning.ledger import Entry, after, entries_since, in_force, in_order, replicas_held

DAY = (
    Entry(time=berlin("2026-12-01T07:48"), generation=3, before=2, desired=5, current=5, because="ready before window"),
    Entry(time=berlin("2026-12-01T08:00"), generation=3, before=5, desired=5, current=5, because="window working-day"),
    Entry(time=berlin("2026-12-01T20:00"), generation=3, before=5, desired=4, current=4, because="window ends"),
)


@pytest.mark.parametrize(
    ("at", "because", "until"),
    [
        ("2026-12-01T07:48", "ready before window", "2026-12-01T08:00"),
        ("2026-12-01T07:59", "ready before window", "2026-12-01T08:00"),
        ("2026-12-01T08:00", "window working-day", "2026-12-01T20:00"),
        ("2026-12-03T00:00", "window ends", None),
    ],
    ids=["at its instant", "until the next", "at the next one's instant", "after the last"],
)
def test_an_entry_is_in_force_until_the_next(at, because, until):
    held = in_force(DAY, berlin(at))
    assert held is not None
    assert held.entry.because == because
    assert (held.following and held.following.time) == (until and berlin(until))


def test_nothing_is_in_force_before_the_first_entry():
    assert in_force(DAY, berlin("2026-12-01T07:47")) is None
    assert in_force((), berlin("2026-12-01T07:47")) is None


def test_entries_for_one_reason_in_a_row_are_one_state():
    entries = (
        Entry(time=berlin("2026-12-01T07:00"), generation=1),
        Entry(time=berlin("2026-12-01T09:00"), generation=2, reason="Suspended"),
        Entry(time=berlin("2026-12-01T10:00"), generation=2, reason="Suspended"),
        Entry(time=berlin("2026-12-01T11:00"), generation=3, reason="Invalid"),
    )
    since = [
        held.since for at in ("08:00", "10:30", "12:00") if (held := in_force(entries, berlin(f"2026-12-01T{at}")))
    ]
    assert since == [berlin(f"2026-12-01T{at}") for at in ("07:00", "09:00", "11:00")]


def test_a_gap_shows_where_the_next_entry_begins_at_other_replicas():
    gone = (DAY[0], DAY[2])
    assert [held.unwritten for at in ("07:50", "20:30") if (held := in_force(gone, berlin(f"2026-12-01T{at}")))] == [
        False,
        False,
    ]
    lost = (DAY[0], Entry(time=berlin("2026-12-01T21:00"), generation=3, before=3, desired=2))
    held = in_force(lost, berlin("2026-12-01T12:00"))
    assert held is not None
    assert held.unwritten


def test_an_entry_behind_the_newest_says_so_and_takes_its_place_in_time():
    late = after(DAY[-1].time, Entry(time=berlin("2026-12-01T19:00"), generation=3, desired=7))
    assert late.behind == DAY[-1].time
    assert after(DAY[-1].time, Entry(time=DAY[-1].time + timedelta(seconds=1), generation=3)).behind is None
    held = in_force(in_order((*DAY, late)), berlin("2026-12-01T19:30"))
    assert held is not None
    assert held.entry.desired == 7


def test_a_list_since_an_instant_begins_with_what_was_in_force_then():
    assert entries_since(DAY, berlin("2026-12-01T12:00")) == DAY[1:]
    assert entries_since(DAY, berlin("2026-12-01T06:00")) == DAY
    assert entries_since(DAY, berlin("2026-12-02T06:00")) == DAY[2:]


def test_replicas_stay_while_nobody_counts_them():
    broken = Entry(time=berlin("2026-12-01T12:00"), generation=4, before=5, desired=5, reason="Invalid")
    held = replicas_held((DAY[0], broken, DAY[2]), berlin("2026-12-02T00:00"))
    assert held is not None
    assert held.values == (5, 4)
    assert held.times == (DAY[0].time, DAY[2].time)
    assert replicas_held((broken,), berlin("2026-12-02T00:00")) is None
