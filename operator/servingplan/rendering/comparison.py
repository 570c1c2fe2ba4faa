"""Whether the cluster has what is rendered, so that an apply that changes nothing is never sent.

In: a rendered and a live object. Out: yes or no, and a hash that means the same for both. Knows how the server
stores things: defaults added, quantities rewritten, empty values left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from servingplan.rendering.merge import by_key
from servingplan.rendering.metadata import stable_hash

_QUANTITY_MAPS = frozenset({"limits", "requests"})
_QUANTITY_FIELDS = frozenset({("emptyDir", "sizeLimit"), ("resourceFieldRef", "divisor")})
"""Where a string or number is a quantity, for which 1 and 1000m are the same: all of a map, or one field."""

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30),
    "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip

_TRISTATE = frozenset({
    "allowPrivilegeEscalation", "automountServiceAccountToken", "blockOwnerDeletion", "controller",
    "enableServiceLinks", "fsGroup", "hostUsers", "maxSurge", "maxUnavailable", "minAvailable", "optional",
    "privileged", "readOnlyRootFilesystem", "replicas", "revisionHistoryLimit", "runAsGroup", "runAsNonRoot",
    "runAsUser", "setHostnameAsFQDN", "shareProcessNamespace", "terminationGracePeriodSeconds",
})  # fmt: skip
"""Where "not set" means something else than zero or false; all other empty values the server leaves out."""


def contained(rendered: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """True where the live object has all that is rendered, so that no apply is needed.

    What else the live object has, be it defaults of the server or fields of others, is not ours. What we no
    longer render is seen by the hash that every rendered object carries.
    """
    return _contained("", rendered, live)


def template_hash(manifest: Mapping[str, Any]) -> str:
    """16 hex digits over a Deployment's pod template.

    As the server writes it or as we do, a template that means the same has the same hash: quantities count as
    numbers, and what the server does not store is left out.
    """
    return stable_hash(_normal("", manifest["spec"]["template"]))


def quantity(value: str | float) -> Decimal | None:
    """A Kubernetes quantity as a number (``500m`` is 0.5, ``1Ki`` is 1024); None where it is none."""
    text = str(value)
    number = text.rstrip("numkKMGTPEi")
    try:
        return Decimal(number) * _SUFFIXES[text[len(number) :]]
    except (InvalidOperation, KeyError):
        return None


def _contained(field: str, rendered: Any, live: Any) -> bool:
    if isinstance(rendered, Mapping):
        return isinstance(live, Mapping) and all(
            _field_contained(field, name, value, live) for name, value in rendered.items()
        )
    if isinstance(rendered, list | tuple):
        return isinstance(live, list | tuple) and _list_contained(field, rendered, live)
    return isinstance(rendered, bool) == isinstance(live, bool) and bool(rendered == live)


def _field_contained(parent: str, name: str, rendered: Any, live: Mapping[str, Any]) -> bool:
    if name not in live:
        return _left_out(name, rendered)
    if _is_quantity(parent, name):
        return _same_quantity(rendered, live[name])
    return _contained(name, rendered, live[name])


def _left_out(name: str, rendered: Any) -> bool:
    """True where the server does not store the value because it is the type's empty one."""
    return rendered is None or (not rendered and name not in _TRISTATE)


def _same_quantity(rendered: Any, live: Any) -> bool:
    ours, theirs = quantity(rendered), quantity(live)
    return ours == theirs if ours is not None and theirs is not None else bool(rendered == live)


def _list_contained(field: str, rendered: Sequence[Any], live: Sequence[Any]) -> bool:
    ours, theirs = by_key(field, rendered), by_key(field, live)
    if ours is None or theirs is None:
        return len(rendered) == len(live) and all(
            _contained(field, mine, other) for mine, other in zip(rendered, live, strict=True)
        )
    return all(key in theirs and _contained("", item, theirs[key]) for key, item in ours.items())


def _normal(field: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _normal_quantity(item) if _is_quantity(field, name) else _normal(name, item)
            for name, item in value.items()
            if not _left_out(name, item)
        }
    return [_normal("", item) for item in value] if isinstance(value, list | tuple) else value


def _normal_quantity(value: Any) -> Any:
    number = quantity(value)
    return value if number is None else number


def _is_quantity(parent: str, name: str) -> bool:
    return parent in _QUANTITY_MAPS or (parent, name) in _QUANTITY_FIELDS
