"""What the runner of a CapacityBenchmark hands back: one ramp that ended, in at most 4,096 bytes.

Place in the flow: in, the termination message of the runner's container, which anybody's image may have written; out,
plain JSON in the shapes of the status, or `InputError`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from servingplan.api.benchmark import AtCapacityStatus, BottleneckStatus, LevelReport, Rate
from servingplan.api.status import Instant, Sentence, Words
from servingplan.api.wire import Tolerant
from servingplan.errors import InputError, Problem


class BenchReport(Tolerant):
    """A ramp that ended."""

    outcome: Literal["Found", "OutOfTime", "Inconclusive", "NothingHolds", "NothingFails"]
    message: Sentence = ""
    started: Instant
    requests_per_second: Rate | None = None
    failing_requests_per_second: Rate | None = None
    levels: Annotated[list[LevelReport], Field(max_length=30)] = Field(default=[])
    bottleneck: BottleneckStatus | None = None
    at_capacity: AtCapacityStatus | None = None
    vllm: Words | None = None
    dataset: Words | None = None


def unreadable_report(error: ValidationError) -> InputError:
    """What is wrong with a report, and what to do."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the report"
    message = f"{first['msg']}; use a runner image of the operator's version"
    return InputError(Problem(path=where, reason="InvalidReport", message=message))


def bench_report(text: str) -> dict[str, Any]:
    """The report as plain JSON, without what is not known. Raises InputError where it is none."""
    try:
        found = BenchReport.model_validate_json(text)
    except ValidationError as error:
        raise unreadable_report(error) from error
    return found.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
