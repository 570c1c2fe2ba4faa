"""Changing a plan in the cluster: read it, decide what this command line is to own, apply, again on a conflict.

In: a function from the live plan to the spec to own. Out: the plan afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from servingplan.cli.cluster import Cluster
from servingplan.errors import Conflict

Json = dict[str, Any]

ATTEMPTS = 5
"""A plan's spec changes rarely, its status every few seconds at most: five reads meet a quiet moment."""


def change(cluster: Cluster, name: str, wanted: Callable[[Json], Json], *, dry_run: bool = False) -> Json:
    """Apply ``wanted(live plan)``. Raises Conflict where somebody else wrote in between every time."""
    last: Conflict | None = None
    for _ in range(ATTEMPTS):
        live = cluster.plan(name)
        try:
            return cluster.apply(live, wanted(live), dry_run=dry_run)
        except Conflict as error:
            last = error
    raise last or Conflict(f"{name} could not be changed")
