"""One key of one of the ConfigMaps that a plan refers to.

Place in the flow: ``profiles`` and ``calendars`` read `References` through here.
"""

from __future__ import annotations

from servingplan.api.references import Content, Kind, Reference, References
from servingplan.errors import InputError, Problem

MAX_REPORTED = 10
"""Problems reported of one ConfigMap: enough to see what is wrong, few enough to read."""


def data_of(references: References, name: str) -> Content | None:
    """The data of a ConfigMap; None where there is none."""
    return references.get(Reference(Kind.CONFIG_MAP, name))


def entry_of(references: References, name: str, keys: tuple[str, ...], path: str) -> tuple[str, str]:
    """The first of `keys` that the ConfigMap has, and its text. Raises InputError where there is none."""
    data = data_of(references, name)
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
