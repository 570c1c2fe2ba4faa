"""``servingplan bill``: what some days cost, and what else would have been spent, with attainment beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from servingplan.cli.cluster import Access, Cluster, access_options
from servingplan.cli.extras import needed
from servingplan.cli.files import is_file, one_plan_from
from servingplan.cli.instants import now, parse_instant
from servingplan.cli.matchers import parse_matchers
from servingplan.cli.output import HTML, JSON, MARKDOWN, TABLE, YAML, emit, output_option, talk
from servingplan.cli.past import entries, in_use
from servingplan.errors import UsageError
from servingplan.planning.ledger import Entry
from servingplan.planning.plan import Plan
from servingplan.planning.units import exact
from servingplan.rendering.times import local_time
from servingplan.reporting.bill import HOUR, Bill, bill_document
from servingplan.reporting.billing import actual_replicas, bill
from servingplan.reporting.local import after_days, midnight

if TYPE_CHECKING:
    from servingplan.profiling.served import Served

_FILE = click.Path(path_type=Path)
_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")
LONGEST_DAYS = 35
"""What a ledger keeps, and a few seconds of simulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a Prometheus is asked for. url: None for no Prometheus."""

    url: str | None
    matchers: tuple[str, ...]
    query: str | None
    replicas: str | None
    token_file: Path | None
    ca: Path | None


@click.command("bill")
@click.argument("what", metavar="FILE|NAME")
@click.option("--week", metavar="YEAR-WNN", help="An ISO week: 2026-W48.  [default: the last whole week]")
@click.option("--from", "start", metavar="T", help="Start, in the plan's zone, in the place of --week.")
@click.option("--days", type=click.IntRange(1, LONGEST_DAYS), help="How many days from --from on.  [default: 7]")
@click.option("--name", help="The plan of that name, where FILE holds several.")
@click.option("--prometheus", metavar="URL", help="Where arrivals, latencies and replicas were kept.")
@click.option(
    "--match", "matchers", multiple=True, metavar="LABEL=VALUE", help="Engines that count.  [default: namespace=...]"
)
@click.option("--query", metavar="PROMQL", help="Requests/s of a gateway, one series, in the place of vLLM's metrics.")
@click.option("--replicas", metavar="PROMQL", help="Replicas, one series, in the place of the operator's metric.")
@click.option("--token-file", type=_FILE, metavar="FILE", help="Holds a bearer token.")
@click.option("--ca", type=_FILE, metavar="FILE", help="PEM of those who may sign its certificate.")
@click.option("--gpu-hour", metavar="PRICE", type=click.FloatRange(min=0), help="Of one GPU-hour: show costs too.")
@access_options
@output_option(TABLE, JSON, YAML, HTML, MARKDOWN)
def command(
    *,
    what: str,
    week: str | None,
    start: str | None,
    days: int | None,
    name: str | None,
    prometheus: str | None,
    matchers: tuple[str, ...],
    query: str | None,
    replicas: str | None,
    token_file: Path | None,
    ca: Path | None,
    gpu_hour: float | None,
    output: str,
    **access: Any,
) -> None:
    """Show what a week of a plan cost: planned, spent, flat, and what reactive autoscalers would have spent.

    With the NAME of a plan in the cluster the replicas are those of its ledger; else, or where it begins later, those
    that Prometheus kept. Without --prometheus there is no attainment and no autoscaler to compare with.

    \b
      servingplan bill support-chat --prometheus http://localhost:9090 --gpu-hour 2.50
      servingplan bill plan.yaml --week 2026-W48 --prometheus http://localhost:9090 -o markdown
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    asked = Asked(url=prometheus, matchers=matchers, query=query, replicas=replicas, token_file=token_file, ca=ca)
    if prometheus is None and (matchers or query or replicas or token_file or ca):
        raise UsageError(
            "--match, --query, --replicas, --token-file and --ca are about a Prometheus: name it with --prometheus"
        )
    plan, written, generation = _plan(what, name, access)
    first, last = _span(week, start, days, plan.zone)
    served = None if prometheus is None else _served(plan, asked, first, last)
    found = bill(
        plan,
        first,
        last,
        actual=actual_replicas(() if _sets_a_minimum(plan) else written, served, first, last),
        served=served,
        gpu_hour=None if gpu_hour is None else exact(gpu_hour),
        remarks=tuple(_remarks(plan, asked, written, generation, within=(first, last))),
    )
    _show(found, output)


