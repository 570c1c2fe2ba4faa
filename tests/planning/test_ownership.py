"""Who writes replicas: each case of a second writer, as a table and as an hour of resets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from servingplan.planning.observation import Scale
from servingplan.planning.ownership import CONTEST_ENDS_AFTER, Contest, FieldOwner, Verdict, judge

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def ours(minutes: float = 0) -> FieldOwner:
    return FieldOwner(manager="servingplan", time=NOON + minutes * MINUTE, ours=True)


def other(minutes: float = 0, manager: str = "kubectl") -> FieldOwner:
    return FieldOwner(manager=manager, time=NOON + minutes * MINUTE, ours=False)


def untimed(manager: str = "kubectl") -> FieldOwner:
    """As the server shows a write through ``/scale``."""
    return FieldOwner(manager=manager, time=None, ours=manager == "servingplan")


def scaled(after: int, minutes: float = 0, before: int = 2) -> Scale:
    return Scale(time=NOON + minutes * MINUTE, before=before, after=after, because="window working-day")


def a_contest(**changes: object) -> Contest:
    contest = Contest(manager="kubectl", since=NOON, last_write=NOON, value=1)
    return replace(contest, **changes)  # type: ignore[arg-type]


def judged(
    *,
    desired: int = 5,
    current: int,
    owners: Iterable[FieldOwner] = (),
    last_scale: Scale | None = None,
    contest: Contest | None = None,
    minutes: float = 1,
) -> Verdict:
    return judge(
        desired=desired,
        current=current,
        owners=tuple(owners),
        last_scale=last_scale,
        contest=contest,
        now=NOON + minutes * MINUTE,
    )


Narrative = tuple[int, int, tuple[FieldOwner, ...], Scale | None, int | None, bool, bool]
"""Desired, current, owners, our last scale; write, force, contested."""

NARRATIVES: dict[str, Narrative] = {
    "steady: nothing is written": (5, 5, (ours(),), scaled(5), None, False, False),
    "steady, before any scale of ours": (5, 5, (ours(),), None, None, False, False),
    "a rise": (5, 2, (ours(),), scaled(2), 5, False, False),
    "a fall step": (4, 5, (ours(),), scaled(5), 4, False, False),
    "first takeover, another value: forced": (5, 2, (other(-9),), None, 5, True, False),
    "first takeover, just written: forced, no contest": (5, 2, (other(0.9),), None, 5, True, False),
    "first takeover downwards: forced": (2, 5, (other(-9),), None, 2, True, False),
    "first takeover of the value that is there: owned with the other": (5, 5, (other(-9),), None, 5, False, False),
    "nobody owns the field": (5, 5, (), None, 5, False, False),
    "nobody owns the field before our first write: forced": (5, 2, (), None, 5, True, False),
    "scaled to zero, which leaves no owner: raised, forced": (5, 0, (), scaled(5), 5, True, True),
    "scaled below through /scale: raised, forced": (5, 1, (untimed(),), scaled(5), 5, True, True),
    "scaled above through /scale: owned with the other": (5, 8, (untimed(),), scaled(5), 8, False, True),
    "another's value that is ours too, and status knows of no contest": (
        5, 8, (untimed("servingplan"), untimed("gitops")), scaled(5), None, False, True,
    ),
    "scaled to our value through /scale: no contest": (
        5, 5, (untimed("servingplan"), untimed()), scaled(5), None, False, False,
    ),
    "a fall with such an owner beside us: forced": (
        4, 5, (untimed("servingplan"), untimed()), scaled(5), 4, True, False,
    ),
    "a value from before server-side apply is no writer": (
        5, 2, (untimed("before-first-apply"), untimed("servingplan")), scaled(2), 5, True, False,
    ),
    "an owner from before our scale: no contest": (4, 5, (ours(), other(-1)), scaled(5), 4, True, False),
    "an owner from before, at level": (5, 5, (ours(), other(-1)), scaled(5), None, False, False),
    "scaled below: raised, forced": (5, 1, (other(0.5),), scaled(5), 5, True, True),
    "scaled above: not lowered, owned with the other": (5, 8, (other(0.5),), scaled(5), 8, False, True),
    "scaled above and owned already: left": (5, 8, (other(0.5), ours()), scaled(5), None, False, True),
    "scaled to what is asked: owned with the other": (5, 5, (other(0.5),), scaled(2), 5, False, True),
    "another manager applies our value: left": (5, 5, (ours(), other(0.5)), scaled(5), None, False, True),
    "another manager holds our value during a fall: not lowered": (
        4, 5, (ours(), other(0.5)), scaled(5), None, False, True,
    ),
    "scaled in the very second of our scale: seen by the lost field": (
        5, 1, (other(0),), scaled(5), 5, True, True,
    ),
    "our own second write counts as ours": (5, 5, (ours(0.5),), scaled(5), None, False, False),
}  # fmt: skip


@pytest.mark.parametrize("narrative", NARRATIVES.values(), ids=NARRATIVES)
def test_a_write_goes_out_or_not(narrative: Narrative) -> None:
    desired, current, owners, last_scale, *outcome = narrative
    verdict = judged(desired=desired, current=current, owners=owners, last_scale=last_scale)
    assert [verdict.write, verdict.force, verdict.contest is not None] == outcome


def test_the_latest_of_several_writers_is_named() -> None:
    verdict = judged(current=1, owners=(other(0.7, "late"), other(0.2, "early")), last_scale=scaled(5))
    assert verdict.contest is not None
    assert verdict.contest.manager == "late"


def test_the_order_of_owners_never_matters() -> None:
    owners = (other(0.5, "a"), ours(), other(0.5, "b"))
    assert judged(current=8, owners=owners, last_scale=scaled(5)) == judged(
        current=8, owners=owners[::-1], last_scale=scaled(5)
    )


BACKOFF = {0: 0, 1: 10, 2: 60, 3: 300, 4: 900, 5: 900, 40: 900}


@pytest.mark.parametrize(("raises", "seconds"), BACKOFF.items(), ids=str)
def test_a_raise_waits_for_the_backoff(raises: int, seconds: int) -> None:
    contest = a_contest(raises=raises, last_raise=NOON if raises else None, last_write=NOON + 600 * SECOND)
    scale = scaled(5)
    due = NOON + seconds * SECOND
    early = judged(current=1, owners=(other(10),), last_scale=scale, contest=contest, minutes=(seconds - 1) / 60)
    on_time = judged(current=1, owners=(other(10),), last_scale=scale, contest=contest, minutes=seconds / 60)
    assert seconds == 0 or (early.write, early.again_at) == (None, due)
    assert (on_time.write, on_time.force) == (5, True)
    assert on_time.contest is not None
    assert (on_time.contest.raises, on_time.contest.last_raise) == (raises + 1, due)


def test_a_contest_ends_after_fifteen_quiet_minutes() -> None:
    contest = a_contest(raises=1, last_raise=NOON)
    before = judged(current=8, owners=(other(0), ours()), last_scale=scaled(5), contest=contest, minutes=14.99)
    after = judged(current=8, owners=(other(0), ours()), last_scale=scaled(5), contest=contest, minutes=15)
    assert (before.write, before.again_at) == (None, NOON + CONTEST_ENDS_AFTER)
    assert (after.write, after.force, after.contest) == (5, True, None)


def test_a_write_during_a_contest_prolongs_it_and_keeps_the_count() -> None:
    contest = a_contest(raises=3, last_raise=NOON)
    verdict = judged(current=8, owners=(other(14), ours()), last_scale=scaled(5), contest=contest, minutes=14)
    assert verdict.contest == replace(contest, last_write=NOON + 14 * MINUTE, value=8)
    assert verdict.again_at == NOON + 29 * MINUTE


@pytest.mark.parametrize("current", [5, 8], ids=["at level", "above"])
def test_an_ended_contest_does_not_begin_again_by_the_same_write(current: int) -> None:
    """Another manager that applied once and stays an owner makes `ReplicasOwned` False once, not every 15 minutes."""
    owners, contest, contests = (ours(), other(0.5)), None, []
    for minutes in range(1, 120):
        verdict = judged(
            desired=current,
            current=current,
            owners=owners,
            last_scale=scaled(current),
            contest=contest,
            minutes=minutes,
        )
        contest = verdict.contest
        contests.append(contest is not None)
    assert contests == [True] * 15 + [False] * 104


def test_an_old_write_found_after_a_restart_is_no_contest() -> None:
    verdict = judged(current=2, owners=(other(1),), last_scale=scaled(5), minutes=60)
    assert (verdict.write, verdict.force, verdict.contest) == (5, True, None)


def test_a_clock_that_went_back_delays_no_raise() -> None:
    contest = a_contest(raises=4, last_raise=NOON + 60 * MINUTE, since=NOON + 50 * MINUTE, last_write=NOON)
    verdict = judged(current=1, owners=(other(0.5),), last_scale=scaled(5), contest=contest)
    assert (verdict.write, verdict.force) == (5, True)


@dataclass(kw_only=True)
class Field:
    """``spec.replicas`` with its managers, as the API server keeps them: times in whole seconds of the real clock."""

    factor: int
    timed: bool = True
    value: int = 5
    managers: dict[str, datetime] = field(default_factory=lambda: {"servingplan": NOON})
    writes: list[timedelta] = field(default_factory=list)
    contest: Contest | None = None
    last_scale: Scale | None = None
    ever: set[bool] = field(default_factory=set)

    def real(self, elapsed: timedelta) -> datetime:
        return NOON + elapsed / self.factor

    def update(self, manager: str, value: int, elapsed: timedelta) -> None:
        """A write that takes the field, as ``kubectl scale`` and a forced apply do."""
        if value != self.value:
            self.managers.clear()
        self.managers[manager] = self.real(elapsed).replace(microsecond=0)
        self.value = value

    def owners(self) -> tuple[FieldOwner, ...]:
        """The managers with their times on the plan's clock."""
        return tuple(
            FieldOwner(manager=m, time=NOON + (t - NOON) * self.factor if self.timed else None, ours=m == "servingplan")
            for m, t in self.managers.items()
        )

    def reconcile(self, desired: int, elapsed: timedelta) -> Verdict:
        """Judge and write once."""
        now = NOON + elapsed
        verdict = judge(
            desired=desired,
            current=self.value,
            owners=self.owners(),
            last_scale=self.last_scale,
            contest=self.contest,
            now=now,
        )
        self.contest = verdict.contest
        self.ever.add(verdict.contest is not None)
        if verdict.write is not None:
            if verdict.write != self.value:
                assert verdict.write == desired
                assert verdict.force or set(self.managers) <= {"servingplan"}
                self.last_scale = Scale(time=now, before=self.value, after=desired, because="")
            self.writes.append(elapsed)
            self.update("servingplan", verdict.write, elapsed)
        return verdict


