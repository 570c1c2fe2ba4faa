"""A plan of the cluster as reports need it: as its operator takes it, its ledger, and what time it is for it.

In: a plan of the cluster. Out: a `Plan`, entries, and the plan's name and zone for reports.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from servingplan.api.resolve import resolve
from servingplan.cli.cluster import Cluster
from servingplan.cli.instants import now, parse_instant, parse_span
from servingplan.cli.live import live_plan
from servingplan.errors import UsageError
from servingplan.planning.ledger import Entry
from servingplan.planning.plan import Plan
from servingplan.rendering.capacity import as_in_use
from servingplan.rendering.ledger import entries_of
from servingplan.reporting.ledger import PlanName
from servingplan.reporting.local import midnight


def plan_name(plan: dict[str, Any]) -> PlanName:
    """The name and zone of a plan in the cluster."""
    metadata = plan["metadata"]
    return PlanName(namespace=metadata["namespace"], name=metadata["name"], zone=live_plan(plan).zone)


def in_use(cluster: Cluster, plan: dict[str, Any]) -> Plan:
    """The plan as its operator takes it, with the capacity that is in use. Raises InvalidPlan and ClusterError."""
    return as_in_use(resolve(plan, cluster.references_of(plan)), plan.get("status") or {})


def entries(cluster: Cluster, plan: dict[str, Any]) -> tuple[Entry, ...]:
    """The entries of a plan's ledger, the oldest first; none where it has none. Raises ClusterError."""
    return entries_of(cluster.ledger(plan))


def present(plan: dict[str, Any]) -> datetime:
    """What time it is for a plan: its operator may follow a demo clock, of which status tells."""
    told = live_plan(plan).demo_clock
    if not told:
        return now()
    from servingplan.controller.clock import parse_demo_clock  # noqa: PLC0415  only where a demo clock is on

    try:
        return parse_demo_clock(told).now()
    except UsageError:
        return now()


def parse_moment(text: str, zone: ZoneInfo, option: str, *, at: datetime) -> datetime:
    """An instant as typed, where a time alone is today's, be it past or to come. at: what time it is."""
    return parse_instant(text, zone, option, after=midnight(at.astimezone(zone).date(), zone))


def parse_since(text: str, zone: ZoneInfo, *, at: datetime) -> datetime:
    """``--since`` as typed: an instant, or so long ago (``24h``)."""
    if text[-1:] in {"h", "m", "s"}:
        return at - parse_span(text, "--since")
    instant = parse_moment(text, zone, "--since", at=at)
    return instant if instant <= at else instant - timedelta(days=1)
