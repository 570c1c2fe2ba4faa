"""Who writes replicas: whether a write of ours goes out, with or without force, and when to try again.

In: the decision's desired replicas, what the target holds, who owns the field, and how the last contest stands.
Out: a `Verdict`. A second writer never makes the operator lower anything; it raises to what is asked, backing off.
All instants are on the plan's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from servingplan.planning.observation import Scale

BACKOFF = (
    timedelta(0),
    timedelta(seconds=10),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
)
"""How long after the previous raise the next one goes out while somebody else writes replicas, the last one
repeated: an hour of resets every 30 s costs at most 8 writes."""

CONTEST_ENDS_AFTER = timedelta(minutes=15)
"""Once nobody else has written for so long, the operator lowers again."""

BEFORE_FIRST_APPLY = "before-first-apply"
"""What the server calls the owner of a value that nobody owned when we first applied it: no writer at all."""

UNKNOWN_MANAGER = "an unknown manager"
"""Who wrote where the server names nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOwner:
    """A manager that owns ``spec.replicas`` of the target. `ours`: this installation.

    time: when it last wrote; None where the server does not say, as for writes through ``/scale``.
    """

    manager: str
    time: datetime | None
    ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Another manager writes replicas: who, its last write as far as seen, and our raises since it began."""

    manager: str
    since: datetime
    last_write: datetime
    value: int
    raises: int = 0
    last_raise: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do about replicas now.

    write: the value to apply, None for no write. force: take the field from its other owners. contest: how the
    contest stands after this verdict, None where the operator is the sole writer. again_at: when the verdict can
    change by the clock alone.
    """

    write: int | None
    force: bool
    contest: Contest | None
    again_at: datetime | None


def judge(
    *,
    desired: int,
    current: int,
    owners: Sequence[FieldOwner],
    last_scale: Scale | None,
    contest: Contest | None,
    now: datetime,
) -> Verdict:
    """Whether `desired` is to be written over `current`.

    A second writer is a manager other than ours that wrote after our last change. The first takeover, when there
    was no change of ours yet, is none: then the field is simply taken.
    """
    taken = _is_taken(current, owners, last_scale, contest)
    intruder = _second_writer(owners, last_scale, now, taken=taken)
    standing = _standing_contest(intruder, contest, current, now, taken=taken)
    if standing is None:
        return _as_sole_writer(desired, current, owners)
    return _against(standing, desired, current, owners, now)


def _is_taken(current: int, owners: Sequence[FieldOwner], last_scale: Scale | None, contest: Contest | None) -> bool:
    """True where the value is not what we set and the field is not ours any more: somebody took it.

    A scale to zero leaves no owner at all; the value and the lost field are all that shows it. In a contest another's
    value that we own too is known already; outside of one, a stop has kept us from writing the contest down.
    """
    if last_scale is None or current == last_scale.after:
        return False
    if contest is None:
        return not owners or not all(owner.ours for owner in owners)
    return not any(owner.ours for owner in owners)


def _second_writer(
    owners: Sequence[FieldOwner], last_scale: Scale | None, now: datetime, *, taken: bool
) -> FieldOwner | None:
    """The other manager that wrote replicas after our last change, and lately; None where nobody did.

    A write that is known to be as old as a contest lasts begins none: an owner that stays, because it applied our
    value, would else begin a new contest whenever the old one ends.
    """
    if last_scale is None:
        return None
    others = [owner for owner in owners if not owner.ours and owner.manager != BEFORE_FIRST_APPLY]
    timed = [(owner.time, owner.manager, owner) for owner in others if owner.time is not None]
    if timed:
        time, _, latest = max(timed, key=lambda entry: entry[:2])
        return latest if now < time + CONTEST_ENDS_AFTER and (taken or time > last_scale.time) else None
    if not taken:
        return None
    manager = min((owner.manager for owner in others), default=UNKNOWN_MANAGER)
    return FieldOwner(manager=manager, time=None, ours=False)


def _standing_contest(
    intruder: FieldOwner | None, contest: Contest | None, current: int, now: datetime, *, taken: bool
) -> Contest | None:
    """The contest that stands now: a new one, the old one with a newer write, or none once ours has stood."""
    if intruder is not None and contest is None:
        return Contest(manager=intruder.manager, since=now, last_write=intruder.time or now, value=current)
    if contest is None:
        return None
    if intruder is not None and _wrote_again(intruder, contest, current):
        return replace(contest, manager=intruder.manager, last_write=intruder.time or now, value=current)
    return contest if taken or now < _ends_at(contest) else None


def _wrote_again(intruder: FieldOwner, contest: Contest, current: int) -> bool:
    """Whether a write is newer than the contest knows: by its time, else by its value or by our raise in between."""
    if intruder.time is not None:
        return intruder.time > contest.last_write
    answered = contest.last_raise is not None and contest.last_raise > contest.last_write
    return answered or current != contest.value


def _ends_at(contest: Contest) -> datetime:
    """When a contest ends if nobody else writes again."""
    return max(contest.since, contest.last_write, contest.last_raise or contest.since) + CONTEST_ENDS_AFTER


def _as_sole_writer(desired: int, current: int, owners: Sequence[FieldOwner]) -> Verdict:
    owned = any(owner.ours for owner in owners)
    if desired == current and owned:
        return Verdict(write=None, force=False, contest=None, again_at=None)
    # Other owners that are left here wrote before us, or have been quiet: they lose the field. Where nobody owns it,
    # the server counts it as somebody's from before, and it is taken likewise.
    force = desired != current and not (owned and len(owners) == 1)
    return Verdict(write=desired, force=force, contest=None, again_at=None)


def _against(contest: Contest, desired: int, current: int, owners: Sequence[FieldOwner], now: datetime) -> Verdict:
    """While somebody else writes: raise when below, with backoff; otherwise only co-own the value that is there.

    Without co-owning it, replicas would fall to 1 when the other manager drops the field.
    """
    if current >= desired:
        owned = any(owner.ours for owner in owners)
        return Verdict(write=None if owned else current, force=False, contest=contest, again_at=_ends_at(contest))
    last = contest.last_raise or contest.since
    due = last + BACKOFF[min(contest.raises, len(BACKOFF) - 1)]
    # A raise that lies in the future means that the clock went back: raising late is worse than raising once more.
    if last <= now < due:
        return Verdict(write=None, force=False, contest=contest, again_at=due)
    raised = replace(contest, raises=contest.raises + 1, last_raise=now)
    return Verdict(write=desired, force=True, contest=raised, again_at=_ends_at(raised))
