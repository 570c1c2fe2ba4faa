"""The rule: a variant passes where it is shown to be no worse than the baseline by more than a margin.

In: the scores of every item. Out: `Passed`, `Failed` or `Inconclusive`, with the figures behind it. Pure. That no
difference was found is no proof of equality: what passes has its lower bound above minus the margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from servingplan.evaluating.bounds import Bounds, mean_bounds

MOST_ITEMS = 1_000_000
"""A set that would need more items than this decides nothing."""

_Z_BOUND, _Z_POWER = 1.6448536269514722, 0.8416212335729143
"""Standard deviations for a one-sided bound of 95 %, and for deciding in 80 % of the evaluations."""

_SKEW = 0.57
"""(z^2 - 1) / 3: how much further the bound of no more than a few losses reaches (Cornish and Fisher)."""


class Verdict(StrEnum):
    """What is known of the variant. Only `Passed` lets it through."""

    PASSED = "Passed"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"


class Because(StrEnum):
    """Why."""

    NOT_WORSE = "NotWorse"
    WORSE = "Worse"
    BELOW_MINIMUM = "BelowMinimum"
    NEAR_MINIMUM = "NearMinimum"
    TOO_FEW_ITEMS = "TooFewItems"


VERDICTS = {
    Because.NOT_WORSE: Verdict.PASSED,
    Because.WORSE: Verdict.FAILED,
    Because.BELOW_MINIMUM: Verdict.FAILED,
    Because.NEAR_MINIMUM: Verdict.INCONCLUSIVE,
    Because.TOO_FEW_ITEMS: Verdict.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is asked of a variant. minimum_score: 0 to 1; 0 asks nothing. margin: by how much it may be worse."""

    minimum_score: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One item's scores, 0 (wrong) to 1 (right); None: no answer. again: the baseline's second run; None also: none."""

    baseline: float | None
    variant: float | None
    again: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Variant minus baseline, over the items at which the baseline answered.

    discordant: share of the items whose scores differ. baseline_discordant: the same of the baseline's two runs; None
    without a second one. needed: items that would decide in four evaluations of five; None: it failed, or more than
    `MOST_ITEMS`.
    """

    bounds: Bounds
    discordant: float
    baseline_discordant: float | None
    items: int
    needed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict and its figures. baseline, variant: mean scores over all items; no answer counts as wrong."""

    rule: Rule
    because: Because
    items: int
    baseline: float
    variant: Bounds
    difference: Difference

    @property
    def verdict(self) -> Verdict:
        """Whether it passed."""
        return VERDICTS[self.because]


def judge(items: Sequence[Scores], rule: Rule) -> Judgement:
    """Judge a variant by the scores of all items.

    An item at which the baseline gave no answer says nothing of the difference and is left out of it: as a wrong answer
    it would make a baseline that is down easy to beat.
    """
    baseline = sum(one.baseline or 0.0 for one in items) / len(items) if items else 0.0
    variant = mean_bounds([one.variant or 0.0 for one in items], lowest=0, highest=1)
    pairs = [(one.baseline, one.variant or 0.0) for one in items if one.baseline is not None]
    found = mean_bounds([there - here for here, there in pairs], lowest=-1, highest=1)
    because = next(reason for reason, holds in RULES if holds(variant, found, rule))
    squares = sum((there - here) ** 2 for here, there in pairs) / len(pairs) if pairs else 1.0
    difference = Difference(
        bounds=found,
        discordant=_discordant(pairs),
        baseline_discordant=_baseline_discordant(items),
        items=len(pairs),
        needed=_needed(because, variant, found, rule, squares=squares, seen=len(items), items=len(pairs)),
    )
    return Judgement(
        rule=rule, because=because, items=len(items), baseline=baseline, variant=variant, difference=difference
    )


RULES: Sequence[tuple[Because, Callable[[Bounds, Bounds, Rule], bool]]] = (
    (Because.BELOW_MINIMUM, lambda variant, _, rule: variant.upper < rule.minimum_score),
    (Because.WORSE, lambda _, found, rule: found.upper < -rule.margin),
    (Because.NEAR_MINIMUM, lambda variant, _, rule: variant.mean < rule.minimum_score),
    (Because.TOO_FEW_ITEMS, lambda _, found, rule: found.lower < -rule.margin),
    (Because.NOT_WORSE, lambda *_: True),
)
"""In this order, the first that holds: what is shown to be bad, then what is not shown to be good."""


def _discordant(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(here != there for here, there in pairs) / len(pairs) if pairs else 0.0


def _baseline_discordant(items: Sequence[Scores]) -> float | None:
    pairs = [(one.baseline, one.again) for one in items if one.baseline is not None and one.again is not None]
    return _discordant(pairs) if pairs else None


def _needed(
    because: Because, variant: Bounds, found: Bounds, rule: Rule, *, squares: float, seen: int, items: int
) -> int | None:
    if VERDICTS[because] is Verdict.FAILED:
        return None
    if because is Because.NEAR_MINIMUM:
        distance = rule.minimum_score - variant.mean
        return _telling(variant.mean * (1 - variant.mean), distance, at_least=seen + 1)
    equal = items_to_pass(squares, rule.margin)
    if because is Because.TOO_FEW_ITEMS and equal is not None and equal <= items:
        # As many items as an equal variant needs were not enough: so many would tell the difference that was seen.
        return _telling(squares - found.mean**2, abs(found.mean + rule.margin), at_least=items + 1)
    return equal


def items_to_pass(squares: float, margin: float) -> int | None:
    """The items with which a variant that is as good as the baseline passes in 80 % of the evaluations.

    squares: mean square of an item's difference; of right and wrong the discordant share psi. Of many it is the known
    6.2 psi / margin^2 = (1.645 + 0.842)^2 psi / margin^2. As the bound counts one more item, a loss, the k = psi n
    items that differ must satisfy margin n >= 1 + 1.645 sqrt(k + 1) + 0.842 sqrt(k) + 0.57 / (k + 1).
    """

    def enough(count: int) -> bool:
        differ = squares * count
        reach = _Z_BOUND * math.sqrt(differ + 1) + _Z_POWER * math.sqrt(differ)
        return margin * count >= 1 + reach + _SKEW / (differ + 1)

    least, most = 0, MOST_ITEMS
    if not enough(most):
        return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def _telling(variance: float, distance: float, *, at_least: int) -> int | None:
    """The items that tell a mean from a limit at this distance, in 80 % of the evaluations; None: too many."""
    if distance <= 0:
        return None
    count = math.ceil((_Z_BOUND + _Z_POWER) ** 2 * variance / distance**2)
    return None if count > MOST_ITEMS else max(count, at_least)