def _show(found: Bill, output: str) -> None:
    if output == MARKDOWN:
        from servingplan.reporting.bill_markdown import bill_markdown  # noqa: PLC0415  only where it is asked for

        click.echo(bill_markdown(found))
    elif output == HTML:
        from servingplan.reporting.bill_html import page  # noqa: PLC0415  as above

        click.echo(page(found))
    else:
        emit(output, bill_document(found), lambda: _view(found))


def _view(found: Bill) -> Any:
    from servingplan.reporting.bill_tables import bill_view  # noqa: PLC0415  JSON needs no tables

    return bill_view(found)


# ---- what is billed ----


def _plan(what: str, name: str | None, access: dict[str, Any]) -> tuple[Plan, tuple[Entry, ...], int | None]:
    """The plan, its ledger and its generation; a file has neither."""
    if is_file(what, name):
        return one_plan_from(what, name, option="--name"), (), None
    cluster = Cluster(Access(**access))
    document = cluster.plan(what)
    plan = in_use(cluster, document)
    written = entries(cluster, document)
    if not written:
        talk(f"{plan.key} has no ledger: replicas are what Prometheus kept, if anything")
    return plan, written, document["metadata"].get("generation")


def _span(week: str | None, start: str | None, days: int | None, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Whole hours, over now. Raises UsageError for a span that has not begun."""
    if week is not None and (start is not None or days is not None):
        raise UsageError("--week names the days: leave --from and --days away")
    if start is None and days is not None:
        raise UsageError("--days counts from --from: give it too")
    present = now()
    if start is None:
        first = midnight(_monday(week, present.astimezone(zone).date()), zone)
    else:
        first = parse_instant(start, zone, "--from", after=present - timedelta(days=1))
    last = after_days(first, days or 7, zone).astimezone(UTC)
    over = present.replace(minute=0, second=0, microsecond=0)
    if last > over:
        talk(f"these days are not over: billed until {local_time(over, zone)}")
    first, last = first.astimezone(UTC), min(last, over)
    last = first + (last - first) // HOUR * HOUR
    if last <= first:
        raise UsageError(f"{'--week' if start is None else '--from'}: nothing of these days is over yet")
    return first, last


def _monday(week: str | None, today: date) -> date:
    """The first day of an ISO week, or of the last whole one."""
    if week is None:
        return today - timedelta(days=today.weekday() + 7)
    with suppress(ValueError):  # there is no week 60
        if match := _WEEK.fullmatch(week):
            return date.fromisocalendar(int(match[1]), int(match[2]), 1)
    raise UsageError(f"--week {week!r} is no week: write 2026-W48")


# ---- what is known of it ----


def _served(plan: Plan, asked: Asked, start: datetime, end: datetime) -> Served:
    with needed("bill --prometheus", extra="profile"):
        from servingplan.profiling.asking import Access as At  # noqa: PLC0415  needs a package of its own
        from servingplan.profiling.history import Wanted  # noqa: PLC0415  as above
        from servingplan.profiling.served import served  # noqa: PLC0415  as above

    matchers = parse_matchers(asked.matchers) or {"namespace": plan.namespace}
    limits = {name: objective.limit for name, objective in plan.workload.objectives.stated}
    own = f'max(servingplan_current_replicas{{namespace="{plan.namespace}",name="{plan.name}"}})'
    replicas = asked.replicas or (None if _sets_a_minimum(plan) else own)
    access = At(url=str(asked.url), token_file=asked.token_file, ca=asked.ca)
    wanted = Wanted(matchers=matchers, query=asked.query, start=start, end=end)
    return served(access, wanted, limits, replicas)


def _remarks(
    plan: Plan, asked: Asked, written: tuple[Entry, ...], generation: int | None, *, within: tuple[datetime, datetime]
) -> Iterator[str]:
    """What of the plan or its replicas is not as it seems."""
    if _sets_a_minimum(plan) and asked.replicas is None:
        yield (
            "the plan sets an autoscaler's minimum, so neither its ledger nor the operator's metric tells what ran: "
            "name a series of replicas with --replicas"
        )
    first, last = within
    others = {entry.generation for entry in written if first <= entry.time < last} - {generation}
    if others:
        shown = ", ".join(str(each) for each in sorted(others))
        yield f"planned: by generation {generation} of the plan, as it is now; {shown} decided in these days too"


def _sets_a_minimum(plan: Plan) -> bool:
    return plan.target_ref is not None and plan.target_ref.is_floor
