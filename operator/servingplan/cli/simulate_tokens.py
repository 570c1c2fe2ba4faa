"""``simulate --engine-profile``: the plan's own replicas once more, token by token.

In: what was played, and the file of an engine. Out: the same with `tokens`, or an error that says what is missing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from servingplan.cli.output import talk
from servingplan.errors import UsageError
from servingplan.hardware.lengths import Lengths
from servingplan.inventory.engine_profiles import read_engine_profile
from servingplan.planning.plan import Plan
from servingplan.reporting.simulation import Simulated
from servingplan.simulation.tokens_played import TokenEngine, token_standing

OPTION = "--engine-profile"


def engine_of(path: str, plan: Plan) -> TokenEngine:
    """The file's engine. Raises InputError, and UsageError for a plan that does not say enough of its requests."""
    if not plan.workload.objectives.stated:
        raise UsageError(f"{OPTION}: {plan.key} states no objective; set spec.workload.objectives, as ttft")
    for which in ("input", "output"):
        if not getattr(plan.workload.tokens, which):
            raise UsageError(
                f"{OPTION}: {plan.key} does not say how long requests are; set spec.workload.tokens.{which}"
            )
    if plan.bounds.minimum < 1:
        raise UsageError(f"{OPTION}: {plan.key} may have no replica at all; set spec.bounds.minReplicas to 1 or more")
    return read_engine_profile(Path(path))


def token_by_token(found: Simulated, engine: TokenEngine, *, seed: int) -> Simulated:
    """With what the plan's replicas attain token by token."""
    world, tokens = found.comparison.world, found.plan.workload.tokens
    talk(f"simulating {round(world.trace.requests[world.judged].sum()):,} requests token by token")
    standing = token_standing(
        world.trace.requests,
        world.judged,
        found.comparison.plan.played.ready[:, 0, 0],
        engine,
        prompt=Lengths.from_quantiles(dict(tokens.input)),
        output=Lengths.from_quantiles(dict(tokens.output)),
        objectives=found.plan.workload.objectives,
        seed=seed,
    )
    return replace(found, tokens=standing)
