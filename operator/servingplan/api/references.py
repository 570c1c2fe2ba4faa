"""What a plan refers to: which objects of its namespace they are, and what of each of them decides.

Place in the flow: whoever calls ``resolve`` brings `References`, the contents of what `referenced` names: the operator
from its watches, the command line from files or the cluster. A new kind is one entry in each table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from servingplan.api.evaluated import evaluation
from servingplan.api.kinds import API_VERSION
from servingplan.api.schema import plan_schema, walk
from servingplan.planning.acceptance import Found, Missing

Content = Mapping[str, Any]

EVALUATION = "evaluation"
"""The only entry of a ModelEvaluation's content."""


class Kind(StrEnum):
    """The kinds that a plan may refer to."""

    CONFIG_MAP = "ConfigMap"
    MODEL_EVALUATION = "ModelEvaluation"
    BENCHMARK = "CapacityBenchmark"


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """One object that a plan refers to, in the plan's namespace."""

    kind: Kind
    name: str


References = Mapping[Reference, Content | None]
"""What decides of the objects that a plan refers to; None, or no entry, where there is no such object."""

API_VERSIONS: Mapping[Kind, str] = {
    Kind.CONFIG_MAP: "v1",
    Kind.BENCHMARK: API_VERSION,
    Kind.MODEL_EVALUATION: API_VERSION,
}

_FIELDS: Mapping[str, Kind] = {
    "configMap": Kind.CONFIG_MAP,
    "benchmarkRef": Kind.BENCHMARK,
    "evaluationRef": Kind.MODEL_EVALUATION,
}
"""The fields of a plan that hold the name of an object, by how their path ends."""


def referenced(document: Mapping[str, Any]) -> frozenset[Reference]:
    """What a plan refers to, of malformed documents too."""
    return frozenset(
        Reference(_FIELDS[field], value["name"])
        for path, value, _ in walk(document, plan_schema())
        if (field := path.rpartition(".")[2]) in _FIELDS
        and isinstance(value, Mapping)
        and isinstance(value.get("name"), str)
    )


def content(kind: Kind, live: Mapping[str, Any]) -> Content:
    """What decides of an object as the cluster or a file has it."""
    return _CONTENTS[kind](live)


def unreadable(kind: Kind) -> Content | None:
    """What stands for an object that may not be read; None where no plan of that kind acts without it."""
    return {EVALUATION: Missing.UNREADABLE} if kind is Kind.MODEL_EVALUATION else None


def found_evaluation(references: References, name: str) -> Found:
    """The evaluation of a name, or why there is none."""
    known = references.get(Reference(Kind.MODEL_EVALUATION, name))
    found: Found = Missing.ABSENT if known is None else known[EVALUATION]
    return found


def _text_entries(config_map: Mapping[str, Any]) -> Content:
    """As the API server holds it: text only. A number in a ConfigMap's data is refused by kubectl too."""
    data = config_map.get("data")
    if not isinstance(data, Mapping):
        return {}
    return {key: value for key, value in data.items() if isinstance(value, str)}


def _result(benchmark: Mapping[str, Any]) -> Content:
    """What was measured; where nothing was yet, how far it is."""
    status = benchmark.get("status")
    if not isinstance(status, Mapping):
        return {}
    found = {key: status[key] for key in ("capacity", "atCapacity", "fingerprint") if key in status}
    conditions = (one for one in status.get("conditions") or () if isinstance(one, Mapping))
    complete = next((one for one in conditions if one.get("type") == "Complete"), None)
    if complete is not None and "capacity" not in found:
        found["complete"] = {key: complete.get(key) for key in ("status", "reason", "message")}
    return found


_CONTENTS: Mapping[Kind, Callable[[Mapping[str, Any]], Content]] = {
    Kind.CONFIG_MAP: _text_entries,
    Kind.BENCHMARK: _result,
    Kind.MODEL_EVALUATION: lambda live: {EVALUATION: evaluation(live)},
}
