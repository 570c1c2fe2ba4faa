"""Evidence: what each signal says about the number of replicas. One small rule a signal.

In: a `Case`, the plan with what the engines say. Out: a `Verdict` per signal, in a fixed order. Nothing is decided
here: `planning.feedback` weighs the verdicts. Formulas: docs/reference/reasons.md names each outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal

from servingplan.planning.demand import Requirement
from servingplan.planning.learned import Learned
from servingplan.planning.plan import Auto, Objective, Plan, RaiseWhen
from servingplan.planning.reasons import Reason
from servingplan.planning.series import StepFunction
from servingplan.planning.signals import Lasting, Share, Signals
from servingplan.planning.sizing import capacity_per_replica, need
from servingplan.planning.units import format_duration, format_rate

TWO_MINUTES = timedelta(minutes=2)
TEN_MINUTES = timedelta(minutes=10)

STRETCHES = {TWO_MINUTES: timedelta(seconds=20), TEN_MINUTES: timedelta(seconds=150)}
"""How long the quietest part of a window is, whose rate is `Lasting.least`."""

ONE_SIDED_95 = 1.64
"""Standard deviations below which a normal variable lies with 95 %: excess must be more than chance."""

QUIETEST = 2.5
"""Standard deviations by which chance alone puts the quietest of a window's parts below their mean: of six parts, 96 %
of the time none lies lower."""

SAMPLING_S = 120
"""Over how many seconds the spread of arrivals is judged, and in how many those that wait should be served."""

LONGER_PROMPTS = 1.25
"""From which multiple of the planned mean on prompts are longer than planned: more than sampling explains."""

FULL = 0.85
"""Share of the mean in flight at capacity from which on a replica is full: rises need some time, and a measured mean
is exceeded half of the time."""

P95_SIGMAS = 1.645
"""Standard deviations from the median to the 95th percentile of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a rule reads. due: replicas that the schedule needs within one lead. held: extra replicas raised before.

    required: the schedule from some minutes ago until now. learned: of the past, where the plan has foresight.
    """

    plan: Plan
    when: RaiseWhen
    signals: Signals
    required: StepFunction[Requirement]
    due: int
    held: int
    now: datetime
    learned: Learned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one signal says.

    fires: asks for a step more. wants, sure: the total of replicas that it asks for, and the total that is needed even
    if chance played high; 0 where it sizes nothing. keeps: the total that it would keep, had it been raised.
    """

    signal: str
    reason: Reason
    message: str
    fires: bool = False
    wants: int = 0
    sure: int = 0
    keeps: int = 0


def judge(case: Case) -> tuple[Verdict, ...]:
    """Every signal's verdict, in the order of `RULES`."""
    return tuple(rule(case) for rule in RULES)


def arrivals(case: Case) -> Verdict:
    """Arrivals against the plan: acts where lambda - 1.64 sqrt(D lambda / 120 s) > the planned rate.

    wants = n(lambda + sqrt(D lambda / 120 s) + waiting / 120 s) + reserve. The planned rate is the highest in the
    window, so that what arrived before a scheduled fall is no excess after it.
    """
    s = case.signals
    windows = ((s.arrivals_2m, TWO_MINUTES), (s.arrivals_10m, TEN_MINUTES))
    known = [(lasting, _planned_in(case, window), window) for lasting, window in windows if lasting is not None]
    if not case.when.arrivals:
        return _unused("arrivals")
    if not known:
        return Verdict(signal="arrivals", reason=Reason.NOT_KNOWN, message="not heard for two minutes yet")
    above = [lasting.value for lasting, planned, _ in known if lasting.value > planned]
    significant = [each for each in known if _lower(case, each[0].value) > each[1]]
    acting = [
        lasting.value
        for lasting, planned, window in significant
        if lasting.least > planned and _is_level(case, lasting, planned, window)
    ]
    keeps = max((_sized(case, _upper(case, rate)) for rate in above), default=0)
    rate, planned = known[0][0].value, planned_rate(case.plan, case.required.at(case.now))
    message = f"{rate:.3g}/s arrive, {format_rate(planned)}/s planned"
    if acting:
        wants = max(_sized(case, _upper(case, rate)) for rate in acting)
        sure = max(_sized(case, _lower(case, rate)) for rate in acting)
        reason = Reason.ABOVE_PLAN if wants > case.due else Reason.ALREADY_DUE
        return Verdict(signal="arrivals", reason=reason, message=message, wants=wants, sure=sure, keeps=keeps)
    if significant:
        message += ", but not in every part of the window: a burst"
        return Verdict(signal="arrivals", reason=Reason.TRANSIENT_BURST, message=message, keeps=keeps)
    return Verdict(signal="arrivals", reason=Reason.WITHIN_PLAN, message=message, keeps=keeps)


def planned_rate(plan: Plan, required: Requirement) -> Decimal:
    """What the schedule holds against, in requests/s; for a stated total what its need serves."""
    if required.rate is not None:
        return required.rate
    served = required.need * capacity_per_replica(plan.capacity, required.need)
    return Decimal(served.numerator) / Decimal(served.denominator)


