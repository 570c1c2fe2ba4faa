"""``servingplan profile diff``: what a plan declares against what was observed, with the patch that mends it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from servingplan.cli.files import one_checked_from
from servingplan.cli.output import JSON, TABLE, YAML, emit, output_option, yaml_text
from servingplan.cli.profile_options import needs_profiling
from servingplan.errors import CheckFailed

if TYPE_CHECKING:
    from servingplan.planning.plan import Plan
    from servingplan.profiling.profile import Profile

PATCH = "patch"
_BEGINNING = 4096


@click.command("diff")
@click.argument("plan_file", metavar="PLAN")
@click.argument("observed", nargs=-1, required=True, metavar="OBSERVED...")
@click.option("--plan", "name", help="The plan of that name, where PLAN holds several.")
@click.option("--check", is_flag=True, help="End with 4 where the plan has too few replicas.")
@output_option(TABLE, JSON, YAML, PATCH)
def command(*, plan_file: str, observed: tuple[str, ...], name: str | None, check: bool, output: str) -> None:
    """Compare the plan in PLAN with OBSERVED: a kept profile, or logs that need no options but the plan's time zone.

    \b
      servingplan profile diff plan.yaml week.json
      servingplan profile diff plan.yaml week.json -o patch > patch.yaml
      kubectl patch splan support-chat --type merge --patch-file patch.yaml
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    needs_profiling()
    from servingplan.profiling.comparison import compared  # noqa: PLC0415  loads numpy
    from servingplan.reporting.profile_difference import difference_document, difference_view  # noqa: PLC0415  as above

    plan, document = one_checked_from(plan_file, name, option="--plan")
    found = compared(plan, document, _profile(plan, observed))
    if output == PATCH:
        click.echo(yaml_text([found.patch]), nl=False)
    else:
        emit(output, difference_document(plan, found), lambda: difference_view(plan, found))
    if check and found.short_hours:
        raise CheckFailed(f"{found.short_hours} hours of the week have too few replicas")


def _profile(plan: Plan, observed: tuple[str, ...]) -> Profile:
    from servingplan.cli.profile_input import LogFlags, WeekFlags, profile_from_logs  # noqa: PLC0415  loads numpy
    from servingplan.profiling.reading import STANDARD_INPUT  # noqa: PLC0415  as above
    from servingplan.profiling.record import is_profile, read_file  # noqa: PLC0415  as above

    first = observed[0]
    if len(observed) == 1 and (first == STANDARD_INPUT or is_profile(_beginning(first))):
        return read_file(first, standard_input=sys.stdin)
    return profile_from_logs(observed, LogFlags(time_zone=plan.zone.key), WeekFlags())


def _beginning(path: str) -> str:
    """How a file begins; empty where it cannot be read, which its reader says."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(_BEGINNING).decode("utf-8", errors="replace")
    except OSError:
        return ""
