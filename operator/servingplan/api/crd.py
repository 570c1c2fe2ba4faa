"""The CustomResourceDefinitions, generated from the wire models.

Place in the flow: ``servingplan crd`` prints them; ``python -m servingplan.api.crd FOLDER...`` writes one file of each,
and a test fails when one differs. The output depends on nothing but the models.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from servingplan.api.kinds import GROUP, KINDS, VERSION, Column, Kind
from servingplan.api.schema import schema_of

_HEADER = "# Generated from operator/servingplan/api by `servingplan crd`. Do not edit.\n"

CATEGORY = "servingplan-all"
"""``kubectl get servingplan-all`` lists all kinds. A category with a kind's own name would take the name from it."""


def custom_resource_definition(kind: Kind) -> dict[str, Any]:
    """The definition of a kind, as a plain object."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "categories": [CATEGORY],
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "shortNames": [kind.short_name],
                "singular": kind.name.lower(),
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": schema_of(kind.model)},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def _column(column: Column) -> dict[str, Any]:
    wide = {"priority": 1} if column.wide else {}
    return {"name": column.name, "type": column.type, "jsonPath": column.path, **wide}


def file_name(kind: Kind) -> str:
    """The definition's file in crds/."""
    return f"{GROUP}_{kind.plural}.yaml"


def crd_yaml(kind: Kind) -> str:
    """The definition of a kind as YAML, the same bytes every time."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.representer.ignore_aliases = lambda _: True
    yaml.width = 110
    text = io.StringIO()
    yaml.dump(custom_resource_definition(kind), text)
    return _HEADER + text.getvalue()


def all_crds_yaml() -> str:
    """The definitions of all kinds, one document each."""
    return "---\n".join(crd_yaml(kind) for kind in KINDS)


if __name__ == "__main__":
    for directory in sys.argv[1:]:
        for each in KINDS:
            Path(directory, file_name(each)).write_text(crd_yaml(each), encoding="utf-8")
