"""A plan as a ScaledObject of KEDA: cron triggers that do in the coming weeks what the plan does.

In: a plan and what it asks for, from well before to well after the weeks. Out: a manifest, and notes on what it does
not do. Each level above the lowest is a set of intervals, and a trigger for each kind of them: the largest active one
counts, as in KEDA. A trigger is taken only if `keda_cron` says that it does exactly this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise

from servingplan.migrating.emitted import UNTIL, Emitted, Manifest, Weeks, leaving
from servingplan.migrating.findings import course
from servingplan.migrating.keda_cron import CronTrigger, active_intervals
from servingplan.migrating.lint import HPA_TOLERANCE
from servingplan.migrating.patterns import Times, candidates
from servingplan.migrating.robfig import parse
from servingplan.migrating.scaled_object import API_VERSION, KIND
from servingplan.migrating.spans import Spans, both, minus, union
from servingplan.planning.calendar import Interval
from servingplan.planning.plan import Plan
from servingplan.planning.target import TargetRef
from servingplan.rendering.times import local_time, wire_time

A_YEAR = timedelta(days=365)
HPA_PERIOD_S = 15
"""How often a HorizontalPodAutoscaler looks: within one period all replicas may be added or taken."""


def emit_keda(weeks: Weeks, target: TargetRef) -> Emitted:
    """A ScaledObject that scales `target` in the weeks as the plan would."""
    plan = weeks.plan
    triggers = list(cron_triggers(weeks))
    lowest = min(weeks.within.values)
    everything = {"type": "Pods", "value": plan.bounds.maximum, "periodSeconds": HPA_PERIOD_S}
    behavior = {"stabilizationWindowSeconds": 0, "policies": [everything]}
    manifest = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": plan.name, "namespace": plan.namespace, "annotations": {UNTIL: wire_time(weeks.end)}},
        "spec": {
            "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": target.name},
            "minReplicaCount": lowest,
            "maxReplicaCount": plan.bounds.maximum,
            **({"cooldownPeriod": 0} if lowest == 0 else {}),
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": behavior, "scaleDown": behavior}}},
            "triggers": [_trigger(trigger) for trigger in triggers] or [_nothing(plan)],
        },
    }
    return Emitted(manifests=[manifest], notes=tuple(_notes(weeks, triggers)))


def cron_triggers(weeks: Weeks) -> Iterator[CronTrigger]:
    """The triggers whose largest active one is what is wanted, where that is above its lowest in the weeks."""
    levels = sorted(set(weeks.within.values))
    index = 0
    for level in levels[1:]:
        spans = union(Interval(start=p.start, end=p.end) for p in weeks.wanted.pieces() if p.value >= level)
        for group in _alike(spans, weeks):
            for times in _exact(group, spans, weeks):
                yield _cron_trigger(times, level, index)
                index += 1


def _alike(spans: Spans, weeks: Weeks) -> Iterator[Spans]:
    """The spans that touch the weeks, together where they begin and end at the same times on the wall."""
    groups: dict[object, list[Interval]] = {}
    for span in spans:
        if span.end > weeks.start and span.start < weeks.end:
            walls = [instant.astimezone(weeks.plan.zone) for instant in (span.start, span.end)]
            key = (walls[0].time(), walls[1].time(), walls[1].date() - walls[0].date())
            groups.setdefault(key, []).append(span)
    yield from groups.values()


def _exact(group: Spans, spans: Spans, weeks: Weeks) -> Sequence[Times]:
    """The first way to say a group with which triggers are active in all of it, and nowhere that the level is not."""
    rows = [[span.start for span in group], [span.end for span in group]]
    ways = list(candidates(rows, weeks.plan.zone))
    whole = (Interval(start=weeks.start, end=weeks.end),)
    for way in ways:
        triggers = [_cron_trigger(times, 1, 0) for times in way]
        active = union(span for each in triggers for span in active_intervals(each, weeks.start, weeks.end))
        if not minus(both(group, whole), active) and not minus(active, spans):
            return way
    return ways[-1]


def _cron_trigger(times: Times, replicas: int, index: int) -> CronTrigger:
    first, last = (parse(text) for text in times.expressions)
    return CronTrigger(index=index, start=first, end=last, zone=times.zone, replicas=replicas)


def _trigger(trigger: CronTrigger) -> Manifest:
    return {
        "type": "cron",
        "metadata": {
            "timezone": trigger.zone.key,
            "start": trigger.start.text,
            "end": trigger.end.text,
            "desiredReplicas": str(trigger.replicas),
        },
    }


def _nothing(plan: Plan) -> Manifest:
    """KEDA takes no ScaledObject without triggers: one that asks for the lowest level, which is there anyway."""
    metadata = {"timezone": plan.zone.key, "start": "0 0 1 1 *", "end": "1 0 1 1 *", "desiredReplicas": "1"}
    return {"type": "cron", "metadata": metadata}


def _notes(weeks: Weeks, triggers: Sequence[CronTrigger]) -> Iterator[str]:
    yield from leaving(weeks)
    dated = [trigger.index for trigger in triggers if not trigger.start.any_date]
    if dated:
        listed = ", ".join(map(str, dated))
        yield f"triggers {listed} name dates, as no weekly one is right on all of them: they come again a year later"
    for trigger in triggers:
        spans = course(trigger, weeks.end, weeks.end + A_YEAR)
        changed = (*spans.lost.at_change, *spans.phantom.at_change)
        if changed:
            first = local_time(min(span.start for span in changed), weeks.plan.zone)
            yield f"trigger {trigger.index} is wrong at the clock change on {first}, after these weeks"
    levels = sorted(set(weeks.within.values) - {0})
    if any(1 - low / high <= HPA_TOLERANCE for low, high in pairwise(levels)):
        yield "levels lie within the HPA's tolerance of 10 %: some steps are not made"
