"""Who owns a field of a live object, read from its ``managedFields``.

In: a live object and the path of a field. Out: `FieldOwner` values for the planning layer. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from servingplan.controller.clock import Clock
from servingplan.planning.ownership import FieldOwner

Object = Mapping[str, Any]

REPLICAS = ("f:spec", "f:replicas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of ``managedFields`` that owns the field. The server gives entries of ``/scale`` no time."""

    manager: str
    subresource: str
    time: datetime | None


def entries(live: Object, path: Sequence[str] = REPLICAS) -> tuple[Entry, ...]:
    """The entries that own the field at `path`."""
    found = []
    for entry in live["metadata"].get("managedFields", ()):
        fields: Any = entry.get("fieldsV1", {})
        for key in path:
            fields = fields.get(key) if isinstance(fields, Mapping) else None
        if fields is not None:
            time = entry.get("time")
            found.append(
                Entry(
                    manager=entry.get("manager", "unknown"),
                    subresource=entry.get("subresource", ""),
                    time=datetime.fromisoformat(time) if time else None,
                )
            )
    return tuple(found)


def field_owners(found: Sequence[Entry], *, manager: str, clock: Clock, subresource: str) -> tuple[FieldOwner, ...]:
    """The owners as the ownership rules read them, on the plan's clock. subresource: where we write the field.

    An entry of ours elsewhere is left out: that of a Deployment itself holds the field only between its creation
    and the first ``/scale``.
    """
    return tuple(
        FieldOwner(
            manager=entry.manager,
            time=None if entry.time is None else clock.from_real(entry.time),
            ours=entry.manager == manager,
        )
        for entry in found
        if entry.manager != manager or entry.subresource == subresource
    )


def only_main_entry(found: Sequence[Entry], manager: str) -> bool:
    """True where our main entry is the only owner: an apply without the field would drop it."""
    return [(entry.manager, entry.subresource) for entry in found] == [(manager, "")]


def has_main_entry(found: Sequence[Entry], manager: str) -> bool:
    """True where our main entry still holds the field, as it does after the creation of an object."""
    return (manager, "") in {(entry.manager, entry.subresource) for entry in found}