@pytest.mark.parametrize("timed", [True, False], ids=["by apply", "through /scale"])
@pytest.mark.parametrize("factor", [1, 120], ids=["real clock", "120-fold clock"])
@pytest.mark.parametrize("offset", [0, 7, 29], ids=lambda s: f"resets {s} s after our write")
def test_an_hour_of_resets_every_thirty_seconds_costs_at_most_eight_writes(
    factor: int, timed: bool, offset: int
) -> None:
    replicas = Field(factor=factor, timed=timed)
    replicas.last_scale = scaled(5)
    for second in range(3601):
        elapsed = second * SECOND
        if second % 30 == offset:
            replicas.update("resetter", 2, elapsed)
        replicas.reconcile(5, elapsed)
    assert 2 <= len(replicas.writes) <= 8
    assert replicas.contest is not None


@pytest.mark.parametrize("timed", [True, False], ids=["by apply", "through /scale"])
@pytest.mark.parametrize("factor", [1, 120], ids=["real clock", "120-fold clock"])
def test_one_scale_down_is_undone_at_once_and_forgotten_after_a_quarter_of_an_hour(factor: int, timed: bool) -> None:
    replicas = Field(factor=factor, timed=timed)
    replicas.last_scale = scaled(5)
    contested = []
    for second in range(3601):
        if second == 600:
            replicas.update("kubectl", 1, second * SECOND)
        contested.append(replicas.reconcile(5, second * SECOND).contest is not None)
    assert (replicas.writes, replicas.value) == ([600 * SECOND], 5)
    assert [contested.index(True), contested.index(False, 600)] == [600, 1500]
    assert not any(contested[1500:])


