"""Lists whose items have a name: laid over one another by name, as Kubernetes does with its own lists.

In: two pieces of Kubernetes JSON. Out: one piece, or the pairs that belong together. Knows the names of list
fields and nothing else about kinds. Input is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LIST_KEYS: Mapping[str, tuple[str, ...]] = {
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port", "protocol"),
    "resourceClaims": ("name",),
    "tolerations": ("key", "effect"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""By field: what names an item of its list. Lists that are not here are one value."""

_KEY_DEFAULTS = {"protocol": "TCP"}
"""What the server fills in where a naming field is left out."""

_ONE_SOURCE = frozenset({"env", "volumes"})
"""Lists whose items hold, beside the name, exactly one of several fields."""

Key = tuple[Any, ...]


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` laid over `below`: mappings deep, named lists by name, anything else replaced; null takes out."""
    result = dict(below)
    for field, value in above.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = _merged_value(field, result.get(field), value)
    return result


def by_key(field: str, items: Sequence[Any]) -> dict[Key, Any] | None:
    """A list's items by name; None where the list is one value, or an item has no name of its own."""
    naming = LIST_KEYS.get(field)
    if naming is None or not all(isinstance(item, Mapping) for item in items):
        return None
    named = {tuple(item.get(key, _KEY_DEFAULTS.get(key)) for key in naming): item for item in items}
    return named if len(named) == len(items) else None


def _merged_value(field: str, below: Any, above: Any) -> Any:
    if isinstance(above, Mapping):
        return merged(below if isinstance(below, Mapping) else {}, above)
    if isinstance(above, list | tuple):
        return _merged_list(field, below if isinstance(below, list | tuple) else (), above)
    return above


def _merged_list(field: str, below: Sequence[Any], above: Sequence[Any]) -> list[Any]:
    old, new = by_key(field, below), by_key(field, above)
    if old is None or new is None:
        return [merged({}, item) if isinstance(item, Mapping) else item for item in above]
    return [_merged_item(field, old.get(key, {}), new.get(key, {})) for key in old | new]


def _merged_item(field: str, below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """An item that names another source takes the place of ours: two sources at once are refused."""
    if field in _ONE_SOURCE and above and set(above) != set(below):
        return merged({}, above)
    return merged(below, above)
