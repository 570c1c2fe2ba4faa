"""``servingplan profile from-log``: the week of a workload from request logs of any usual format."""

from __future__ import annotations

from typing import Any

import click

from servingplan.cli.profile_options import (
    log_flags,
    log_options,
    needs_profiling,
    printed,
    suggestion_options,
    week_options,
)


@click.command("from-log")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--time-zone", required=True, metavar="ZONE", help="Of the week: Europe/Berlin.")
@log_options
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
    **flags: Any,
) -> None:
    """Read FILES, - for standard input, and show the week of their requests, and a schedule for it.

    Read are CSV, JSON lines, access logs of nginx, Envoy and vLLM, OpenTelemetry spans as JSON, and traces of Azure,
    BurstGPT, Mooncake and ServeGen; packed with gzip too.

    \b
      servingplan profile from-log access.log.gz --time-zone Europe/Berlin
      kubectl logs vllm-0 --timestamps | servingplan profile from-log - --time-zone UTC
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    needs_profiling()
    from servingplan.cli.profile_input import LogFlags, WeekFlags, profile_from_logs  # noqa: PLC0415  needs numpy

    log = LogFlags(time_zone=time_zone, **log_flags(flags))
    profile = profile_from_logs(files, log, WeekFlags(slot=slot, across=across, holidays=holidays))
    printed(profile, output=output, holidays=holidays, **flags)
