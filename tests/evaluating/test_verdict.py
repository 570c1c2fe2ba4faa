"""The rule: what passes, what fails, what is not known; and how often it is wrong."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from servingplan.evaluating.verdict import MOST_ITEMS, Because, Rule, Scores, Verdict, items_to_pass, judge

RULE = Rule(minimum_score=0.0, margin=0.02)


def pairs(*, both: int = 0, neither: int = 0, won: int = 0, lost: int = 0) -> list[Scores]:
    """Items that both, neither, only the variant, or only the baseline got right."""
    return (
        [Scores(baseline=1, variant=1, again=1)] * both
        + [Scores(baseline=0, variant=0, again=0)] * neither
        + [Scores(baseline=0, variant=1, again=0)] * won
        + [Scores(baseline=1, variant=0, again=1)] * lost
    )


CASES = {
    "equal at every item of many": (pairs(both=400, neither=100), 0.5, Because.NOT_WORSE),
    "equal at every item of ten": (pairs(both=10), 0.5, Because.TOO_FEW_ITEMS),
    "better": (pairs(both=400, neither=50, won=50), 0.5, Because.NOT_WORSE),
    "better by few items": (pairs(both=13, won=2), 0.0, Because.TOO_FEW_ITEMS),
    "a little worse, shown": (pairs(both=1960, neither=20, won=8, lost=12), 0.5, Because.NOT_WORSE),
    "a little worse, not shown": (pairs(both=180, won=2, lost=4), 0.5, Because.TOO_FEW_ITEMS),
    "worse": (pairs(both=400, neither=50, lost=50), 0.5, Because.WORSE),
    "worse and below the minimum": (pairs(both=100, lost=400), 0.5, Because.BELOW_MINIMUM),
    "below the minimum with its baseline": (pairs(both=200, neither=300), 0.5, Because.BELOW_MINIMUM),
    "just below the minimum": (pairs(both=245, neither=255), 0.5, Because.NEAR_MINIMUM),
    "exactly at the minimum": (pairs(both=250, neither=250), 0.5, Because.NOT_WORSE),
    "no item right, none asked of": (pairs(neither=500), 0.0, Because.NOT_WORSE),
    "no items": ([], 0.5, Because.TOO_FEW_ITEMS),
}


@pytest.mark.parametrize(("items", "minimum", "because"), CASES.values(), ids=CASES)
def test_a_verdict_says_what_is_shown(items: list[Scores], minimum: float, because: Because) -> None:
    found = judge(items, Rule(minimum_score=minimum, margin=0.02))
    assert found.because is because


def test_only_what_is_shown_to_be_no_worse_passes() -> None:
    assert judge(pairs(both=500), RULE).verdict is Verdict.PASSED
    assert judge(pairs(both=50), RULE).verdict is Verdict.INCONCLUSIVE
    assert judge(pairs(both=50, lost=50), RULE).verdict is Verdict.FAILED


def test_about_150_items_without_a_difference_are_the_least_that_shows_two_points() -> None:
    """1 - 0.05^(1/n) <= 0.02, the exact bound of no event in n trials."""
    assert judge(pairs(both=145), RULE).verdict is Verdict.INCONCLUSIVE
    assert judge(pairs(both=153), RULE).verdict is Verdict.PASSED


def test_what_the_variant_does_not_answer_counts_as_wrong() -> None:
    answered = pairs(both=400)
    found = judge([*answered, *[Scores(baseline=1, variant=None)] * 100], RULE)
    assert found.because is Because.WORSE
    assert found.variant.mean == pytest.approx(0.8)


def test_a_baseline_that_does_not_answer_is_not_beaten() -> None:
    """As wrong answers, 450 missing ones would be as many wins."""
    found = judge([*pairs(both=40, lost=10), *[Scores(baseline=None, variant=1)] * 450], RULE)
    assert found.verdict is not Verdict.PASSED
    assert found.difference.items == 50
    assert found.baseline == pytest.approx(0.1)


def test_all_failures_of_the_variant_fail_and_all_of_both_decide_nothing() -> None:
    assert judge([Scores(baseline=1, variant=None)] * 200, RULE).verdict is Verdict.FAILED
    neither = judge([Scores(baseline=None, variant=None)] * 200, RULE)
    assert (neither.because, neither.difference.items) == (Because.TOO_FEW_ITEMS, 0)


def test_the_baselines_two_runs_are_compared_where_both_have_an_answer() -> None:
    twice = [Scores(baseline=1, variant=1, again=0)] * 3 + [Scores(baseline=1, variant=1, again=None)] * 5
    assert judge([*pairs(both=27), *twice], RULE).difference.baseline_discordant == pytest.approx(0.1)
    assert judge([Scores(baseline=1, variant=1)] * 3, RULE).difference.baseline_discordant is None


def test_graded_scores_are_compared_by_how_much_they_differ() -> None:
    slightly = [Scores(baseline=0.8, variant=0.79)] * 500
    clearly = [Scores(baseline=0.8, variant=0.7)] * 500
    assert judge(slightly, RULE).verdict is Verdict.PASSED
    assert judge(clearly, RULE).verdict is Verdict.FAILED


# ---- how often the rule is wrong ----


def verdicts(*, discordant: float, difference: float, items: int, count: int) -> Counter[Verdict]:
    """The verdicts of simulated evaluations of a variant of which everything is known."""
    won, lost = (discordant + difference) / 2, (discordant - difference) / 2
    drawn = np.random.default_rng(items).multinomial(items, [won, lost, 1 - won - lost], size=count)
    found: Counter[Verdict] = Counter()
    for (one_won, one_lost, both), times in Counter(map(tuple, drawn.tolist())).items():
        found[judge(pairs(won=one_won, lost=one_lost, both=both), RULE).verdict] += times
    return found


def most_by_chance(count: int, share: float) -> int:
    """So many of `count` are exceeded once in a thousand times."""
    return int(stats.binom.ppf(0.999, count, share))


AT_THE_MARGIN = {
    "only losses, the least set": (0.02, 150),
    "hardly a win": (0.022, 300),
    "few differ": (0.03, 500),
    "many differ": (0.1, 500),
    "very many differ": (0.3, 400),
}


@pytest.mark.parametrize(("discordant", "items"), AT_THE_MARGIN.values(), ids=AT_THE_MARGIN)
def test_a_variant_at_the_margin_passes_in_at_most_5_of_100(discordant: float, items: int) -> None:
    found = verdicts(discordant=discordant, difference=-0.02, items=items, count=2000)
    assert found[Verdict.PASSED] <= most_by_chance(2000, 0.05)


@pytest.mark.parametrize("discordant", [0.01, 0.03, 0.06, 0.12])
def test_an_equal_variant_passes_in_about_80_of_100_with_as_many_items_as_are_needed(discordant: float) -> None:
    needed = items_to_pass(discordant, RULE.margin)
    assert needed is not None
    found = verdicts(discordant=discordant, difference=0.0, items=needed, count=2000)
    assert found[Verdict.PASSED] / 2000 == pytest.approx(0.8, abs=0.05)


def test_an_equal_variant_fails_in_at_most_5_of_100() -> None:
    found = verdicts(discordant=0.2, difference=0.0, items=300, count=1000)
    assert found[Verdict.FAILED] <= most_by_chance(1000, 0.05)


def test_of_many_items_what_is_needed_is_the_known_formula() -> None:
    for discordant in (0.2, 0.4):
        assert items_to_pass(discordant, 0.01) == pytest.approx(6.18 * discordant / 0.01**2, rel=0.02)


def test_where_nothing_differed_some_hundred_items_are_needed_all_the_same() -> None:
    assert items_to_pass(0.0, 0.02) == pytest.approx(160, abs=3)
    assert items_to_pass(0.0, 0.05) == pytest.approx(65, abs=3)


def test_an_inconclusive_verdict_asks_for_more_items_than_there_were() -> None:
    near = judge(pairs(both=480, neither=520), Rule(minimum_score=0.5, margin=0.02))
    unlucky = judge(pairs(both=1930, won=20, lost=50), RULE)
    assert unlucky.because is Because.TOO_FEW_ITEMS
    assert unlucky.difference.needed is not None
    assert unlucky.difference.needed > 2000
    assert near.difference.needed is not None
    assert near.difference.needed > 1000


def test_a_variant_that_is_at_the_margin_is_decided_by_no_set() -> None:
    found = judge(pairs(both=9400, won=200, lost=400), RULE)
    assert (found.because, found.difference.needed) == (Because.TOO_FEW_ITEMS, None)
    assert items_to_pass(1.0, 0.0001) is None
    assert MOST_ITEMS == 1_000_000
