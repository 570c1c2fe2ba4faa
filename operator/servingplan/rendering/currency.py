"""Whether a plan's capacity is that of what runs: its engine, its objectives, its pods and its requests, one by one.

In: the plan with what was measured, what runs, what the engines say, and what the last status said. Out: the condition
CapacityCurrent. What cannot be judged now leaves a difference that was found standing: a pod that is gone, or an
operator that has just started, is no proof that it is gone too. Messages name what was measured, never what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from servingplan.planning.evidence import planned_mean
from servingplan.planning.measured import Fingerprint, Measured
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Heard, NoSignals, Signals, Traffic
from servingplan.rendering.identity import EngineIdentity, differences, identity
from servingplan.rendering.serving import RunningPod, digest_of
from servingplan.rendering.situation import Condition, Status

TYPE = "CapacityCurrent"

MORE_TOKENS, NO_MORE_TOKENS = 1.2, 1.1
"""Mean tokens, in multiples of the measured ones, from which on requests are longer, and up to which they are again
as measured: the capacity is wrong by about as much, and a mean that moves around one limit does not flap."""

FEWER_TOKENS, NO_FEWER_TOKENS = 0.8, 0.9
"""Below this multiple a replica serves more than what was measured; likewise."""

COLDER, NO_COLDER = 0.10, 0.05
"""By how much the share of prefix hits is below the measured one, likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a check reads. previous: the condition as the last status has it; empty where it has none."""

    plan: Plan
    running: Sequence[RunningPod] = ()
    heard: Heard | None = None
    previous: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> Fingerprint:
        """What was measured; empty where nothing was."""
        return Fingerprint() if self.plan.measured is None else self.plan.measured.fingerprint

    def was(self, reason: Reason) -> bool:
        """Whether that difference was found before."""
        return self.previous.get("status") == Status.FALSE and self.previous.get("reason") == reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found. differs: each difference in words. unknown: why it cannot be told.

    judged: False where there is nothing now that could be compared. also: what else than a difference the last status
    may have said, and still holds then.
    """

    reason: Reason
    differs: tuple[str, ...] = ()
    unknown: tuple[Reason, str] | None = None
    judged: bool = True
    also: tuple[Reason, ...] = ()

    def stands(self, case: Case) -> bool:
        """Whether what was said last is all that is known."""
        if self.judged:
            return False
        return case.was(self.reason) or (self.unknown is None and case.previous.get("reason") in self.also)


def capacity_current(case: Case) -> Condition | None:
    """The condition; None where nothing was measured and nothing live can be compared with the plan."""
    plan = case.plan
    if plan.measured is None and (plan.feedback is None or _expected(plan) == (None, None)):
        return None
    found = [check(case) for check in CHECKS]
    different = [finding for finding in found if finding.differs]
    if different:
        differs = "; ".join(words for finding in different for words in finding.differs)
        return _condition(Status.FALSE, different[0].reason, f"{differs}. {_remedy(plan)}")
    if any(finding.stands(case) for finding in found):
        said = case.previous
        return _condition(Status(said["status"]), Reason(said["reason"]), said["message"])
    unknown = next((finding.unknown for finding in found if finding.unknown is not None), None)
    if unknown is not None:
        return _condition(Status.UNKNOWN, unknown[0], unknown[1])
    return _holds(case)


def _condition(status: Status, reason: Reason, message: str) -> Condition:
    return Condition(type=TYPE, status=status, reason=reason, message=message)


def _remedy(plan: Plan) -> str:
    if plan.measured is None:
        return "Measure one replica again with requests like those, and correct capacity and workload.tokens."
    return (
        f"Run CapacityBenchmark {plan.measured.benchmark} again; until its result is of what runs, no replica is "
        "lowered for it."
    )


def _holds(case: Case) -> Condition:
    source = "the plan" if case.plan.measured is None else f"CapacityBenchmark {case.plan.measured.benchmark}"
    if _shorter(case):
        message = (
            f"requests of the last hour have less than {FEWER_TOKENS:.0%} of the tokens that {source} counts on: a "
            "replica serves more than the capacity says, and a new measurement may save replicas"
        )
        return _condition(Status.TRUE, Reason.TOKENS_BELOW_PLAN, message)
    return _condition(Status.TRUE, Reason.CAPACITY_HOLDS, f"nothing that runs differs from what {source} counts on")


