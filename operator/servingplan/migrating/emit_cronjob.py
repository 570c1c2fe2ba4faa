"""A plan as CronJobs: each sets the replicas (or an autoscaler's minimum) of one level at its time, with kubectl.

In: a plan and what it asks for, from well before to well after the weeks. Out: CronJobs, and the ServiceAccount, Role
and RoleBinding that let them do this and no more. A CronJob is an edge: one that does not run leaves the level before
it. So a late one may start only until the next change, and is ended then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from servingplan.migrating.emitted import UNTIL, Emitted, Manifest, Weeks, leaving
from servingplan.migrating.patterns import Times, candidates
from servingplan.migrating.robfig import fires, parse
from servingplan.planning.plan import Plan
from servingplan.planning.target import TargetRef
from servingplan.rendering.times import local_time, wire_time

LONGEST_LATE = timedelta(hours=12)
"""A job that could not start for so long is not started any more."""

LONGEST_NAME = 52
"""Of a CronJob: its Jobs add eleven characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a job sets: the replicas of a workload, or a field of an autoscaler. plural: of its kind."""

    target: TargetRef
    plural: str
    field: str | None

    @property
    def resource(self) -> str:
        """As kubectl names it: ``deployments.apps/vllm``."""
        return ".".join(filter(None, (self.plural, self.target.group))) + f"/{self.target.name}"

    def arguments(self, replicas: int) -> list[str]:
        """Of kubectl."""
        if self.field is None:
            return ["scale", self.resource, f"--replicas={replicas}"]
        return ["patch", self.resource, "--type=merge", f'--patch={{"spec":{{"{self.field}":{replicas}}}}}']

    def rules(self) -> list[Manifest]:
        """The rights that this takes, on that one object."""
        group = {"apiGroups": [self.target.group], "resourceNames": [self.target.name]}
        if self.field is not None:
            return [{**group, "resources": [self.plural], "verbs": ["get", "patch"]}]
        return [
            {**group, "resources": [self.plural], "verbs": ["get"]},
            {**group, "resources": [f"{self.plural}/scale"], "verbs": ["get", "patch", "update"]},
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Instants, alike on the wall, at which one and the same level begins, and how to say them."""

    replicas: int
    times: Times
    late: timedelta


def setting_of(target: TargetRef) -> Setting:
    """What a job sets for a target: the minimum of an autoscaler, else replicas."""
    fields = {"HorizontalPodAutoscaler": "minReplicas", "ScaledObject": "minReplicaCount"}
    field = fields[target.kind] if target.is_floor else None
    return Setting(target=target, plural=f"{target.kind.lower()}s", field=field)


def emit_cronjob(weeks: Weeks, setting: Setting, image: str) -> Emitted:
    """CronJobs that set in the weeks what the plan would, with a job for each kind of change."""
    floor = setting.field is not None
    levels = list(job_levels(weeks, lowest=1 if floor else 0))
    jobs = [_cron_job(weeks, setting, level, number, image) for number, level in enumerate(levels)]
    return Emitted(manifests=[*_rights(weeks.plan, setting), *jobs], notes=list(_notes(weeks, levels, floor=floor)))


def job_levels(weeks: Weeks, *, lowest: int) -> Iterator[Level]:
    """The changes of the weeks by their level and time on the wall."""
    wanted = weeks.wanted
    groups: dict[tuple[time, int], list[datetime]] = {}
    for instant, replicas in zip(wanted.times[1:], wanted.values[1:], strict=True):
        if weeks.start <= instant < weeks.end:
            wall = instant.astimezone(weeks.plan.zone)
            groups.setdefault((wall.time(), max(lowest, replicas)), []).append(instant)
    for (_, replicas), instants in sorted(groups.items(), key=lambda item: item[1][0]):
        late = min((wanted.next_change(instant) or weeks.end) - instant for instant in instants)
        for times in _exact(instants, replicas, weeks, lowest):
            yield Level(replicas=replicas, times=times, late=min(late, LONGEST_LATE))


def _exact(instants: Sequence[datetime], replicas: int, weeks: Weeks, lowest: int) -> Sequence[Times]:
    """The first way to say the instants whose fires are all of them, and others only where the level holds anyway."""
    first, last = round(weeks.start.timestamp()), round(weeks.end.timestamp())
    due = {round(instant.timestamp()) for instant in instants}
    ways = list(candidates([instants], weeks.plan.zone))
    for way in ways:
        fired = {fire for times in way for fire in fires(parse(times.expressions[0]), times.zone, first, last)}
        moments = [datetime.fromtimestamp(fire, UTC) for fire in fired]
        if due <= fired and all(max(lowest, weeks.wanted.at(moment)) == replicas for moment in moments):
            return way
    return ways[-1]


def _cron_job(weeks: Weeks, setting: Setting, level: Level, number: int, image: str) -> Manifest:
    minute, hour = level.times.expressions[0].split()[:2]
    suffix = f"-{number}-{int(hour):02d}{int(minute):02d}-to-{level.replicas}"
    late = round(level.late.total_seconds())
    container = {
        "name": "kubectl",
        "image": image,
        "command": ["kubectl", *setting.arguments(level.replicas)],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
    }
    pod = {
        "serviceAccountName": _account(weeks.plan),
        "restartPolicy": "OnFailure",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "name": weeks.plan.name[: LONGEST_NAME - len(suffix)].rstrip("-") + suffix,
            "namespace": weeks.plan.namespace,
            "annotations": {UNTIL: wire_time(weeks.end)},
        },
        "spec": {
            "schedule": level.times.expressions[0],
            "timeZone": level.times.zone.key,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": late,
            "successfulJobsHistoryLimit": 1,
            "jobTemplate": {
                "spec": {"activeDeadlineSeconds": late, "template": {"spec": pod}},
            },
        },
    }


def _account(plan: Plan) -> str:
    return f"{plan.name}-schedule"


def _rights(plan: Plan, setting: Setting) -> list[Manifest]:
    name = _account(plan)
    metadata = {"name": name, "namespace": plan.namespace}
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": plan.namespace}
    role = {"apiGroup": rbac, "kind": "Role", "name": name}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": setting.rules()},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def _notes(weeks: Weeks, levels: Sequence[Level], *, floor: bool) -> Iterator[str]:
    yield from leaving(weeks)
    begins = local_time(weeks.start, weeks.plan.zone)
    now = max(weeks.wanted.at(weeks.start), 1 if floor else 0)
    yield f"a job acts only at its time: on {begins}, where this begins, {now} must be set already"
    if any(level.times.dated for level in levels):
        yield "jobs that name dates, as no weekly one is right on all of them, come again a year later"
    if floor and min(weeks.within.values) == 0:
        yield "an autoscaler's minimum is at least 1: where the plan asks for 0, 1 replica runs"
    yield "a job that cannot run leaves the level before it: watch for failed Jobs"
