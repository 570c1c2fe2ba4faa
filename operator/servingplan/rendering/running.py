"""The pod template that runs, kept when only the operator renders it differently, and what ran before it.

In: a rendered and the live Deployment. Out: the Deployment to apply. An upgrade of the operator must not start
every engine anew: the new rendering comes with the next edit of the engine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from servingplan.planning.target import Engine
from servingplan.rendering.comparison import template_hash
from servingplan.rendering.engine import engine_hash
from servingplan.rendering.metadata import (
    ENGINE_ANNOTATION,
    TEMPLATE_ANNOTATION,
    VARIANT_ANNOTATION,
    VARIANT_BEFORE_ANNOTATION,
    Manifest,
    sealed,
)

_OF_TEMPLATE = (TEMPLATE_ANNOTATION, VARIANT_ANNOTATION)
"""What says something of the template as it was rendered, and stays with it."""


def keep_running_template(rendered: Manifest, live: Mapping[str, Any], manager: str) -> Manifest:
    """The rendered Deployment, with the template that `manager` applied last where the engine is unedited.

    The rendered one as it is where the user edited the engine, where nothing differs, and where somebody else
    changed what we applied: that is put right, not kept.
    """
    wanted, stored = _annotations(rendered), _annotations(live)
    if wanted[ENGINE_ANNOTATION] != stored.get(ENGINE_ANNOTATION):
        return rendered
    if wanted[TEMPLATE_ANNOTATION] == stored.get(TEMPLATE_ANNOTATION):
        return rendered
    template = applied_fields(live, manager).get("spec", {}).get("template", {})
    kept = rendered | {"spec": rendered["spec"] | {"template": template}}
    if template_hash(kept) != stored.get(TEMPLATE_ANNOTATION):
        return rendered
    return _annotated(kept, {name: stored[name] for name in _OF_TEMPLATE if name in stored})


def remember_variant(wanted: Manifest, live: Mapping[str, Any]) -> Manifest:
    """The Deployment to apply, with the digest of what ran before its engine; as it is where nothing else ever did."""
    now, stored = _annotations(wanted), _annotations(live)
    ran = stored.get(VARIANT_ANNOTATION)
    before = stored.get(VARIANT_BEFORE_ANNOTATION) if ran == now[VARIANT_ANNOTATION] else ran
    return wanted if before is None else _annotated(wanted, {VARIANT_BEFORE_ANNOTATION: before})


def is_edited(live: Mapping[str, Any], engine: Engine) -> bool:
    """Whether the live Deployment was made of another engine than the stated one."""
    return _annotations(live).get(ENGINE_ANNOTATION) != engine_hash(engine)


def is_settled(live: Mapping[str, Any]) -> bool:
    """Whether what counts the live object's pods has seen all that was written to it."""
    seen: bool = live.get("status", {}).get("observedGeneration") == live["metadata"].get("generation")
    return seen


def applied_fields(live: Mapping[str, Any], manager: str) -> Manifest:
    """What `manager` still owns of what it applied, read from the live object's ``managedFields``."""
    for entry in live["metadata"].get("managedFields", ()):
        main = entry.get("operation") == "Apply" and not entry.get("subresource")
        if main and entry.get("manager") == manager:
            owned: Manifest = _owned(entry["fieldsV1"], live)
            return owned
    return {}


def _owned(fields: Mapping[str, Any], value: Any) -> Any:
    """The part of a value that a field set names: ``f:`` a field, ``k:`` an item by its key, else all of it."""
    if not fields or not isinstance(value, Mapping | list):
        return value
    if isinstance(value, Mapping):
        return {
            name[2:]: _owned(below, value[name[2:]])
            for name, below in fields.items()
            if name.startswith("f:") and name[2:] in value
        }
    keys = [(json.loads(name[2:]), below) for name, below in fields.items() if name.startswith("k:")]
    return [_owned(below, item) for item in value for key, below in keys if key.items() <= item.items()]


def _annotated(manifest: Manifest, annotations: dict[str, str]) -> Manifest:
    metadata = manifest["metadata"]
    return sealed(manifest | {"metadata": metadata | {"annotations": _annotations(manifest) | annotations}})


def _annotations(manifest: Mapping[str, Any]) -> dict[str, str]:
    return dict(manifest["metadata"].get("annotations", {}))
