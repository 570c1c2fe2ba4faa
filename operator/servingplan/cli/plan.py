"""``servingplan plan``: the coming days of a plan, and what a change would change. Needs no cluster."""

from __future__ import annotations

from typing import Any

import click

from servingplan.cli.files import one_plan_from, plans_from
from servingplan.cli.instants import parse_start
from servingplan.cli.output import (
    HTML,
    JSON,
    MARKDOWN,
    PNG,
    SVG,
    TABLE,
    YAML,
    emit,
    loading_pictures,
    output_option,
    write_image,
)
from servingplan.errors import UsageError
from servingplan.planning.units import exact
from servingplan.reporting.difference import Difference, difference, difference_document
from servingplan.reporting.outlook import Outlook, coming_days, outlook_document
from servingplan.reporting.sentences import sentences

DEFAULT_DAYS = 14
LONGEST_DAYS = 400
"""A year and a little: every yearly date is seen."""


@click.command("plan")
@click.argument("file")
@click.option("--from", "start", metavar="T", help="Start, in the plan's zone; default: today 00:00.")
@click.option("--days", type=click.IntRange(1, LONGEST_DAYS), default=DEFAULT_DAYS, show_default=True)
@click.option("--name", help="The plan of that name, where FILE holds several.")
@click.option("--against", metavar="OLD", help="Show what FILE changes compared with the plan in OLD.")
@click.option("--gpu-hour", metavar="PRICE", type=click.FloatRange(min=0), help="Of one GPU-hour: show costs too.")
@output_option(TABLE, JSON, YAML, HTML, SVG, PNG, MARKDOWN)
def command(
    *,
    file: str,
    start: str | None,
    days: int,
    name: str | None,
    against: str | None,
    gpu_hour: float | None,
    output: str,
) -> None:
    """Show the coming days of the plan in FILE: replicas, lead, GPU-hours against a flat peak.

    FILE may hold ConfigMaps too; a directory or - (standard input) works as well.

    \b
      servingplan plan examples/worked-example.yaml
      servingplan plan new.yaml --against old.yaml -o markdown
      servingplan plan plan.yaml -o html > plan.html
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    price = None if gpu_hour is None else exact(gpu_hour)
    plans = [one_plan_from(file, name, option="--name")] if against or output in {HTML, SVG, PNG} else None
    outlooks = [
        coming_days(plan, parse_start(start, plan.zone), days, price) for plan in plans or plans_from([file], name)
    ]
    found = _difference(against, outlooks[0], days) if against is not None else None
    if output == MARKDOWN:
        _markdown(found)
        return
    if output in {HTML, SVG, PNG}:
        if found is not None:
            raise UsageError(f"--against is shown as table, markdown, json or yaml, not as {output}")
        _picture(outlooks[0], output)
        return
    documents = [_document(outlook, found) for outlook in outlooks]
    emit(output, documents[0] if len(documents) == 1 else documents, lambda: _view(outlooks, found))


def _difference(against: str, new: Outlook, days: int) -> Difference:
    plans = plans_from([against])
    same = [plan for plan in plans if plan.key == new.plan.key]
    if not same and len(plans) > 1:
        raise UsageError(f"{against} holds several plans and none is {new.plan.key}: give the file of the old one")
    return difference(coming_days((same or list(plans))[0], new.start, days, new.gpu_hour), new)


def _markdown(found: Difference | None) -> None:
    from servingplan.reporting.markdown import difference_markdown  # noqa: PLC0415  only where it is asked for

    if found is None:
        raise UsageError("-o markdown shows what a change changes: name the plan before it with --against OLD")
    click.echo(difference_markdown(found))


def _document(outlook: Outlook, found: Difference | None) -> dict[str, Any]:
    document = outlook_document(outlook)
    if found is None:
        return document
    return {**document, "against": {**difference_document(found), "sentences": list(sentences(found))}}


def _view(outlooks: list[Outlook], found: Difference | None) -> Any:
    from servingplan.reporting.tables import (  # noqa: PLC0415  JSON needs no tables
        difference_view,
        outlook_view,
        stacked,
    )

    return stacked([*map(outlook_view, outlooks), *([] if found is None else [difference_view(found)])])


def _picture(outlook: Outlook, output: str) -> None:
    with loading_pictures(output):
        from servingplan.reporting.chart import chart  # noqa: PLC0415  matplotlib takes a second to load
        from servingplan.reporting.html import page  # noqa: PLC0415  as above
    if output == HTML:
        click.echo(page(outlook))
    else:
        write_image(output, lambda: chart(outlook, output), example="plan.png")
