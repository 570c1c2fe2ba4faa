"""How long a replica would need to finish its longest request, against the time it is given.

In: a plan. Out: both numbers, or why one is not known; the condition ``DrainSafe`` is a view of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

from servingplan.planning.plan import Plan
from servingplan.planning.units import scale_duration

DRAIN_MARGIN = Fraction(5, 4)
"""A replica that drains decodes at the pace of a full batch, and the objective holds for most tokens, not all."""

_OVERRIDE = "--override-generation-config"
_SHORTEST_ABBREVIATION = "--o"
_LIMIT = "max_new_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestOutput:
    """The most tokens that one answer can have, and where that is stated."""

    tokens: int
    stated_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """The drain that is needed and the one that is given.

    needed, given: None where not known, and then `unknown` says why, in one sentence. longest: what `needed`
    was computed from.
    """

    needed: timedelta | None
    given: timedelta | None
    longest: LongestOutput | None
    unknown: str | None

    @property
    def fits(self) -> bool | None:
        """True where no request is cut off; None where it cannot be said."""
        if self.needed is None or self.given is None:
            return None
        return self.needed <= self.given


def drain(plan: Plan) -> Drain:
    """What is needed: longest allowed output x TPOT limit x 1.25 + TTFT limit; given: ``engine.drainTimeout``.

    The longest output decides and not a quantile, since a replica that ends meets mostly long requests: what is
    in flight at any instant is biased by length.
    """
    given = plan.engine.drain_timeout if plan.engine is not None else None
    longest = longest_output(plan)
    objectives = plan.workload.objectives
    if given is None:
        unknown = "a target drains within its own pods' grace period, which the plan does not state"
    elif longest is None:
        unknown = "no longest answer is known; state engine.maxModelLen or workload.tokens.output"
    elif objectives.tpot is None or objectives.ttft is None:
        unknown = "the pace of an answer is not known; state workload.objectives.tpot and ttft"
    else:
        pace = scale_duration(objectives.tpot.limit, longest.tokens * DRAIN_MARGIN)
        return Drain(needed=pace + objectives.ttft.limit, given=given, longest=longest, unknown=None)
    return Drain(needed=None, given=given, longest=longest, unknown=unknown)


def longest_output(plan: Plan) -> LongestOutput | None:
    """The most tokens that vLLM lets an answer have, else the most that the workload states."""
    engine = plan.engine
    if engine is not None:
        limit = _generation_limit(engine.extra_args)
        if limit is not None:
            return LongestOutput(tokens=limit, stated_by=f"{_LIMIT} in engine.extraArgs")
        if engine.max_model_len is not None:
            return LongestOutput(tokens=engine.max_model_len, stated_by="engine.maxModelLen")
    if not plan.workload.tokens.output:
        return None
    name, tokens = max(plan.workload.tokens.output, key=lambda quantile: quantile[1])
    return LongestOutput(tokens=tokens, stated_by=f"workload.tokens.output.{name}")


def _generation_limit(extra_args: Sequence[str]) -> int | None:
    """``max_new_tokens`` of the last override that sets it, in any of the spellings that vLLM takes."""
    limits = [_limit(key, value) for key, value in _overrides(extra_args)]
    return next((limit for limit in reversed(limits) if limit is not None), None)


def _overrides(extra_args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Dotted key (empty for the whole JSON) and value of every override of the generation config."""
    for argument, after in pairwise((*extra_args, "")):
        name, equals, value = argument.partition("=")
        flag, _, key = name.partition(".")
        flag = flag.replace("_", "-")
        if flag.startswith(_SHORTEST_ABBREVIATION) and _OVERRIDE.startswith(flag):
            yield key.replace("-", "_"), value if equals else after


def _limit(key: str, value: str) -> int | None:
    try:
        stated = json.loads(value)
    except ValueError:
        return None
    if not key and isinstance(stated, dict):
        stated = stated.get(_LIMIT)
    elif key != _LIMIT:
        return None
    return stated if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0 else None
