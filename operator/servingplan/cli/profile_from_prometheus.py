"""``servingplan profile from-prometheus``: the week of a workload from what a Prometheus kept of vLLM's metrics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from servingplan.cli.extras import needed
from servingplan.cli.instants import now, parse_instant
from servingplan.cli.matchers import parse_matchers
from servingplan.cli.profile_options import needs_profiling, printed, suggestion_options, week_options

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_FILE = click.Path(path_type=Path)


@click.command("from-prometheus")
@click.option("--url", required=True, help="Address of the Prometheus, or of what answers as one.")
@click.option("--time-zone", required=True, metavar="ZONE", help="Of the week: Europe/Berlin.")
@click.option("--match", "matchers", multiple=True, metavar="LABEL=VALUE", help="Engines that count: namespace=llm.")
@click.option("--query", metavar="PROMQL", help="Requests/s of a gateway, one series, in the place of vLLM's metrics.")
@click.option("--days", type=click.IntRange(1, 400), default=28, show_default=True, help="How far back.")
@click.option("--end", metavar="T", help="Until when, in the zone.  [default: now]")
@click.option("--token-file", type=_FILE, metavar="FILE", help="Holds a bearer token.")
@click.option("--ca", type=_FILE, metavar="FILE", help="PEM of those who may sign its certificate.")
@week_options
@suggestion_options
def command(
    *,
    url: str,
    time_zone: str,
    matchers: tuple[str, ...],
    query: str | None,
    days: int,
    end: str | None,
    token_file: Path | None,
    ca: Path | None,
    slot: str | None,
    across: str,
    holidays: str | None,
    output: str,
    **wishes: Any,
) -> None:
    """Ask a Prometheus for the arrivals of the past weeks, and show their week, and a schedule for it.

    \b
      servingplan profile from-prometheus --url http://localhost:9090 --match namespace=llm --time-zone Europe/Berlin
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    needs_profiling()
    from servingplan.cli.profile_input import WeekFlags, choices, zone_of  # noqa: PLC0415  loads numpy
    from servingplan.profiling.profile import Source, profile_of  # noqa: PLC0415  as above

    history, access_of, wanted_of = _history()
    zone = zone_of(time_zone, "--time-zone")
    last = _whole_step(now() if end is None else _end(end, zone))
    access = access_of(url=url, token_file=token_file, ca=ca)
    wanted = wanted_of(matchers=parse_matchers(matchers), query=query, start=last - timedelta(days=days), end=last)
    found = history(access, wanted)
    source = Source(queries=found.queries, remarks=found.remarks)
    first_year = datetime.fromtimestamp(found.counted.arrivals.start, zone).year
    week = WeekFlags(slot=slot, across=across, holidays=holidays)
    profile = profile_of(found.counted, source, zone, choices(week, first_year))
    printed(profile, output=output, holidays=holidays, **wishes)


def _history() -> Any:
    with needed("from-prometheus", extra="profile"):
        from servingplan.profiling.asking import Access  # noqa: PLC0415  needs a package of its own
        from servingplan.profiling.history import Wanted, history  # noqa: PLC0415  as above
    return history, Access, Wanted


def _end(text: str, zone: ZoneInfo) -> datetime:
    return parse_instant(text, zone, "--end", after=now() - timedelta(days=1))


def _whole_step(instant: datetime) -> datetime:
    """The last whole five minutes."""
    return datetime.fromtimestamp(instant.timestamp() // 300 * 300, UTC)
