"""``servingplan profile from-log``: the week of a workload from request logs of any usual format."""

from __future__ import annotations

from typing import Any

import click

from servingplan.cli.profile_options import needs_profiling, printed, suggestion_options, week_options


@click.command("from-log")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--time-zone", required=True, metavar="ZONE", help="Of the week: Europe/Berlin.")
@click.option("--log-time-zone", metavar="ZONE", help="Of logged times without an offset.  [default: --time-zone]")
@click.option("--start", metavar="T", help="When a log begins that counts its times from 0.")
@click.option("--year", type=click.IntRange(2000, 2100), help="Of times that name none, as vLLM's.")
@click.option("--format", "form", metavar="FORMAT", help="Format of all FILES.  [default: each is recognised]")
@click.option("--column", "columns", multiple=True, metavar="MEANING=NAME", help="Which column is what: time=ts.")
@click.option("--path", "paths", metavar="REGEX", help="Paths of requests that count.  [default: those for tokens]")
@click.option(
    "--broken",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Lines of a file that may be broken.",
)
@click.option("--deferrable", multiple=True, metavar="WHAT=VALUE", help="Requests that can wait: tenant=nightly.")
@week_options
@suggestion_options
def command(
    *,
    files: tuple[str, ...],
    slot: str | None,
    across: str,
    holidays: str | None,
    output: str,
    time_zone: str,
    log_time_zone: str | None,
    start: str | None,
    year: int | None,
    form: str | None,
    columns: tuple[str, ...],
    paths: str | None,
    broken: float,
    deferrable: tuple[str, ...],
    **wishes: Any,
) -> None:
    """Read FILES, - for standard input, and show the week of their requests, and a schedule for it.

    Read are CSV, JSON lines, access logs of nginx, Envoy and vLLM, OpenTelemetry spans as JSON, and traces of Azure,
    BurstGPT, Mooncake and ServeGen; packed with gzip too.

    \b
      servingplan profile from-log access.log.gz --time-zone Europe/Berlin
      kubectl logs vllm-0 --timestamps | servingplan profile from-log - --time-zone UTC
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    needs_profiling()
    from servingplan.cli.profile_input import PATHS, LogFlags, WeekFlags, profile_from_logs  # noqa: PLC0415  needs numpy

    log = LogFlags(
        time_zone=time_zone,
        log_time_zone=log_time_zone,
        start=start,
        year=year,
        form=form,
        columns=columns,
        paths=paths or PATHS,
        broken=broken,
        deferrable=deferrable,
    )
    profile = profile_from_logs(files, log, WeekFlags(slot=slot, across=across, holidays=holidays))
    printed(profile, output=output, holidays=holidays, **wishes)
