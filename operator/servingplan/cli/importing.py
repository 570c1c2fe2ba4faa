"""``servingplan import keda``: a plan that does what cron triggers of KEDA were meant to do. Needs no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import click

from servingplan.api.resolve import resolve
from servingplan.cli.instants import now, parse_span
from servingplan.cli.manifests import Found, scaled_objects
from servingplan.cli.output import JSON, YAML, emit, output_option, talk, yaml_text
from servingplan.cli.problems import in_file
from servingplan.errors import InputError, UsageError
from servingplan.migrating.adopt import Adopted, Onto, Wishes, adopt
from servingplan.planning.units import exact


@click.group("import")
def command() -> None:
    """Make a plan of a schedule that you have elsewhere."""


@command.command("keda")
@click.argument("files", nargs=-1, required=True)
@click.option("--name", help="Of the plan; default: the ScaledObject's.")
@click.option(
    "--onto",
    type=click.Choice([onto.value for onto in Onto]),
    help="What the plan scales; default: the workload, but the ScaledObject where it has other triggers too.",
)
@click.option("--capacity", type=click.FloatRange(min=0, min_open=True), help="Requests/s of one replica: state rates.")
@click.option("--reserve", type=click.IntRange(0, 1000), help="Replicas of each level that are reserve.  [default: 1]")
@click.option(
    "--start-time", default="10m", show_default=True, metavar="SPAN", help="How long a replica takes to start."
)
@output_option(YAML, JSON, default=YAML)
def keda(*, files: Sequence[str], name: str | None, output: str, **wishes: Any) -> None:
    """Print plans that do what the cron triggers of the ScaledObjects in FILES were meant to do.

    What is not exactly the same, and what to do next, is said on standard error.

    \b
      servingplan import keda scaledobject.yaml > plan.yaml
      servingplan import keda scaledobject.yaml --capacity 5 --reserve 1 --start-time 8m
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    objects = scaled_objects(files)
    if name is not None and len(objects) > 1:
        raise UsageError(f"--name names one plan, and there are {len(objects)} ScaledObjects in {', '.join(files)}")
    if wishes["reserve"] is not None and wishes["capacity"] is None:
        raise UsageError("--reserve counts only with --capacity: without it levels are totals, reserve included")
    today = now().date()
    adopted = [_adopted(found, _wishes(found, name, **wishes), today) for found in objects]
    for found, one in zip(objects, adopted, strict=True):
        for note in one.notes:
            talk(f"Note: {found.scaled_object.namespace}/{found.scaled_object.name}: {note}")
    plans = [one.plan for one in adopted]
    if output == YAML:
        click.echo(yaml_text(plans), nl=False)
    else:
        emit(output, plans[0] if len(plans) == 1 else plans, table=str)


def _wishes(
    found: Found, name: str | None, *, onto: str | None, capacity: float | None, reserve: int | None, start_time: str
) -> Wishes:
    return Wishes(
        name=name or found.scaled_object.name,
        onto=None if onto is None else Onto(onto),
        capacity=None if capacity is None else exact(capacity),
        reserve=1 if reserve is None else reserve,
        start_time=parse_span(start_time, "--start-time"),
    )


def _adopted(found: Found, wishes: Wishes, today: date) -> Adopted:
    """The plan, which resolves. Raises InputError where KEDA refuses a trigger, or a plan cannot say it."""
    problems = list(found.refused)
    if not problems:
        try:
            adopted = adopt(found.scaled_object, wishes, today)
            resolve(adopted.plan, {})
        except InputError as error:
            problems += error.problems
        else:
            return adopted
    raise InputError(*(in_file(found.document, problem) for problem in problems))
