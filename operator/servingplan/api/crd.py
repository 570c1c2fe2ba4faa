"""The CustomResourceDefinition, generated from the wire models.

Place in the flow: ``python -m servingplan.api.crd > crds/servingplan.dev_servingplans.yaml``; a test fails when the
file differs. The output depends on nothing but the models.
"""

from __future__ import annotations

import io
import sys
from typing import Any

from ruamel.yaml import YAML

from servingplan.api.schema import plan_schema
from servingplan.api.v1alpha1 import GROUP, KIND, PLURAL, VERSION

_HEADER = "# Generated from operator/servingplan/api by `servingplan crd`. Do not edit.\n"

_COLUMNS = (
    ("Window", "string", ".status.window", 0),
    ("Desired", "integer", ".status.desiredReplicas", 0),
    ("Ready replicas", "integer", ".status.readyReplicas", 0),
    ("Next", "string", ".status.nextChange.summary", 0),
    ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', 0),
    ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason', 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Floor", "integer", ".status.floorReplicas", 1),
    ("Reserve", "integer", ".status.reserveReplicas", 1),
    ("Lead", "string", ".status.leadTime.effective", 1),
)
"""Name, type, path and priority; priority 1 shows with ``-o wide``."""


def custom_resource_definition() -> dict[str, Any]:
    """The CRD as a plain object."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "categories": ["servingplan"],
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "shortNames": ["splan"],
                "singular": KIND.lower(),
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
                    "schema": {"openAPIV3Schema": plan_schema()},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def _column(name: str, kind: str, path: str, priority: int) -> dict[str, Any]:
    wide = {"priority": priority} if priority else {}
    return {"name": name, "type": kind, "jsonPath": path, **wide}


def crd_yaml() -> str:
    """The CRD as YAML, the same bytes every time."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.representer.ignore_aliases = lambda _: True
    yaml.width = 110
    text = io.StringIO()
    yaml.dump(custom_resource_definition(), text)
    return _HEADER + text.getvalue()


if __name__ == "__main__":
    sys.stdout.write(crd_yaml())
