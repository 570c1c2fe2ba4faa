"""Barriers: why a signal that asks for a step does not get one now, although it has evidence.

In: a `Case`, the observation, the lead. Out: the first barrier that stands, as a `Verdict`, or none. `feedback` asks
for it after `evidence` has judged the signals.
"""

from __future__ import annotations

from datetime import timedelta
from statistics import median

from servingplan.planning.evidence import TWO_MINUTES, Case, Verdict, in_flight_limit
from servingplan.planning.observation import Observation, Stage
from servingplan.planning.reasons import Reason
from servingplan.planning.units import format_duration

HOT = 3
"""A replica with more than so many times the median in flight gets more than its share."""


def held_back(case: Case, observation: Observation, lead: timedelta) -> Verdict | None:
    """Why a signal that asks for a step does not get one now: the first of these reasons that holds."""
    return _starting(case, observation, lead) or _settling(case, observation) or imbalanced(case)


def _starting(case: Case, observation: Observation, lead: timedelta) -> Verdict | None:
    """Replicas that are starting count as present: evidence is paid for once."""
    starting = sorted((replica for replica in observation.replicas if replica.starting), key=lambda each: each.name)
    behind = max(case.due + case.held, observation.current or 0)
    missing = min(behind, case.plan.bounds.maximum, observation.maximum or behind) - observation.ready
    if missing <= 0 and not starting:
        return None
    if starting and all(case.now - replica.since > lead for replica in starting):
        names = ", ".join(replica.name for replica in starting[:3])
        message = f"{names} starting for longer than {format_duration(lead)}: another one would not help"
        return Verdict(signal="step", reason=Reason.START_STUCK, message=message)
    message = f"{max(missing, len(starting))} starting: they count as present"
    return Verdict(signal="step", reason=Reason.STARTING, message=message)


def _settling(case: Case, observation: Observation) -> Verdict | None:
    """What was measured before the last replica came proves nothing about the number there is now.

    A replica that has just become ready may not be heard at all yet, so the cluster's word counts too.
    """
    young = [pod for pod, since in case.signals.first_heard.items() if case.signals.at - since < TWO_MINUTES]
    young += [
        replica.name
        for replica in observation.in_stage(Stage.READY)
        if replica.milestones.ready is not None and case.signals.at - replica.milestones.ready < TWO_MINUTES
    ]
    if not young:
        return None
    return Verdict(signal="step", reason=Reason.SETTLING, message=f"{young[0]} serves for less than two minutes")


def imbalanced(case: Case) -> Verdict | None:
    """One replica has far more than its share while all together are not full: routing, not capacity."""
    counts = case.signals.in_flight
    limit = in_flight_limit(case.plan, case.when)
    hottest = max(counts, key=lambda pod: (counts[pod], pod))
    middle = median(counts.values())
    if counts[hottest] <= HOT * middle or len(counts) == 1:
        return None
    if limit is not None and case.signals.in_flight_mean.value >= limit:
        return None
    message = f"{hottest} has {counts[hottest]:.3g} in flight, the median {middle:.3g}: look at the routing"
    return Verdict(signal="step", reason=Reason.IMBALANCED, message=message)
