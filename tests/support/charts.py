"""Renders the chart with the real helm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from scripts.tools import helm

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "servingplan"

RELEASE = "release"
NAMESPACE = "ops"

Object = dict[str, Any]


class Rejected(Exception):
    """Helm does not accept the values; the message is what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One resource that a role speaks of, with its verbs."""

    group: str
    resource: str
    verbs: frozenset[str]
    names: tuple[str, ...]


def run_helm(*arguments: str) -> str:
    answer = subprocess.run(
        [str(helm()), *arguments], capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL
    )
    if answer.returncode != 0:
        raise Rejected(answer.stderr + answer.stdout)
    return answer.stdout


def render(values: Mapping[str, Any] | None = None, *, namespace: str = NAMESPACE) -> list[Object]:
    """The chart's objects with these values, in the order that helm applies them."""
    settings = [f"--set-json={key}={json.dumps(value)}" for key, value in (values or {}).items()]
    text = run_helm("template", RELEASE, str(CHART), f"--namespace={namespace}", *settings)
    return [document for document in YAML(typ="safe", pure=True).load_all(text) if document]


def of_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    return [item for item in objects if item["kind"] == kind]


def rules(*roles: Object) -> list[Rule]:
    """What the roles grant, one entry for each resource."""
    return [
        Rule(
            group=group,
            resource=resource,
            verbs=frozenset(rule["verbs"]),
            names=tuple(rule.get("resourceNames", ())),
        )
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
