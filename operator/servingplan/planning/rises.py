"""Rises: which replicas a change of replicas started, when the last of them was verified, and which are stuck.

In: what is remembered of rises, the last change of replicas, the observation. Out: what to remember now. All of it
lies in the plan's status and in the pods' own timestamps, so that a restart in the middle of a rise neither loses nor
doubles a sample. Pure; `planning.lead` makes a lead of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from servingplan.planning.lead import RISES_KEPT, Rises, RiseSample, RunningRise, Stages
from servingplan.planning.observation import Observation, Replica, Scale, Stage

CREATED_WITHIN = timedelta(minutes=5)
"""A rise's replicas are created right after its decision: a controller needs seconds, an autoscaler with a minimum up
to a minute. What is created later replaces one that was lost, or waited for a quota: neither tells how long a rise
takes."""

CLOCK_GRAIN = timedelta(microseconds=1)


def stuck(observation: Observation, lead: timedelta, now: datetime) -> tuple[Replica, ...]:
    """The replicas that have been starting for longer than `lead` (`EffectiveLead.proven`), furthest behind first."""
    late = [each for each in observation.replicas if each.starting and now - each.since > lead]
    return tuple(sorted(late, key=lambda each: each.progress))


def stuck_from(observation: Observation, lead: timedelta, now: datetime) -> datetime | None:
    """When the next replica that is starting is stuck by the clock alone; None where none starts in time."""
    instants = [each.since + lead + CLOCK_GRAIN for each in observation.replicas if each.starting]
    return min((instant for instant in instants if instant > now), default=None)


def advance(
    rises: Rises,
    *,
    fingerprint: str,
    remembered: Scale | None,
    last_scale: Scale | None,
    written: bool,
    observation: Observation,
    now: datetime,
    grain: timedelta,
) -> Rises:
    """What to remember of rises after one look.

    remembered: the last change of replicas in status; last_scale: the one that goes into status together with what is
    returned here; where they differ, a rise or a fall began. written: this look made that change; else it was found,
    after a stop between the write and its note. observation: with `current` as it is after the write.
    grain: how coarse the cluster's timestamps are, on the plan's clock. An engine with another fingerprint starts anew.
    """
    if rises.fingerprint != fingerprint:
        rises = Rises(fingerprint=fingerprint)
    running = rises.running
    if last_scale is not None and last_scale != remembered:
        decided = last_scale.time if written else _decided(last_scale, remembered, observation)
        running = _after_change(running, last_scale, decided)
    samples, still = list(rises.samples), []
    for index, rise in enumerate(running):
        until = running[index + 1].decided if index + 1 < len(running) else None
        mine = _replicas_of(rise, until, observation, grain)
        sample = _sample(rise, mine, now)
        if sample is not None:
            samples.append(sample)
        elif not _disturbed(rise, mine, observation, now, grain):
            still.append(rise)
    return replace(rises, samples=tuple(samples[-RISES_KEPT:]), running=tuple(still[-RISES_KEPT:]))


def _after_change(running: tuple[RunningRise, ...], scale: Scale, decided: datetime) -> tuple[RunningRise, ...]:
    """A rise begins; a fall interrupts what was running."""
    if scale.after < scale.before:
        return ()
    if scale.after == scale.before:
        return running
    return (*running, RunningRise(decided=decided, before=scale.before, after=scale.after))


def _decided(found: Scale, remembered: Scale | None, observation: Observation) -> datetime:
    """When a rise that was found was decided: no later than its replicas were created.

    The change itself carries the time at which it was found.
    """
    active = sorted(_active(observation), key=lambda each: each.since, reverse=True)
    there = active[: max(0, len(active) - found.before)]
    since = [each.since for each in there if remembered is None or each.since > remembered.time]
    return min([found.time, *since])


def _active(observation: Observation) -> list[Replica]:
    return [each for each in observation.replicas if each.stage is not Stage.TERMINATING]


def _replicas_of(
    rise: RunningRise, until: datetime | None, observation: Observation, grain: timedelta
) -> list[Replica]:
    """The replicas that a rise started: created from its decision on, before the next rise's, and not much later.

    Timestamps are cut to whole seconds: a replica may seem to be older than its decision by that much.
    """
    end = rise.decided + CREATED_WITHIN + grain
    if until is not None:
        end = min(end, until - grain)
    return [each for each in _active(observation) if rise.decided - grain <= each.since < end]


def _sample(rise: RunningRise, mine: Sequence[Replica], now: datetime) -> RiseSample | None:
    """The sample of a rise all of whose replicas are verified; None where they are not."""
    verified = sorted((each for each in mine if each.stage is Stage.READY), key=lambda each: _ready_at(each, now))
    added = rise.after - rise.before
    if len(verified) < added:
        return None
    return RiseSample(decided=rise.decided, stages=_stages(rise.decided, verified[added - 1], now))


def _stages(decided: datetime, replica: Replica, now: datetime) -> Stages:
    """The time from the decision to verified, cut at a replica's milestones; one that is not known takes no time.

    Whole seconds, as they are remembered, and as exact as a cluster tells them.
    """
    ready = max(_ready_at(replica, now), decided)
    scheduled = _between(decided, replica.milestones.scheduled or decided, ready)
    started = _between(scheduled, replica.milestones.started or scheduled, ready)
    after = [timedelta(seconds=round((each - decided).total_seconds())) for each in (scheduled, started, ready)]
    return Stages(scheduling=after[0], pulling=after[1] - after[0], engine=after[2] - after[1])


def _ready_at(replica: Replica, now: datetime) -> datetime:
    return min(replica.milestones.ready or now, now)


def _between(low: datetime, instant: datetime, high: datetime) -> datetime:
    return max(low, min(instant, high))


def _disturbed(
    rise: RunningRise, mine: Sequence[Replica], observation: Observation, now: datetime, grain: timedelta
) -> bool:
    """True where a rise can give no sample any more: replicas were lowered, or its own were lost or never made."""
    if observation.current is not None and observation.current < rise.after:
        return True
    if now < rise.decided - grain:
        return True  # the clock went back
    return len(mine) < rise.after - rise.before and now >= rise.decided + CREATED_WITHIN + grain
