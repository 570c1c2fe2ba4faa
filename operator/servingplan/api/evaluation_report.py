"""What the runner of a ModelEvaluation hands back: one comparison that ended, in at most 4,096 bytes.

Place in the flow: as ``benchmark_report``: in, the termination message of a container that anybody's image may have
written; out, plain JSON in the shapes of the status, or `InputError`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationError

from servingplan.api.benchmark_report import unreadable_report
from servingplan.api.evaluation import Items, Mean, Share
from servingplan.api.status import Instant, Sentence, Words
from servingplan.api.wire import Text, Tolerant

Because = Literal["NotWorse", "Worse", "BelowMinimum", "TooFewItems", "NearMinimum"]


class ScoreReport(Tolerant):
    """Mean scores."""

    baseline: Share
    variant: Share


class DifferenceReport(Tolerant):
    """How the two compare."""

    mean: Mean
    lower_bound: Mean
    upper_bound: Mean | None = None
    discordant: Share
    baseline_discordant: Share | None = None
    items: Items
    needed: Items | None = None


class SetReport(Tolerant):
    """What was asked."""

    digest: Words
    items: Items


class ServedReport(Tolerant):
    """What answered."""

    model: Text | None = None
    vllm: Words | None = None


class EvaluationReport(Tolerant):
    """A comparison that ended."""

    verdict: Literal["Passed", "Failed", "Inconclusive"]
    reason: Because
    message: Sentence
    score: ScoreReport
    difference: DifferenceReport
    set: SetReport
    baseline: ServedReport = ServedReport()
    variant: ServedReport = ServedReport()
    started_at: Instant | None = None


def evaluation_report(text: str) -> dict[str, Any]:
    """The report as plain JSON, without what is not known. Raises InputError where it is none."""
    try:
        found = EvaluationReport.model_validate_json(text)
    except ValidationError as error:
        raise unreadable_report(error) from error
    report = found.model_dump(mode="json", by_alias=True, exclude_none=True)
    started = report.pop("startedAt", None)
    return report if started is None else report | {"started": started}
