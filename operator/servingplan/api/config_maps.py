"""The ConfigMaps that a plan refers to: which they are, and one key of one of them.

Place in the flow: whoever calls ``resolve`` brings a `ConfigSource`; ``profiles`` and ``calendars`` read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servingplan.api.schema import plan_schema, walk
from servingplan.errors import InputError, Problem

ConfigSource = Mapping[str, Mapping[str, str] | None]
"""`data` of the ConfigMaps of the plan's namespace, by name; None, or no entry, where there is none."""

MAX_REPORTED = 10
"""Problems reported of one ConfigMap: enough to see what is wrong, few enough to read."""


def referenced_config_maps(document: Mapping[str, Any]) -> frozenset[str]:
    """Names of the ConfigMaps that a plan refers to, of malformed documents too."""
    return frozenset(
        value["name"]
        for path, value, _ in walk(document, plan_schema())
        if path.endswith(".configMap") and isinstance(value, Mapping) and isinstance(value.get("name"), str)
    )


def entry_of(config: ConfigSource, name: str, keys: tuple[str, ...], path: str) -> tuple[str, str]:
    """The first of `keys` that the ConfigMap has, and its text. Raises InputError where there is none."""
    data = config.get(name)
    where = f"{path}.configMap.name"
    wanted = " or ".join(keys)
    if data is None:
        message = f"ConfigMap {name!r} does not exist in the plan's namespace: create it with the key {wanted}"
        raise InputError(Problem(path=where, reason="ConfigMapNotFound", message=message))
    for key in keys:
        if key in data:
            if data[key].strip():
                return key, data[key]
            message = f"key {key} of ConfigMap {name!r} is empty: fill it, or remove the reference"
            raise InputError(Problem(path=where, reason="ConfigMapEmpty", message=message))
    found = ", ".join(sorted(data)) or "none"
    message = (
        f"ConfigMap {name!r} has no key {wanted} in its data (keys there: {found}); binaryData is not read: "
        "store it as text"
    )
    raise InputError(Problem(path=where, reason="ConfigMapKeyMissing", message=message))


def limited(problems: list[Problem]) -> tuple[Problem, ...]:
    """The first `MAX_REPORTED` problems, the last of them saying how many more there are."""
    if len(problems) <= MAX_REPORTED:
        return tuple(problems)
    last = problems[MAX_REPORTED - 1]
    more = len(problems) - MAX_REPORTED
    message = f"{last.message} (and {more} more problems in it)"
    return (*problems[: MAX_REPORTED - 1], Problem(path=last.path, reason=last.reason, message=message))