def _planned_in(case: Case, window: timedelta) -> float:
    first = case.signals.at - window - case.signals.reach
    pieces = case.required.within(min(first, case.now), case.now)
    return float(max(planned_rate(case.plan, case.required.values[i]) for i in pieces))


def _is_level(case: Case, lasting: Lasting, planned: float, window: timedelta) -> bool:
    """Whether a rate sizes: its window lies wholly after the change, or is above the plan wherever one looks.

    A mean of before and after would size too little, and the rest would follow as a second raise.
    """
    seconds = STRETCHES[window].total_seconds()
    spread = math.sqrt(case.signals.dispersion * lasting.value / seconds)
    return lasting.least >= lasting.value - QUIETEST * spread or lasting.least - ONE_SIDED_95 * spread > planned


def _deviation(case: Case, rate: float) -> float:
    return math.sqrt(case.signals.dispersion * rate / SAMPLING_S)


def _lower(case: Case, rate: float) -> float:
    return rate - ONE_SIDED_95 * _deviation(case, rate)


def _upper(case: Case, rate: float) -> float:
    return rate + _deviation(case, rate)


def _sized(case: Case, rate: float) -> int:
    """The replicas, reserve included, for a rate and for those that wait."""
    wanted = Decimal(str(max(0.0, rate) + case.signals.waiting.least / SAMPLING_S))
    # To the thousandth: sizes are remembered by rate.
    rounded = wanted.quantize(Decimal("0.001"), rounding=ROUND_CEILING)
    reserve = case.required.at(case.now).reserve
    return need(rounded, case.plan.capacity, case.plan.bounds.maximum).unbounded + reserve


def in_flight(case: Case) -> Verdict:
    """Running and waiting requests per replica: rises before anything waits or breaks."""
    limit = in_flight_limit(case.plan, case.when)
    if limit is None:
        return _unused("inFlightPerReplica")
    keeps = math.ceil(sum(case.signals.in_flight.values()) / limit) if limit > 0 else 0
    return _against("inFlightPerReplica", case.signals.in_flight_mean, limit, keeps=keeps)


def in_flight_limit(plan: Plan, when: RaiseWhen) -> float | None:
    """AUTO: 0.85 x the mean in flight at capacity, which a benchmark records; None, which is off, without one."""
    stated = when.in_flight_per_replica
    if stated is not Auto.AUTO:
        return None if stated is None else float(stated)
    measured = None if plan.measured is None else plan.measured.at_capacity.in_flight_mean
    return None if not measured else FULL * measured


def waiting(case: Case) -> Verdict:
    """Waiting requests per replica: marks saturation."""
    limit = _waiting_limit(case)
    if limit is None:
        return _unused("waitingPerReplica")
    pods = len(case.signals.in_flight)
    total = case.signals.waiting
    mean = Lasting(value=total.value / pods, least=total.least / pods)
    guessed = case.when.waiting_per_replica is Auto.AUTO and _unloaded_ttft_s(case.plan) is None
    unknown = " (unloaded TTFT unknown, counted as 0)" if guessed else ""
    return _against("waitingPerReplica", mean, limit, note=unknown)


def _waiting_limit(case: Case) -> float | None:
    """AUTO: half of Q = max(1, floor(capacity x (TTFT limit - unloaded TTFT p95))), the latter from a benchmark."""
    stated, ttft = case.when.waiting_per_replica, case.plan.workload.objectives.ttft
    if stated is None:
        return None
    if stated is not Auto.AUTO:
        return float(stated)
    if ttft is None:
        return None
    capacity = float(capacity_per_replica(case.plan.capacity, max(1, case.due)))
    left_s = max(0.0, ttft.limit.total_seconds() - (_unloaded_ttft_s(case.plan) or 0.0))
    return max(1, math.floor(capacity * left_s)) / 2


def _unloaded_ttft_s(plan: Plan) -> float | None:
    return None if plan.measured is None else plan.measured.at_capacity.unloaded_ttft_p95_s


def ttft(case: Case) -> Verdict:
    """A breach of the TTFT objective counts only while requests wait: else prompts are longer, or nodes slower."""
    if longer_prompts(case):
        return _prompts_longer(case, "ttftBreach")
    if not case.when.ttft_breach:
        return _unused("ttftBreach")
    verdict = _breach("ttftBreach", case.signals.ttft, case.plan.workload.objectives.ttft)
    if verdict.fires and case.signals.waiting_most == 0:
        message = f"{verdict.message}, but nothing waits: more replicas would not shorten it"
        return Verdict(signal="ttftBreach", reason=Reason.WITHIN_LIMIT, message=message)
    return verdict


def tpot(case: Case) -> Verdict:
    """A breach of the TPOT objective: breaks while nothing waits yet, where many sequences are allowed."""
    if not case.when.tpot_breach:
        return _unused("tpotBreach")
    verdict = _breach("tpotBreach", case.signals.tpot, case.plan.workload.objectives.tpot)
    return _prompts_longer(case, "tpotBreach") if verdict.fires and longer_prompts(case) else verdict


