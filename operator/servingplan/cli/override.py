"""``servingplan override``: other replicas for some hours, written next to what others manage in the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import click

from servingplan.api.resolve import resolve
from servingplan.cli.changes import change
from servingplan.cli.cluster import Access, Cluster, access_options
from servingplan.cli.instants import now, parse_instant, parse_span
from servingplan.cli.live import live_plan
from servingplan.cli.oncall import Effect, effect, interval, is_over, override_entry
from servingplan.cli.output import emit, output_option, talk
from servingplan.cli.ownership import (
    Json,
    others_owning_overrides,
    overrides_of,
    own_overrides,
    owned_spec,
    owner_of_override,
    with_overrides,
)
from servingplan.errors import UsageError
from servingplan.planning.calendar import Edge
from servingplan.rendering.capacity import as_in_use
from servingplan.rendering.times import local_time, wire_time
from servingplan.reporting.explain import explain


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the person asks for: times as typed, exactly one level."""

    span: str | None
    until: str | None
    start: str | None
    replicas: int | None
    rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An override as it was written, with what it does, and the expired ones that went with it."""

    entry: Json
    effect: Effect
    removed: Sequence[str]


@click.command("override")
@click.argument("name")
@click.option("--for", "span", metavar="SPAN", help="How long, for example 2h or 1h30m.")
@click.option("--until", metavar="T", help="Until when, in the plan's zone: 18:00 or 2026-12-01T18:00.")
@click.option("--from", "start", metavar="T", help="From when, in the plan's zone; default: now.")
@click.option("--replicas", type=click.IntRange(min=0), help="Total replicas, reserve included.")
@click.option("--rps", "rate", type=click.FloatRange(min=0), help="Demand in requests/s; replicas follow.")
@click.option("--dry-run", is_flag=True, help="Ask the cluster, but change nothing.")
@click.option("--list", "listing", is_flag=True, help="List the plan's overrides.")
@click.option("--remove", metavar="OVERRIDE", help="Remove an override that this command wrote.")
@access_options
@output_option()
def command(name: str, dry_run: bool, listing: bool, remove: str | None, output: str, **options: Any) -> None:
    """Ask for other replicas for the plan NAME for some time.

    It is written into the plan as an override that goes before everything else, beside what others manage there.
    Overrides of this command that are over are removed on the way.

    \b
      servingplan override support-chat --for 2h --replicas 7
      servingplan override support-chat --from 18:00 --until 21:00 --rps 40
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    request = Request(**{key: options.pop(key) for key in ("span", "until", "start", "replicas", "rate")})
    stated = any(value is not None for value in (request.span, request.until, request.replicas, request.rate))
    if (listing + (remove is not None) + stated) != 1:
        raise UsageError("give either --for or --until with --replicas or --rps, or --list, or --remove OVERRIDE")
    if stated:
        _check(request)
    cluster = Cluster(Access(**options))
    if listing:
        _list(cluster.plan(name), output)
    elif remove is not None:
        _remove(cluster, name, remove, dry_run=dry_run, output=output)
    else:
        _write(cluster, name, request, dry_run=dry_run, output=output)


def _check(request: Request) -> None:
    if (request.span is None) == (request.until is None):
        raise UsageError("say how long: exactly one of --for (2h) and --until (18:00)")
    if (request.replicas is None) == (request.rate is None):
        raise UsageError("say how much: exactly one of --replicas (the total) and --rps (the demand)")


# ---- writing ----------------------------------------------------------------------------------------------


def _write(cluster: Cluster, name: str, request: Request, *, dry_run: bool, output: str) -> None:
    written: list[Written] = []

    def wanted(live: Json) -> Json:
        found, spec = _prepared(cluster, live, request, now())
        written[:] = [found]
        return spec

    plan = change(cluster, name, wanted, dry_run=dry_run)
    found = written[0]
    emit(output, _document(plan, found, dry_run=dry_run), lambda: _sentence(plan, found, dry_run=dry_run))
    for warning in (*found.effect.warnings, *_replaced_by(plan)):
        talk(f"Warning: {warning}")


def _prepared(cluster: Cluster, live: Json, request: Request, present: datetime) -> tuple[Written, Json]:
    """The override with its effect, and all that this command line is to own. Raises InvalidPlan, UsageError."""
    references, zone = cluster.references_of(live), live_plan(live).zone
    start = present
    if request.start is not None:
        start = parse_instant(request.start, zone, "--from", after=present)
    if request.span is not None:
        end = start + parse_span(request.span, "--for")
    else:
        end = parse_instant(request.until or "", zone, "--until", after=start, edge=Edge.END)
    entry = override_entry(
        start=start,
        end=end,
        zone=zone,
        replicas=request.replicas,
        rate=request.rate,
        taken=[override["name"] for override in overrides_of(live)],
    )
    spec = owned_spec(live)
    own = own_overrides(spec)
    kept = [override for override in own if not is_over(override, zone, present)]
    removed = tuple(override["name"] for override in own if override not in kept)
    others = [override for override in overrides_of(live) if override["name"] not in removed]
    status = live.get("status") or {}
    before = as_in_use(resolve(_with(live, others), references), status)
    after = as_in_use(resolve(_with(live, [*others, entry]), references), status)
    current = status.get("currentReplicas")
    running = explain(replace(before, suspend=False), present).decision.asked if current is None else int(current)
    written = Written(entry=entry, effect=effect(after, entry["name"], running, present), removed=removed)
    return written, with_overrides(spec, [*kept, entry])


