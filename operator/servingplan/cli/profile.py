"""``servingplan profile``: a workload from what was logged of it, and the plan that it suggests. Needs no cluster."""

from __future__ import annotations

import click

from servingplan.cli.profile_diff import command as diff
from servingplan.cli.profile_from_log import command as from_log
from servingplan.cli.profile_from_prometheus import command as from_prometheus
from servingplan.cli.profile_show import command as show


@click.group("profile", commands=[from_log, from_prometheus, show, diff])
def command() -> None:
    """Learn the week of a workload from its logs, and suggest a plan.

    \b
      servingplan profile from-log access.log.gz --time-zone Europe/Berlin -o json > week.json
      servingplan profile show week.json --name support-chat --capacity 5 -o manifests > plan.yaml
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
