"""Who wrote which field of a plan, from its ``managedFields``: what to keep, and whom to warn about.

In: a plan as the cluster shows it. Out: the part of its spec that this command line applied, and other managers'
names. Server-side apply replaces all that a manager owns, so that every apply must repeat what is to stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from servingplan.cli.cluster import MANAGER
from servingplan.errors import Refused

Json = dict[str, Any]
_APPLY = "Apply"


def owned_spec(plan: Json) -> Json:
    """What this command line owns of the spec, with its live values: ``suspend`` and its overrides.

    Raises Refused where its name owns more: the next apply would take that out of the plan.
    """
    spec: Json = {}
    for fields in _fields(plan, mine=True):
        if foreign := _foreign(fields):
            raise Refused(
                f"{', '.join(foreign)} of this plan was applied by {MANAGER}, which only writes suspend and overrides: "
                "apply your manifest again under its own --field-manager with --force-conflicts, and remove these "
                f"entries of {MANAGER} from metadata.managedFields"
            )
        if "f:suspend" in fields:
            spec["suspend"] = bool(plan["spec"].get("suspend", False))
        names = _override_names(fields)
        mine = [override for override in overrides_of(plan) if override["name"] in names]
        if mine:
            spec["schedule"] = {"overrides": mine}
    return spec


def overrides_of(plan: Json) -> Sequence[Json]:
    """All overrides of a plan."""
    return plan["spec"].get("schedule", {}).get("overrides") or []


def own_overrides(spec: Json) -> list[Json]:
    """The overrides in an owned spec."""
    return list(spec.get("schedule", {}).get("overrides", ()))


def with_overrides(spec: Json, overrides: Sequence[Json]) -> Json:
    """An owned spec with these overrides instead of its own."""
    rest = {key: value for key, value in spec.items() if key != "schedule"}
    return {**rest, "schedule": {"overrides": list(overrides)}} if overrides else rest


def others_owning_suspend(plan: Json) -> tuple[str, ...]:
    """Other managers that state ``spec.suspend``."""
    return _names(entry for entry in _entries(plan, mine=False) if "f:suspend" in _spec_fields(entry))


def others_owning_overrides(plan: Json) -> tuple[str, ...]:
    """Other managers that write overrides without server-side apply, and so replace the whole list."""
    return _names(
        entry
        for entry in _entries(plan, mine=False)
        if entry.get("operation") != _APPLY and "f:overrides" in _spec_fields(entry).get("f:schedule", {})
    )


def owner_of_override(plan: Json, name: str) -> str:
    """Who wrote an override; empty where nobody is recorded."""
    names = _names(entry for entry in _entries(plan, mine=None) if name in _override_names(_spec_fields(entry)))
    return ", ".join(names)


def _foreign(fields: Json) -> tuple[str, ...]:
    """Fields that this command line never writes."""
    schedule = [f"spec.schedule.{key[2:]}" for key in fields.get("f:schedule", {}) if key not in {".", "f:overrides"}]
    rest = [f"spec.{key[2:]}" for key in fields if key not in {".", "f:suspend", "f:schedule"}]
    return tuple(sorted([*rest, *schedule]))


def _override_names(fields: Json) -> frozenset[str]:
    """The names in ``f:overrides``, whose keys look like ``k:{"name":"launch"}``."""
    keys = fields.get("f:schedule", {}).get("f:overrides", {})
    return frozenset(json.loads(key[2:])["name"] for key in keys if key.startswith("k:"))


def _fields(plan: Json, *, mine: bool) -> Iterator[Json]:
    return (_spec_fields(entry) for entry in _entries(plan, mine=mine))


def _entries(plan: Json, *, mine: bool | None) -> Iterator[Json]:
    for entry in plan["metadata"].get("managedFields", ()):
        if entry.get("subresource"):
            continue
        ours = entry.get("manager") == MANAGER and entry.get("operation") == _APPLY
        if mine is None or mine == ours:
            yield entry


def _spec_fields(entry: Json) -> Json:
    fields: Json = entry.get("fieldsV1", {}).get("f:spec", {})
    return fields


def _names(entries: Iterator[Json]) -> tuple[str, ...]:
    return tuple(sorted({str(entry.get("manager")) for entry in entries}))
