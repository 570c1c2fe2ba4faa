"""An evaluation as a whole: what was asked, every item's answers, and the judgement that follows from them.

In: the items and their answers. Out: one value for reports and files. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from servingplan.evaluating.items import Item
from servingplan.evaluating.record import Answer, Failure, Header, Role
from servingplan.evaluating.verdict import Because, Difference, Judgement, Rule, Scores, judge

SIDES = (Role.BASELINE, Role.VARIANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One item. item: None where somebody else asked it. again: the baseline's second answer, where there is one."""

    id: str
    item: Item | None
    baseline: Answer
    variant: Answer
    again: Answer | None

    @property
    def differs(self) -> bool:
        """Whether the two were scored differently."""
        return self.baseline.score != self.variant.score

    def of(self, role: Role) -> Answer | None:
        """The answer in that role."""
        return {Role.BASELINE: self.baseline, Role.VARIANT: self.variant, Role.AGAIN: self.again}[role]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A finished evaluation. header: None where somebody else asked. set: digest of the set, or of the results."""

    header: Header | None
    set: str
    results: tuple[Result, ...]
    judgement: Judgement

    @property
    def finished(self) -> str | None:
        """When the last answer came; None where somebody else asked."""
        return max((answer.at for role in Role for answer in self.answers(role)), default="") or None

    def failures(self, role: Role) -> Counter[Failure]:
        """Answers that are missing, by why."""
        return Counter(answer.failure for answer in self.answers(role) if answer.failure is not None)

    def cut_off(self, role: Role) -> int:
        """Answers that ended at their limit of tokens."""
        return sum(answer.cut_off for answer in self.answers(role))

    def answers(self, role: Role) -> tuple[Answer, ...]:
        """All answers in that role."""
        return tuple(answer for result in self.results if (answer := result.of(role)) is not None)


def evaluation(
    ids: Sequence[str],
    answers: Mapping[tuple[str, Role], Answer],
    rule: Rule,
    *,
    set_digest: str,
    items: Mapping[str, Item] | None = None,
    header: Header | None = None,
) -> Evaluation:
    """Judge what was answered. Every id has an answer of the baseline and one of the variant."""
    results = tuple(
        Result(
            id=name,
            item=None if items is None else items[name],
            baseline=answers[name, Role.BASELINE],
            variant=answers[name, Role.VARIANT],
            again=answers.get((name, Role.AGAIN)),
        )
        for name in ids
    )
    judgement = judge([_scores(result) for result in results], rule)
    return Evaluation(header=header, set=set_digest, results=results, judgement=judgement)


def _scores(result: Result) -> Scores:
    return Scores(
        baseline=result.baseline.known_score,
        variant=result.variant.known_score,
        again=None if result.again is None else result.again.known_score,
    )


# ---- in words ----


def message(judgement: Judgement) -> str:
    """The verdict in a sentence or two, the same for the same figures."""
    found, rule, variant = judgement.difference, judgement.rule, judgement.variant
    if judgement.because is Because.BELOW_MINIMUM:
        most = f"at most {variant.upper:.1%}"
        return f"the score is {variant.mean:.1%}, {most}: below the minimum of {rule.minimum_score:.1%}"
    if judgement.because is Because.NEAR_MINIMUM:
        return (
            f"the score is {variant.mean:.1%}, below the minimum of {rule.minimum_score:.1%}, but up to "
            f"{variant.upper:.1%} is possible; {_more_items(found.needed)}"
        )
    difference = f"{found.bounds.mean * 100:+.1f} points against the baseline"
    if judgement.because is Because.WORSE:
        return f"{difference}, at best {found.bounds.upper * 100:+.1f}: worse by more than {rule.margin * 100:g}"
    least = f"{difference}, at worst {found.bounds.lower * 100:+.1f}"
    if judgement.because is Because.NOT_WORSE:
        return f"{least}: not worse by more than {rule.margin * 100:g}"
    return f"{least}, which may be worse by more than {rule.margin * 100:g}; {_more_items(found.needed)}"


def _more_items(needed: int | None) -> str:
    if needed is None:
        return "no set of a million items would decide that"
    return f"about {needed:,} items would decide that" if needed > 1 else "more items would decide that"


def remarks(found: Evaluation) -> tuple[str, ...]:
    """What a person should know beside the verdict."""
    return tuple(_remarks(found, found.judgement.difference, found.judgement.rule))


def _remarks(found: Evaluation, difference: Difference, rule: Rule) -> Iterator[str]:
    baseline, own = found.judgement.baseline, difference.baseline_discordant
    if baseline < rule.minimum_score:
        yield f"the baseline itself scores {baseline:.1%}, below the minimum of {rule.minimum_score:.1%}"
    if own is not None and own > rule.margin:
        yield (
            f"asked twice, the baseline differs from itself at {own:.1%} of the items, more than the margin of "
            f"{rule.margin:.1%}: part of what differs is noise"
        )
    if missing := sum(found.failures(Role.BASELINE).values()):
        yield f"the baseline gave no answer to {_items(missing)}: wrong in its score, left out of the difference"
    if missing := sum(found.failures(Role.VARIANT).values()):
        yield f"the variant gave no answer to {_items(missing)}, which counts as wrong"
    for role in SIDES:
        if cut := found.cut_off(role):
            yield f"{cut:,} of the answers of the {role.value} ended at the limit of tokens: see --max-tokens"


def _items(count: int) -> str:
    return f"{count:,} item{'' if count == 1 else 's'}"