# ---- the engine and the objectives: known at any time -----------------------------------------------------


def engine(case: Case) -> Finding:
    """The plan's engine against the measured one, field by field."""
    measured, runs = case.plan.measured, case.plan.engine
    if measured is None:
        return Finding(reason=Reason.ENGINE_DIFFERS)
    if runs is None or not measured.fingerprint.digest:
        return Finding(
            reason=Reason.ENGINE_DIFFERS, unknown=(Reason.ENGINE_UNKNOWN, _no_engine(measured, runs is None))
        )
    now, then = identity(runs), _then(measured.fingerprint)
    if now.digest == measured.fingerprint.digest:
        return Finding(reason=Reason.ENGINE_DIFFERS)
    named = tuple(difference.told("measured") for difference in differences(now, then))
    return Finding(reason=Reason.ENGINE_DIFFERS, differs=named or ("the engine is another one than was measured",))


def _no_engine(measured: Measured, targeting: bool) -> str:
    if targeting:
        return "the engine of a named target is not known, so it cannot be compared with the one that was measured"
    return f"CapacityBenchmark {measured.benchmark} does not tell which engine it measured"


def _then(fingerprint: Fingerprint) -> EngineIdentity:
    return EngineIdentity(
        image=fingerprint.image,
        model=fingerprint.model,
        arguments=fingerprint.arguments,
        accelerator=fingerprint.accelerator,
    )


def objectives(case: Case) -> Finding:
    """The plan's objectives, where it states any, against those that the capacity was found at."""
    stated, then = dict(case.plan.workload.objectives.words), dict(case.fingerprint.objectives)
    if not stated or not then:
        return Finding(reason=Reason.OBJECTIVES_DIFFER)
    names = sorted(name for name in stated.keys() | then.keys() if stated.get(name) != then.get(name))
    differs = tuple(
        f"{name} {stated.get(name, 'is not stated')}, measured {f'with {then[name]}' if name in then else 'without'}"
        for name in names
    )
    return Finding(reason=Reason.OBJECTIVES_DIFFER, differs=differs)


# ---- the pods that serve ----------------------------------------------------------------------------------


def image(case: Case) -> Finding:
    """The image that pods run, whatever its tag says."""
    then = digest_of(case.fingerprint.image_digest)
    if not then or not case.running:
        return Finding(reason=Reason.IMAGE_DIFFERS, judged=not then, also=(Reason.PODS_UNKNOWN,))
    other = {pod.image for pod in case.running} - {then, ""}
    if other:
        differs = f"pods run image {min(other)}, measured with {then}"
        return Finding(reason=Reason.IMAGE_DIFFERS, differs=(differs,))
    if all(pod.image for pod in case.running):
        return Finding(reason=Reason.IMAGE_DIFFERS)
    # No pod by its name: it changes with every rollout.
    message = "a pod's status does not say which image it runs"
    return Finding(reason=Reason.IMAGE_DIFFERS, unknown=(Reason.PODS_UNKNOWN, message), judged=False)


def hardware(case: Case) -> Finding:
    """Product and driver of the accelerators, as the pods' nodes are labelled."""
    then = case.fingerprint
    named = (("accelerator", "product"), ("driver", "driver"))
    wanted = [(words, name, getattr(then, name)) for words, name in named if getattr(then, name)]
    if not wanted or not case.running:
        also = (Reason.NODES_UNREADABLE, Reason.NODES_UNLABELLED)
        return Finding(reason=Reason.HARDWARE_DIFFERS, judged=not wanted, also=also)
    read = [pod.hardware for pod in case.running if pod.hardware is not None]
    differs = tuple(
        f"pods run on {words} {min(other)}, measured on {measured}"
        for words, name, measured in wanted
        if (other := {getattr(one, name) for one in read} - {measured, ""})
    )
    if differs:
        return Finding(reason=Reason.HARDWARE_DIFFERS, differs=differs)
    if len(read) < len(case.running):
        unknown = (Reason.NODES_UNREADABLE, "the operator may not read the nodes, so it cannot tell their accelerators")
        return Finding(reason=Reason.HARDWARE_DIFFERS, unknown=unknown, judged=False)
    silent = [words for words, name, _ in wanted if any(not getattr(one, name) for one in read)]
    if silent:
        message = f"a node of the pods is not labelled with the {' and the '.join(silent)} that was measured"
        return Finding(reason=Reason.HARDWARE_DIFFERS, unknown=(Reason.NODES_UNLABELLED, message), judged=False)
    return Finding(reason=Reason.HARDWARE_DIFFERS)