def _with(live: Json, overrides: Sequence[Json]) -> Json:
    """The live plan with these overrides, as a document to resolve."""
    schedule = {**live["spec"]["schedule"], "overrides": list(overrides)}
    return {**live, "spec": {**live["spec"], "schedule": schedule}}


def _replaced_by(plan: Json) -> Sequence[str]:
    others = others_owning_overrides(plan)
    if not others:
        return ()
    return (f"spec.schedule.overrides is also written as a whole by {', '.join(others)}: its next apply removes this",)


def _document(plan: Json, written: Written, *, dry_run: bool) -> Json:
    metadata, found = plan["metadata"], written.effect
    return {
        "plan": {"namespace": metadata["namespace"], "name": metadata["name"]},
        "override": written.entry,
        "from": wire_time(found.start),
        "to": wire_time(found.end),
        "replicas": found.replicas,
        "askedAt": wire_time(found.asked_at),
        "readyAt": wire_time(found.ready_at),
        "removed": list(written.removed),
        "warnings": [*found.warnings, *_replaced_by(plan)],
        "dryRun": dry_run,
    }


def _sentence(plan: Json, written: Written, *, dry_run: bool) -> str:
    zone, found, metadata = live_plan(plan).zone, written.effect, plan["metadata"]
    key = f"{metadata['namespace']}/{metadata['name']}"
    level = _level(written.entry)
    span = f"from {local_time(found.start, zone)} to {local_time(found.end, zone)}"
    lines = [f"{key}: {level} {span}, as {written.entry['name']}{' (dry run: not written)' if dry_run else ''}"]
    if found.ready_at > found.asked_at:
        asked, ready = local_time(found.asked_at, zone), local_time(found.ready_at, zone)
        lines.append(f"{found.replicas} replicas are asked for at {asked} and ready at about {ready}")
    if written.removed:
        lines.append(f"Removed, as they are over: {', '.join(written.removed)}")
    return "\n".join(lines)


def _level(entry: Json) -> str:
    if "replicas" in entry:
        return f"{entry['replicas']} replicas"
    return f"{entry['requestsPerSecond']:g} requests/s"


# ---- listing and removing ---------------------------------------------------------------------------------


def _list(plan: Json, output: str) -> None:
    zone, present = live_plan(plan).zone, now()
    documents = []
    for override in overrides_of(plan):
        start, end = interval(override, zone)
        state = "over" if end <= present else "active" if start <= present else "ahead"
        documents.append({**override, "state": state, "writtenBy": owner_of_override(plan, override["name"])})
    if not documents:
        talk("the plan has no overrides")
    emit(output, documents, lambda: _table(documents, plan))


def _table(documents: Sequence[Json], plan: Json) -> Any:
    from servingplan.reporting.tables import plain_table  # noqa: PLC0415  JSON needs no tables

    zone = live_plan(plan).zone
    table = plain_table("override", "from", "to", "level", "state", "written by")
    for found in documents:
        start, end = (local_time(instant, zone) for instant in interval(found, zone))
        table.add_row(found["name"], start, end, _level(found), found["state"], found["writtenBy"])
    return table if documents else ""


def _remove(cluster: Cluster, name: str, override: str, *, dry_run: bool, output: str) -> None:
    def wanted(live: Json) -> Json:
        spec = owned_spec(live)
        own = own_overrides(spec)
        kept = [found for found in own if found["name"] != override]
        if len(kept) == len(own):
            raise UsageError(_not_ours(live, override))
        return with_overrides(spec, kept)

    plan = change(cluster, name, wanted, dry_run=dry_run)
    key = f"{plan['metadata']['namespace']}/{plan['metadata']['name']}"
    left = override in [found["name"] for found in overrides_of(plan)]
    document = {"removed": [] if left else [override], "dryRun": dry_run}
    emit(output, document, lambda: f"{key}: {override} {'stays' if left else 'removed'}")
    if left:
        talk(f"Warning: {override} is also written by {owner_of_override(plan, override)}: remove it there")


def _not_ours(live: Json, override: str) -> str:
    names = [found["name"] for found in overrides_of(live)]
    if override in names:
        return f"{override} was written by {owner_of_override(live, override)}: remove it there"
    return f"the plan has no override {override}; it has: {', '.join(names) or 'none'}"
