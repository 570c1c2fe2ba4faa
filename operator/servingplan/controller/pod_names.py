"""Which pods of the past were a workload's: by their names, because nothing else of them is left in a Prometheus.

In: a pod as the cluster has it. Out: a pattern, in the form that Go's RE2 and Python both read. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]

_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
"""What Kubernetes makes random parts of names from (k8s.io/apimachinery, util/rand): no vowels, hence no words."""

_HASH_LABEL = "pod-template-hash"


def pods_like(pod: Object) -> str:
    """A pattern of the names of all pods that the same workload had, of whatever revision."""
    metadata = pod["metadata"]
    name, begins = metadata["name"], metadata.get("generateName", "")
    template = metadata.get("labels", {}).get(_HASH_LABEL)
    if template and begins.endswith(f"-{template}-"):
        pattern = f"{re.escape(begins.removesuffix(f'{template}-'))}{_RANDOM}{{1,10}}-{_RANDOM}{{5}}"
        if re.fullmatch(pattern, name):
            return pattern
    if template and f"-{template}" in begins:  # a name that is long is cut off, in the middle of the hash or before it
        return f"{re.escape(begins[: begins.index(f'-{template}') + 1])}.*"
    ordinal = re.fullmatch(r"(.*-)[0-9]+", name)
    if ordinal:
        return f"{re.escape(ordinal[1])}[0-9]+"
    return f"{re.escape(begins)}.*" if begins else re.escape(name)