# ---- the requests of the last hour ------------------------------------------------------------------------


def tokens(case: Case) -> Finding:
    """Mean input and output tokens, against what was measured, or what the plan states."""
    expected, traffic = _expected(case.plan), _traffic(case)
    if traffic is None:
        return _unheard(Reason.TOKENS_ABOVE_PLAN, case, compared=expected != (None, None))
    limit = NO_MORE_TOKENS if case.was(Reason.TOKENS_ABOVE_PLAN) else MORE_TOKENS
    named = (("input", traffic.input_tokens, expected[0]), ("output", traffic.output_tokens, expected[1]))
    verb = "planned" if case.plan.measured is None else "measured"
    differs = tuple(
        f"for an hour requests have had over {MORE_TOKENS - 1:.0%} more {words} tokens than the {then:.0f} {verb}"
        for words, now, then in named
        if now is not None and then is not None and now > limit * then
    )
    return Finding(reason=Reason.TOKENS_ABOVE_PLAN, differs=differs)


def cache(case: Case) -> Finding:
    """The share of prompt tokens found in the prefix cache."""
    then = None if case.plan.measured is None else case.plan.measured.at_capacity.prefix_hit_share
    traffic = _traffic(case)
    if then is None:
        return Finding(reason=Reason.CACHE_COLDER)
    if traffic is None or traffic.prefix_hit_share is None:
        return _unheard(Reason.CACHE_COLDER, case, compared=True)
    limit = NO_COLDER if case.was(Reason.CACHE_COLDER) else COLDER
    if traffic.prefix_hit_share >= then - limit:
        return Finding(reason=Reason.CACHE_COLDER)
    message = (
        f"for an hour the prefix cache has answered over {COLDER * 100:.0f} points less of the prompt tokens than the "
        f"{then:.0%} measured"
    )
    return Finding(reason=Reason.CACHE_COLDER, differs=(message,))


def _traffic(case: Case) -> Traffic | None:
    """What an hour's requests were like; None where nobody knows, or too few were heard."""
    return case.heard.traffic if case.plan.feedback is not None and isinstance(case.heard, Signals) else None


def _unheard(reason: Reason, case: Case, *, compared: bool) -> Finding:
    """Without an hour's requests: silence has a reason, and an operator that has just started none yet."""
    heard = case.heard
    if not compared or case.plan.feedback is None:
        return Finding(reason=reason)
    if not isinstance(heard, NoSignals):
        return Finding(reason=reason, judged=False, also=(Reason.TOKENS_BELOW_PLAN,))
    if heard.reason is Reason.METRICS_AWAITED:
        return Finding(reason=reason, judged=False, also=(Reason.TOKENS_BELOW_PLAN, Reason.TRAFFIC_UNKNOWN))
    # Not its own words: they may move with every poll.
    message = f"what requests are like now cannot be told ({heard.reason}): MetricsAvailable says why"
    return Finding(reason=reason, judged=False, unknown=(Reason.TRAFFIC_UNKNOWN, message))


def _expected(plan: Plan) -> tuple[float | None, float | None]:
    """Mean input and output tokens that the capacity counts on."""
    if plan.measured is not None:
        return plan.measured.at_capacity.input_tokens, plan.measured.at_capacity.output_tokens
    return planned_mean(plan.workload.tokens.input), planned_mean(plan.workload.tokens.output)


def _shorter(case: Case) -> bool:
    """Whether requests are far shorter than expected, prompts or answers, and neither is longer."""
    traffic = _traffic(case)
    if traffic is None:
        return False
    pairs = zip((traffic.input_tokens, traffic.output_tokens), _expected(case.plan), strict=True)
    ratios = [now / then for now, then in pairs if now is not None and then]
    limit = NO_FEWER_TOKENS if case.previous.get("reason") == Reason.TOKENS_BELOW_PLAN else FEWER_TOKENS
    return bool(ratios) and min(ratios) < limit and max(ratios) <= 1


CHECKS: tuple[Callable[[Case], Finding], ...] = (engine, objectives, image, hardware, tokens, cache)
"""What is stated before what runs before what is asked of it: the first difference names the reason."""