@pytest.mark.parametrize("timed", [True, False], ids=["by apply", "through /scale"])
@pytest.mark.parametrize("factor", [1, 120], ids=["real clock", "120-fold clock"])
def test_one_scale_up_stands_for_a_quarter_of_an_hour_and_is_owned_with_its_writer(factor: int, timed: bool) -> None:
    replicas = Field(factor=factor, timed=timed)
    replicas.last_scale = scaled(5)
    values = []
    for second in range(1800):
        if second == 60:
            replicas.update("kubectl", 8, second * SECOND)
        replicas.reconcile(5, second * SECOND)
        values.append(replicas.value)
    assert set(values[60:960]) == {8}
    assert "servingplan" in replicas.managers
    assert set(values[961:]) == {5}


@pytest.mark.parametrize("timed", [True, False], ids=["by apply", "through /scale"])
@pytest.mark.parametrize("factor", [1, 120], ids=["real clock", "120-fold clock"])
def test_an_ordinary_day_under_our_own_times_is_never_a_contest(factor: int, timed: bool) -> None:
    replicas = Field(factor=factor, timed=timed, value=2, managers={"kubectl": NOON - MINUTE})
    for second in range(0, 3600, 5):
        replicas.reconcile(5 if 600 <= second < 1800 else max(2, 5 - (second - 1680) // 120), second * SECOND)
    assert replicas.ever == {False}
