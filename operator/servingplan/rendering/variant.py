"""Which engine runs, read back from the Deployment, and whether the one that the plan states may take its place.

In: a plan with a gate on variants, and the live Deployment. Out: a `Variant`, and the plan to act on. What runs is told
by the cluster alone: a restart or an upgrade of the operator, or an evaluation that is deleted, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from servingplan.planning.acceptance import Acceptance, Gate, Variants, accept
from servingplan.planning.plan import Plan
from servingplan.planning.target import Engine
from servingplan.rendering.engine import engine_hash
from servingplan.rendering.identity import EngineIdentity, identity
from servingplan.rendering.metadata import ENGINE_ANNOTATION, STATED_ANNOTATION, VARIANT_BEFORE_ANNOTATION

ReadBack = Callable[[str], Engine | None]
"""From ``spec.engine`` as JSON to the engine; None where it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The engine that a plan states, beside the one that runs; `running` is None where it cannot be told."""

    gate: Gate
    stated: EngineIdentity
    running: Engine | None
    acceptance: Acceptance

    @property
    def held(self) -> bool:
        """Whether the stated engine waits, and the running one goes on."""
        return self.acceptance.held

    @property
    def unreadable(self) -> bool:
        """Whether it is held, and what runs cannot be told, so that it cannot be rendered either."""
        return self.held and self.running is None

    @property
    def digests(self) -> tuple[str, str]:
        """Of the engine that is stated and of that which runs; empty where it cannot be told."""
        return self.stated.digest, "" if self.running is None else identity(self.running).digest


def variant_of(plan: Plan, live: Mapping[str, Any] | None, read_back: ReadBack) -> Variant | None:
    """Where the plan's engine stands; None where nothing asks that it be accepted."""
    if plan.acceptance is None or plan.engine is None:
        return None
    annotations = {} if live is None else live["metadata"].get("annotations", {})
    running, stated = _running(plan.engine, annotations, read_back), identity(plan.engine)
    variants = Variants(
        stated=stated.digest,
        running="" if running is None else identity(running).digest,
        before=annotations.get(VARIANT_BEFORE_ANNOTATION, ""),
        first=ENGINE_ANNOTATION not in annotations,
    )
    return Variant(
        gate=plan.acceptance, stated=stated, running=running, acceptance=accept(variants, plan.acceptance.found)
    )


def acted_on(plan: Plan, found: Variant | None) -> Plan:
    """The plan to act on: with the engine that runs where the stated one is held."""
    if found is None or not found.held or found.running is None:
        return plan  # also where what runs cannot be told: then its template is not touched
    return replace(plan, target=found.running, gpus_per_replica=found.running.parallelism.gpus)


def _running(stated: Engine, annotations: Mapping[str, str], read_back: ReadBack) -> Engine | None:
    """The engine of the running pod template: the stated one, or what was written beside the template.

    Only what the template was rendered from counts: whoever changed the one without the other told us nothing.
    """
    ran = annotations.get(ENGINE_ANNOTATION)
    if ran == engine_hash(stated):
        return stated
    found = read_back(annotations.get(STATED_ANNOTATION, ""))
    return found if found is not None and engine_hash(found) == ran else None
