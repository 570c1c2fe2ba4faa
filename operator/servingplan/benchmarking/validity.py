"""Whether a run says something about the server: one rule a disturbance.

In: what a run saw and what was expected of it. Out: voids, each with its reason; and the rules that could not be judged
because something was not readable. Void runs are kept and shown, and do not count. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from servingplan.benchmarking.run import Probes, Seen, Void, VoidReason

RATE_OFF = 0.02
"""Share by which the dispatched rate may differ from the asked one."""

LAG_S, LAG_OF_TTFT = 0.050, 0.05
"""A request may be sent so much too late: the smaller of 50 ms and a twentieth of the TTFT limit."""

CORES = 0.9
"""Cores from which on a client that runs on one is late without saying so."""

TOKENS_OFF = 0.05
"""Share by which mean tokens may differ from what was asked for."""

HITS_OFF = 0.05
"""Percentage points by which the share of cached prompt tokens may differ from the workload's."""

STALL_S = 2.0
"""Nothing but a compilation or a stopped process silences every stream for so long."""

MOST_STALLS = 3
"""More of them are how this engine always works: then they count."""

OTHERS = 0.01
"""Requests of others on the server, as a share of the run's own; two are passed over, as probes of a cluster."""

PROBES_OFF = 0.20
"""Share by which the same probe may differ before and after a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a run was asked for. ttft_limit_s: None without such an objective. input_tokens: mean, None where unknown.

    output_tokens: mean a request. prefix_hit_share: of the workload, 0 to 1. capped: whether the client holds requests
    back on purpose, so that it keeps no rate.
    """

    rate: float
    ttft_limit_s: float | None
    input_tokens: float | None
    output_tokens: float
    prefix_hit_share: float
    capped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run before its rules."""

    seen: Seen
    expected: Expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """known: whether it can be judged. broken: what is wrong, in words, or None."""

    reason: VoidReason
    broken: Callable[[Case], str | None]
    known: Callable[[Case], bool] = lambda _: True


def judge(seen: Seen, expected: Expected) -> tuple[tuple[Void, ...], tuple[VoidReason, ...]]:
    """Why the run is void, and what could not be judged; both in the order of the rules."""
    case = Case(seen=seen, expected=expected)
    known = [rule for rule in RULES if rule.known(case)]
    voids = tuple(
        Void(reason=rule.reason, message=message) for rule in known if (message := rule.broken(case)) is not None
    )
    return voids, tuple(rule.reason for rule in RULES if rule not in known)


def judge_unfinished(probes: Probes | None) -> tuple[Void, ...]:
    """Why a run is void at which the server fell behind: on a machine that something else uses, it may have to.

    probes: None where the server was still at it.
    """
    message = None if probes is None else _other_pace(probes)
    return () if message is None else (Void(reason=VoidReason.NEIGHBOUR, message=message),)


def _dispatch_rate(case: Case) -> str | None:
    sent, asked = case.seen.client.dispatch_rate, case.expected.rate
    if abs(sent / asked - 1) <= RATE_OFF:
        return None
    return f"the client sent {sent:.4g} requests/s instead of {asked:.4g}: give it a faster machine"


def _dispatch_lag(case: Case) -> str | None:
    limit = case.expected.ttft_limit_s
    allowed = LAG_S if limit is None else min(LAG_S, LAG_OF_TTFT * limit)
    lag = case.seen.client.lag_p99
    if lag <= allowed:
        return None
    return f"one request in a hundred was sent {lag * 1000:.0f} ms late or more, {allowed * 1000:.0f} ms are allowed"


def _client_busy(case: Case) -> str | None:
    cores = case.seen.client.cores
    if cores is None or cores <= CORES:
        return None
    return f"the client used {cores:.2f} cores, and it works on one: what it measures is itself"


def _output_tokens(case: Case) -> str | None:
    seen, asked = case.seen.client.output_tokens, case.expected.output_tokens
    if abs(seen / asked - 1) <= TOKENS_OFF:
        return None
    return f"answers had {seen:.1f} tokens instead of {asked:.1f}: the server ends them early, or caps them"


def _input_tokens(case: Case) -> str | None:
    seen, asked = case.seen.client.input_tokens, case.expected.input_tokens
    if asked is None or abs(seen / asked - 1) <= TOKENS_OFF:
        return None
    return f"prompts had {seen:.1f} tokens instead of {asked:.1f}: check the tokenizer, or the chat template"


def _hits(case: Case) -> float:
    """By how much more was found in the prefix cache than the workload says."""
    found = None if case.seen.engine is None else case.seen.engine.prefix_hit_share
    return 0.0 if found is None else found - case.expected.prefix_hit_share


def _warm_cache(case: Case) -> str | None:
    if _hits(case) <= HITS_OFF:
        return None
    found = _hits(case) + case.expected.prefix_hit_share
    return f"{found:.0%} of the prompt tokens were cached, the workload has {case.expected.prefix_hit_share:.0%}"


def _cold_cache(case: Case) -> str | None:
    if _hits(case) >= -HITS_OFF:
        return None
    found = _hits(case) + case.expected.prefix_hit_share
    return f"only {found:.0%} of the prompt tokens were cached, the workload has {case.expected.prefix_hit_share:.0%}"


def _compilation(case: Case) -> str | None:
    client = case.seen.client
    if client.silence is None or client.silence < STALL_S or client.silences > MOST_STALLS:
        return None
    return f"no request got a token for {client.silence:.1f} s: the engine compiled, or was stopped; warm it up"


def _other_requests(case: Case) -> str | None:
    others = case.seen.others
    if others is None or others <= max(2, OTHERS * case.seen.sent):
        return None
    return f"the server had {others:.0f} requests that were not this run's: keep others away"


def _neighbour(case: Case) -> str | None:
    return None if case.seen.probes is None else _other_pace(case.seen.probes)


def _other_pace(probes: Probes) -> str | None:
    if abs(probes.after / probes.before - 1) <= PROBES_OFF:
        return None
    return (
        f"the same probe took {probes.before * 1000:.0f} ms before and {probes.after * 1000:.0f} ms after the run: "
        "something else uses the machine"
    )


def _keeps_a_rate(case: Case) -> bool:
    return not case.expected.capped


def _with_engine(case: Case) -> bool:
    return case.seen.engine is not None and case.seen.engine.prefix_hit_share is not None


RULES: tuple[Rule, ...] = (
    Rule(reason=VoidReason.DISPATCH_RATE, broken=_dispatch_rate, known=_keeps_a_rate),
    Rule(reason=VoidReason.DISPATCH_LAG, broken=_dispatch_lag, known=_keeps_a_rate),
    Rule(reason=VoidReason.CLIENT_BUSY, broken=_client_busy, known=lambda case: case.seen.client.cores is not None),
    Rule(reason=VoidReason.OUTPUT_TOKENS, broken=_output_tokens),
    Rule(
        reason=VoidReason.INPUT_TOKENS,
        broken=_input_tokens,
        known=lambda case: case.expected.input_tokens is not None,
    ),
    Rule(reason=VoidReason.WARM_CACHE, broken=_warm_cache, known=_with_engine),
    Rule(reason=VoidReason.COLD_CACHE, broken=_cold_cache, known=_with_engine),
    Rule(
        reason=VoidReason.COMPILATION,
        broken=_compilation,
        known=lambda case: case.seen.client.silence is not None,
    ),
    Rule(reason=VoidReason.OTHER_REQUESTS, broken=_other_requests, known=lambda case: case.seen.others is not None),
    Rule(reason=VoidReason.NEIGHBOUR, broken=_neighbour, known=lambda case: case.seen.probes is not None),
)
