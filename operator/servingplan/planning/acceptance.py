"""Whether the engine that a plan states may be rolled out: the verdict of an evaluation, for exactly that engine.

In: the digests of the engines that are stated, that run and that ran before, and what a ModelEvaluation says. Out: one
`Acceptance`. A variant that is not accepted is held: what runs goes on, and nothing else of the plan waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from servingplan.planning.reasons import Reason


class Verdict(StrEnum):
    """What an evaluation found. `INCONCLUSIVE`: too few items to tell, which is no proof of equality."""

    PASSED = "Passed"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A ModelEvaluation, as far as it decides.

    variant: digest of what it measured; empty where that is not known. verdict: None without a result.
    moving: whether one comes by itself. state: its own words about where it stands. items, needed: how many it
    compared, and how many would tell; None where it did not say.
    """

    variant: str = ""
    verdict: Verdict | None = None
    moving: bool = True
    state: str = ""
    items: int | None = None
    needed: int | None = None


class Missing(StrEnum):
    """Why there is no evaluation to read."""

    ABSENT = "absent"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """Which engines there are, as digests. running: of the pod template; empty where it cannot be told which.

    first: nothing of the plan runs yet. before: what ran until the last change of variant, empty where nothing did.
    """

    stated: str
    running: str = ""
    before: str = ""
    first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """held: the stated engine is not rolled out. reason: why, or why it may be."""

    held: bool
    reason: Reason


Found = Evaluation | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a plan asks of its variants: that the ModelEvaluation of this name passed."""

    evaluation: str
    found: Found


Rule = Callable[[Variants, Found], Reason | None]


def accept(variants: Variants, found: Found) -> Acceptance:
    """Whether the stated engine may run. The first rule that answers decides, and what no rule lets through is held."""
    for rule in LETS_THROUGH:
        if (reason := rule(variants, found)) is not None:
            return Acceptance(held=False, reason=reason)
    return Acceptance(held=True, reason=_why_held(variants, found))


def _passed(variants: Variants, found: Found) -> Reason | None:
    return Reason.EVALUATION_PASSED if _verdict(variants, found) is Verdict.PASSED else None


def _failed_and_runs(variants: Variants, found: Found) -> Reason | None:
    """What runs is never taken away: a verdict that comes later, or another one, is for a person to act on."""
    failed = _verdict(variants, found) is Verdict.FAILED
    return Reason.RUNNING_VARIANT_FAILED if failed and variants.running == variants.stated else None


def _runs(variants: Variants, _: Found) -> Reason | None:
    return Reason.VARIANT_RUNS if variants.running == variants.stated else None


def _is_first(variants: Variants, _: Found) -> Reason | None:
    """There is nothing that could stay, and nothing that a variant could be compared with."""
    return Reason.FIRST_VARIANT if variants.first else None


def _ran_before(variants: Variants, _: Found) -> Reason | None:
    """The way back from a variant that disappoints must not wait for an evaluation."""
    return Reason.VARIANT_RAN_BEFORE if variants.before == variants.stated else None


LETS_THROUGH: Sequence[Rule] = (_passed, _failed_and_runs, _runs, _is_first, _ran_before)


def _verdict(variants: Variants, found: Found) -> Verdict | None:
    """The verdict on exactly the stated engine."""
    return found.verdict if isinstance(found, Evaluation) and found.variant == variants.stated else None


def _why_held(variants: Variants, found: Found) -> Reason:
    if isinstance(found, Missing):
        return Reason.NO_EVALUATION if found is Missing.ABSENT else Reason.EVALUATION_UNREADABLE
    if found.variant != variants.stated and (found.variant or found.verdict is not None):
        return Reason.OTHER_VARIANT_EVALUATED
    if found.verdict is Verdict.FAILED:
        return Reason.EVALUATION_FAILED
    if found.verdict is Verdict.INCONCLUSIVE:
        return Reason.EVALUATION_INCONCLUSIVE
    return Reason.EVALUATION_RUNNING if found.moving else Reason.EVALUATION_STOPPED
