"""``servingplan emit keda|hpa|cronjob``: manifests that do in the coming weeks what a plan does. Needs no cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from servingplan.cli.files import plans_from
from servingplan.cli.instants import parse_start
from servingplan.cli.output import JSON, YAML, emit, output_option, talk, with_options, yaml_text
from servingplan.errors import InputError, Problem, UsageError
from servingplan.migrating.emit_cronjob import emit_cronjob, setting_of
from servingplan.migrating.emit_keda import emit_keda
from servingplan.migrating.emitted import Emitted, Weeks
from servingplan.migrating.patterns import by_the_minute
from servingplan.planning.plan import Plan
from servingplan.planning.target import TargetRef
from servingplan.reporting.hours import course
from servingplan.reporting.local import after_days

KUBECTL_IMAGE = "registry.k8s.io/kubectl:v1.34.1"
"""Kubernetes' own image of kubectl; it works with clusters one minor version older and newer."""

AROUND = timedelta(days=9)
"""So far before and after the weeks the plan is looked at, so that no window is cut that touches them."""

_options = with_options(
    click.argument("file"),
    click.option("--name", help="The plan of that name, where FILE holds several."),
    click.option("--from", "start", metavar="T", help="Start, in the plan's zone; default: today 00:00."),
    click.option("--weeks", type=click.IntRange(1, 52), default=8, show_default=True, help="How long it must hold."),
    output_option(YAML, JSON, default=YAML),
)
_IMAGE = click.option("--image", default=KUBECTL_IMAGE, show_default=True, help="With kubectl in its PATH.")

Make = Callable[[Weeks], Emitted]


@click.group("emit")
def command() -> None:
    """Print plain manifests that do in the coming weeks what a plan does: the way out.

    \b
      servingplan emit keda plan.yaml --weeks 12 > scaledobject.yaml
      servingplan emit cronjob plan.yaml > cronjobs.yaml
    """  # noqa: D301  \b is the sign by which click keeps lines as they are


@command.command("keda")
@_options
def keda(**flags: Any) -> None:
    """Print a ScaledObject of KEDA whose cron triggers do what the plans in FILE do, lead and steps included.

    What it does not do, and what to do next, is said on standard error.
    """
    _print(flags, lambda weeks: emit_keda(weeks, _workload(weeks.plan)))


@command.command("hpa")
@_options
@click.option(
    "--hpa", metavar="NAME", help="The HorizontalPodAutoscaler, where the plan does not name it as its target."
)
@_IMAGE
def hpa(hpa: str | None, image: str, **flags: Any) -> None:
    """Print CronJobs that set the minimum of a HorizontalPodAutoscaler as the plans in FILE would."""
    _print(flags, lambda weeks: emit_cronjob(weeks, setting_of(_autoscaler(weeks.plan, hpa)), image))


@command.command("cronjob")
@_options
@_IMAGE
def cronjob(image: str, **flags: Any) -> None:
    """Print CronJobs that set replicas (of an autoscaler: its minimum) as the plans in FILE would."""
    _print(flags, lambda weeks: emit_cronjob(weeks, setting_of(_target(weeks.plan)), image))


def _print(flags: dict[str, Any], make: Make) -> None:
    manifests: list[dict[str, Any]] = []
    for plan in plans_from([flags["file"]], flags["name"]):
        start = parse_start(flags["start"], plan.zone)
        end = after_days(start, 7 * flags["weeks"], plan.zone)
        emitted = make(weeks_of(plan, start, end))
        for note in emitted.notes:
            talk(f"Note: {plan.key}: {note}")
        manifests += emitted.manifests
    if flags["output"] == YAML:
        click.echo(yaml_text(manifests), nl=False)
    else:
        emit(JSON, {"apiVersion": "v1", "kind": "List", "items": manifests}, table=str)


def weeks_of(plan: Plan, start: datetime, end: datetime) -> Weeks:
    """What a plan wants on [start, end), to be said in other words."""
    asked = course(plan, start - AROUND, end + AROUND).asked_function
    return Weeks(plan=plan, wanted=by_the_minute(asked), start=start, end=end)


def _target(plan: Plan) -> TargetRef:
    """What the plan scales; an owned engine is a Deployment of the plan's name."""
    return plan.target_ref or TargetRef(api_version="apps/v1", kind="Deployment", name=plan.name)


def _workload(plan: Plan) -> TargetRef:
    target = _target(plan)
    if target.is_floor:
        message = (
            f"sets the minimum of {target}, and two autoscalers on one workload fight: use emit cronjob, which sets "
            "that minimum too"
        )
        raise InputError(Problem(path="spec.targetRef", reason="FloorTarget", message=message))
    return target


def _autoscaler(plan: Plan, name: str | None) -> TargetRef:
    target = _target(plan)
    if name is not None:
        return TargetRef(api_version="autoscaling/v2", kind="HorizontalPodAutoscaler", name=name)
    if target.kind == "HorizontalPodAutoscaler":
        return target
    raise UsageError(
        f"{plan.key} scales {target} itself: name the HorizontalPodAutoscaler on it with --hpa, or use emit "
        "cronjob for the schedule alone"
    )
