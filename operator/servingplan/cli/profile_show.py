"""``servingplan profile show``: a kept profile, as the week at a glance, data, picture, page, or what to apply."""

from __future__ import annotations

import sys
from typing import Any

import click

from servingplan.cli.profile_options import holidays_option, needs_profiling, printed, suggestion_options


@click.command("show")
@click.argument("file", metavar="FILE")
@holidays_option
@suggestion_options
def command(*, file: str, output: str, **wishes: Any) -> None:
    """Show the profile in FILE, which `profile from-log` or `from-prometheus` wrote with -o json; - for standard input.

    \b
      servingplan profile show week.json
      servingplan profile show week.json --name support-chat --capacity 5 -o manifests > plan.yaml
      servingplan profile show week.json -o html > week.html
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    needs_profiling()
    from servingplan.profiling.record import read_file  # noqa: PLC0415  loads numpy

    printed(read_file(file, standard_input=sys.stdin), output=output, **wishes)
