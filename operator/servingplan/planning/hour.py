"""The last hour of a plan's pods in parts of five minutes: what its requests were like.

In: the counts between readings. Out: `Traffic`, the means of an hour. Part of the record; pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from servingplan.planning.counts import NONE, Counts, spread
from servingplan.planning.signals import Traffic

PART_S = 300
PARTS = 3600 // PART_S

FEWEST = 400
"""Requests below which an hour says nothing: where lengths spread as widely as they are long on average, the mean of
400 is within 10 % of the truth with 95 %, half of what counts as another workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """Counts by part of five minutes."""

    parts: Mapping[int, Counts] = field(default_factory=dict)

    def with_counts(self, counts: Sequence[tuple[float, float, Counts]], at: datetime) -> Hour:
        """These with more: each with its start and end in seconds. Parts of more than an hour before `at` go."""
        oldest = int(at.timestamp() // PART_S) - PARTS
        parts = {part: value for part, value in self.parts.items() if part >= oldest}
        for start, end, value in counts:
            for part, share in spread(start, end, PART_S):
                parts[part] = parts.get(part, NONE).plus(value, share)
        return Hour(parts=parts)

    def traffic(self, at: datetime, since: datetime | None) -> Traffic | None:
        """The means of the hour before `at`. since: from when on pods were heard; None before a whole hour was."""
        if since is None or at - since < timedelta(seconds=PARTS * PART_S):
            return None
        last = int(at.timestamp() // PART_S)
        total = NONE
        for part in range(last - PARTS, last + 1):
            total = total.plus(self.parts.get(part, NONE))
        if total.prompts < FEWEST:
            return None
        return Traffic(
            input_tokens=_positive(total.prompt_tokens / total.prompts),
            output_tokens=_positive(total.output_tokens / total.prompts),
            prefix_hit_share=min(1.0, total.prefix_hits / total.prefix_queries) if total.prefix_queries > 0 else None,
        )


def _positive(mean: float) -> float | None:
    """Every request has tokens: where none were counted, this version of vLLM does not say."""
    return mean or None
