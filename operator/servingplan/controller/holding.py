"""Whether a live object with a rendered name is ours to write.

In: a live object and what would be rendered under its name. Out: yes or no, and the words for no. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servingplan.clients.references import ObjectRef
from servingplan.planning.observation import Trouble
from servingplan.planning.reasons import Reason
from servingplan.rendering.metadata import ADOPT_ANNOTATION, INSTALLATION_LABEL, PLAN_LABEL

Object = Mapping[str, Any]


def is_ours(live: Object, *, plan: str, uid: str, installation: str, selector: Object) -> bool:
    """Ours: labelled by this installation for this plan and controlled by it or by nobody; or given to it.

    An object is given to a plan by its annotation, and only if it selects what ours would: a selector cannot change.
    """
    metadata = live["metadata"]
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    controllers = {owner["uid"] for owner in metadata.get("ownerReferences", ()) if owner.get("controller")}
    if controllers - {uid}:
        return False
    if labels.get(PLAN_LABEL) == plan and labels.get(INSTALLATION_LABEL) == installation:
        return True
    given = annotations.get(ADOPT_ANNOTATION) == plan
    return bool(given and live.get("spec", {}).get("selector", {}) == selector)


def name_taken(ref: ObjectRef, *, plan: str, selector: Object) -> Trouble:
    """Why an object is not written, and what to do about it."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(selector.get("matchLabels", selector).items()))
    message = (
        f"{ref} exists and is not this plan's, so it is not touched. Rename the plan, delete the {ref.kind}, or "
        f"annotate it with {ADOPT_ANNOTATION}={plan} if its selector is {labels}"
    )
    return Trouble(reason=Reason.NAME_TAKEN, message=message)
