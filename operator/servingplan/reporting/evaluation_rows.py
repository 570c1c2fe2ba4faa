"""The words and rows of an evaluation that terminal and page share.

In: an `Evaluation`. Out: text. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from servingplan.evaluating.evaluation import Evaluation, Result
from servingplan.evaluating.record import Answer, Role

FIGURES = ("", "baseline", "variant", "difference", "from", "to")


def title_words(found: Evaluation) -> str:
    """What was compared."""
    header = found.header
    items = f"{found.judgement.items:,} items"
    if header is None:
        return f"{items}, asked and scored elsewhere"
    here, there = header.baseline, header.variant
    return f"{there.model} at {there.url} against {here.model} at {here.url}, {items}"


def figure_rows(found: Evaluation) -> Iterator[tuple[str, ...]]:
    """Score, answers that are missing, and what differs, in the columns of `FIGURES`."""
    judged, difference = found.judgement, found.judgement.difference
    bounds = (
        f"{value * 100:+.1f}" for value in (difference.bounds.mean, difference.bounds.lower, difference.bounds.upper)
    )
    yield ("score", f"{judged.baseline:.1%}", f"{judged.variant.mean:.1%}", *bounds)
    missing = [sum(found.failures(role).values()) for role in (Role.BASELINE, Role.VARIANT)]
    yield ("without an answer", *(f"{count:,}" for count in missing), "", "", "")
    own = difference.baseline_discordant
    yield ("scored differently", "" if own is None else f"{own:.1%}", f"{difference.discordant:.1%}", "", "", "")


def failure_lines(found: Evaluation) -> Iterator[str]:
    """Why answers are missing, with one example each."""
    for role in Role:
        for failure, count in sorted(found.failures(role).items()):
            example = next(answer for answer in found.answers(role) if answer.failure is failure)
            who = "baseline, second run" if role is Role.AGAIN else role.value
            detail = f": {example.id}: {example.detail}" if example.detail else f": {example.id}"
            yield f"{who}, {count:,} x {failure.value}{detail}"


def differing(found: Evaluation) -> tuple[Result, ...]:
    """The items whose scores differ, those that the variant loses first."""
    different = [result for result in found.results if result.differs]
    return tuple(sorted(different, key=lambda result: result.variant.score - result.baseline.score))


def answer_words(answer: Answer, *, longest: int) -> str:
    """An answer, or why there is none, in one line."""
    if answer.failure is not None:
        return f"{answer.failure.value}: {answer.detail}" if answer.detail else answer.failure.value
    text = " ".join(answer.text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
