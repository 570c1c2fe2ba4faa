"""What evidence was gathered from, as engine, pods and nodes say themselves, and its way through an annotation.

In: an identity and what was read. Out: `Measured`, or JSON of it: it is read while the pool still runs, and needed when
the work is over.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from servingplan.rendering.identity import EngineIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured, as far as it says. identity: None for what serves without a plan of ours.

    image_digest: as the pod's status says. product, driver: of the accelerator, as the node's labels say.
    """

    identity: EngineIdentity | None = None
    image_digest: str | None = None
    product: str | None = None
    driver: str | None = None


def identity_to_json(identity: EngineIdentity) -> str:
    """The identity as text."""
    return json.dumps(asdict(identity), sort_keys=True)


def identity_from_json(text: str | None) -> EngineIdentity | None:
    """The inverse; None where somebody took the text away or changed it."""
    try:
        stated = json.loads(text or "")
        return EngineIdentity(**{**stated, "arguments": tuple(stated["arguments"])})
    except (KeyError, TypeError, ValueError):
        return None


def measured_to_json(measured: Measured) -> str:
    """What was measured, as text."""
    identity = None if measured.identity is None else identity_to_json(measured.identity)
    return json.dumps({**asdict(measured), "identity": identity}, sort_keys=True)


def measured_from_json(text: str | None) -> Measured:
    """The inverse; nothing where somebody took the text away or changed it."""
    try:
        stated = json.loads(text or "")
        return Measured(**{**stated, "identity": identity_from_json(stated["identity"])})
    except (KeyError, TypeError, ValueError):
        return Measured()
