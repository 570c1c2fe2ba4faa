"""Whether a live object with a rendered name is ours to write.

In: a live object and what would be rendered under its name. Out: yes or no, and the words for no. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servingplan.clients.references import ObjectRef
from servingplan.planning.observation import Trouble
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.rendering.deployment import owned_engine, pod_template
from servingplan.rendering.engine import ENGINE_CONTAINER
from servingplan.rendering.metadata import ADOPT_ANNOTATION, INSTALLATION_LABEL, PLAN_LABEL, plan_pods, selector

Object = Mapping[str, Any]


def is_ours(live: Object, *, plan: str, uid: str, installation: str, selector: Object) -> bool:
    """Ours: labelled by this installation for this plan and controlled by it or by nobody; or given to it.

    An object is given to a plan by its annotation, and only if it selects what ours would: a selector cannot change.
    """
    metadata = live["metadata"]
    controllers = {owner["uid"] for owner in metadata.get("ownerReferences", ()) if owner.get("controller")}
    if controllers - {uid}:
        return False
    if _is_labelled(live, plan, installation):
        return True
    given = metadata.get("annotations", {}).get(ADOPT_ANNOTATION) == plan
    return bool(given and live.get("spec", {}).get("selector", {}) == selector)


def engine_trouble(live: Object, ref: ObjectRef, plan: Plan, *, uid: str, installation: str) -> Trouble | None:
    """Why the Deployment with an engine's name is not the plan's to write; None where it is.

    One that is given to the plan must run nothing but what the plan renders: an apply lays containers over one
    another by name, so that any other would go on in every pod of the engine, with its GPUs.
    """
    wanted = {"matchLabels": selector(plan.name)}
    if not is_ours(live, plan=plan.name, uid=uid, installation=installation, selector=wanted):
        return name_taken(ref, plan=plan.name, selector=wanted)
    if _is_labelled(live, plan.name, installation):
        return None
    others = _containers(live["spec"]["template"]) - _containers(pod_template(plan_pods(plan.name), owned_engine(plan)))
    return _would_run_beside(ref, sorted(others)) if others else None


def _is_labelled(live: Object, plan: str, installation: str) -> bool:
    labels = live["metadata"].get("labels", {})
    return (labels.get(PLAN_LABEL), labels.get(INSTALLATION_LABEL)) == (plan, installation)


def _containers(template: Object) -> set[str]:
    spec = template["spec"]
    return {each["name"] for field in ("containers", "initContainers") for each in spec.get(field) or ()}


def _would_run_beside(ref: ObjectRef, names: Sequence[str]) -> Trouble:
    message = (
        f"{ref} is given to this plan and is not touched: its pods would run {', '.join(names)} beside the plan's "
        f"container {ENGINE_CONTAINER}. In the {ref.kind}, rename the container of the engine to {ENGINE_CONTAINER} "
        f"and remove what else there is; what is to stay belongs into spec.engine.podTemplate too"
    )
    return Trouble(reason=Reason.NAME_TAKEN, message=message)


def name_taken(ref: ObjectRef, *, plan: str, selector: Object) -> Trouble:
    """Why an object is not written, and what to do about it."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(selector.get("matchLabels", selector).items()))
    message = (
        f"{ref} exists and is not this plan's, so it is not touched. Rename the plan, delete the {ref.kind}, or "
        f"annotate it with {ADOPT_ANNOTATION}={plan} if its selector is {labels}"
    )
    return Trouble(reason=Reason.NAME_TAKEN, message=message)