def queue_time(case: Case) -> Verdict:
    """The queue time's percentile: seen only when a request has finished, so it confirms and never raises alone."""
    if case.when.queue_time is None:
        return _unused("queueTime")
    verdict = _breach("queueTime", case.signals.queue, case.when.queue_time)
    if not verdict.fires:
        return verdict
    return Verdict(signal="queueTime", reason=Reason.CONFIRMS, message=verdict.message)


def preemptions(case: Case) -> Verdict:
    """Preemptions per finished request over two minutes: memory is short."""
    limit, share = case.when.preemption_share, case.signals.preemption_share
    if limit is None:
        return _unused("preemptionShare")
    if share is None:
        return _unknown("preemptionShare")
    return _against("preemptionShare", share, float(limit))


def rejections(case: Case) -> Verdict:
    """Requests that engines refused. They may be retries, so they ask for a step and size nothing by themselves."""
    if not case.when.rejections:
        return _unused("rejections")
    if case.signals.rejections is None:
        return _unknown("rejections")
    return _against("rejections", case.signals.rejections, 0.0, note="/s, possibly retries")


RULES: tuple[Callable[[Case], Verdict], ...] = (
    arrivals,
    in_flight,
    waiting,
    ttft,
    tpot,
    queue_time,
    preemptions,
    rejections,
)
"""Demand first, then load, latency and losses: what leads before what lags."""

GROUPS = {
    "arrivals": ("arrivals",),
    "foresight": ("foresight",),
    "load": ("inFlightPerReplica", "waitingPerReplica", "preemptionShare", "rejections"),
    "latency": ("ttftBreach", "tpotBreach", "queueTime"),
}
"""Signals as the trail shows them: it has room for twelve steps. The second one is judged by `planning.foreseen`."""


def _against(signal: str, measured: Lasting, limit: float, *, note: str = "", keeps: int = 0) -> Verdict:
    """A figure against a limit that it must not exceed in every part of its window."""
    message = f"{signal} {measured.value:.3g}{note}, limit {limit:.3g}"
    if measured.least > limit:
        return Verdict(signal=signal, reason=Reason.OVER_LIMIT, message=message, fires=True, keeps=keeps)
    if measured.value > limit:
        message += ", but not for long enough: a burst"
        return Verdict(signal=signal, reason=Reason.TRANSIENT_BURST, message=message, keeps=keeps)
    return Verdict(signal=signal, reason=Reason.WITHIN_LIMIT, message=message, keeps=keeps)


def _breach(signal: str, share: Share | None, objective: Objective | None) -> Verdict:
    """An attainment against the percentile's share. Even the favourable bound must miss it, in every half-minute."""
    if objective is None:
        return _unused(signal)
    target = float(objective.share)
    # Fewer requests than this cannot miss the percentile by more than one of them.
    if share is None or share.count * (1 - target) < 1:
        return _unknown(signal)
    bounds = f"{share.at_least:.1%}" + ("" if share.at_least == share.at_most else f" to {share.at_most:.1%}")
    message = f"{signal}: {bounds} within {format_duration(objective.limit)}, {target:.4g} asked"
    if share.best < target and share.at_most < target:
        return Verdict(signal=signal, reason=Reason.OVER_LIMIT, message=message, fires=True)
    if share.at_most < target:
        return Verdict(signal=signal, reason=Reason.TRANSIENT_BURST, message=f"{message}, but a burst")
    return Verdict(signal=signal, reason=Reason.WITHIN_LIMIT, message=message)


def _unused(signal: str) -> Verdict:
    return Verdict(signal=signal, reason=Reason.NOT_USED, message=f"{signal} not used")


def _unknown(signal: str) -> Verdict:
    return Verdict(signal=signal, reason=Reason.NOT_KNOWN, message=f"{signal} not known")


def planned_prompt_mean(plan: Plan) -> float | None:
    """Mean input tokens of the plan's requests; None where it does not state their p50 and p95."""
    return planned_mean(plan.workload.tokens.input)


def planned_mean(stated: tuple[tuple[str, int], ...]) -> float | None:
    """Mean tokens of the lognormal distribution with these p50 and p95; None where one of them is not stated.

    sigma = ln(p95 / p50) / 1.645, mean = p50 exp(sigma^2 / 2).
    """
    quantiles = dict(stated)
    middle, high = quantiles.get("p50"), quantiles.get("p95")
    if not middle or not high:
        return None
    sigma = math.log(high / middle) / P95_SIGMAS
    return middle * math.exp(sigma**2 / 2)


def longer_prompts(case: Case) -> bool:
    """Prompts are much longer than planned, and nothing waits."""
    planned, mean = planned_prompt_mean(case.plan), case.signals.prompt_mean
    if planned is None or mean is None:
        return False
    return mean > LONGER_PROMPTS * planned and case.signals.waiting_most == 0


def _prompts_longer(case: Case, signal: str) -> Verdict:
    planned = planned_prompt_mean(case.plan) or 0.0
    message = f"prompts of {case.signals.prompt_mean or 0:.0f} tokens, {planned:.0f} planned, and nothing waits"
    return Verdict(signal=signal, reason=Reason.PROMPTS_LONGER, message=message)
