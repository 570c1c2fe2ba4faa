"""The simulation and the operator on a real control plane: one script, the same changes of replicas.

A week passes in some minutes: fast where nothing is due, slowly where replicas change. The operator is the real
process against a real API server and a real Prometheus; the simulation is given the same script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from e2e.support.faults import ReplicaLog
from e2e.support.listening import feedback
from e2e.support.loop import Loop
from e2e.support.operator import sleep_until
from e2e.support.plans import scaled_at, until_ready
from e2e.support.prometheus import PROGRAM
from e2e.support.scripted import Script, Simulation, as_planned, rounds, varying_clock
from servingplan.api.resolve import resolve
from servingplan.controller.clock import AcceleratedClock, system_now
from servingplan.localcluster.stages import Span
from servingplan.planning.calendar import Interval
from servingplan.planning.plan import Plan, RaiseWhen
from servingplan.rendering.metadata import CONFIG_LABEL
from support.specs import ENGINE, config_map, config_maps, document, scheduled

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs prometheus on the PATH")

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = timedelta(minutes=1)
NAME = "support-chat"

QUIET, BUSY, HEARD = 3600, 100, 90
"""Nothing is due; replicas change by the schedule; engines are listened to, every 45 s of the plan."""

WITHIN_S = 0.5
"""How far the two may be apart, in seconds of the machine."""

STARTS_S = 3.0
"""Five minutes of a busy hour: with the seconds that timestamps are cut to, well within the lead of 12."""

BEGINS_IN = timedelta(seconds=100)
"""What a machine with other things to do takes to start Prometheus and the operator, and the first replicas."""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


def between(start: str, end: str) -> Interval:
    return Interval(start=at(start), end=at(end))


EVENING_BEFORE = between("2026-11-29T12:00", "2026-11-30T00:00")
"""In the middle of it, whenever all is ready, the plan is applied."""

WEEK = between("2026-11-30T00:00", "2026-12-07T00:00")
LAUNCH = {"name": "launch", "start": "2026-12-02T12:00", "end": "2026-12-02T16:00", "requestsPerSecond": 28}
HOLIDAY = "2026-12-03"
EXCESS = between("2026-12-01T10:00", "2026-12-01T11:01:15")
DEAF = between("2026-12-04T10:00", "2026-12-04T11:00")
UNHEARD_AT_FIRST = between("2026-12-04T10:15", "2026-12-04T11:31:15")
"""An excess that begins while there is no Prometheus, and lasts until it is back."""


def rising(start: str) -> tuple[Interval, int]:
    """Around a rise: its lead of 12 minutes, until its replicas are ready."""
    return Interval(start=at(start) - 16 * MINUTE, end=at(start) - 3 * MINUTE), BUSY


def falling(start: str) -> tuple[Interval, int]:
    """Around a fall: from when engines are heard, until the last replica has drained."""
    return Interval(start=at(start) - 5 * MINUTE, end=at(start) + 12 * MINUTE), BUSY


STRETCHES = [
    (EVENING_BEFORE, BUSY),
    rising("2026-11-30T08:00"),
    falling("2026-11-30T20:00"),
    rising("2026-12-01T08:00"),
    (between("2026-12-01T09:54", "2026-12-01T11:30"), HEARD),
    falling("2026-12-01T20:00"),
    rising("2026-12-02T08:00"),
    rising("2026-12-02T12:00"),
    falling("2026-12-02T16:00"),
    falling("2026-12-02T20:00"),
    rising("2026-12-04T08:00"),
    (between("2026-12-04T09:54", "2026-12-04T10:06"), HEARD),
    (between("2026-12-04T10:54", "2026-12-04T12:00"), HEARD),
    falling("2026-12-04T20:00"),
]


def spec(namespace: str) -> dict:
    holidays = {"name": "holidays", "configMap": {"name": "holidays"}, "treatAs": "Base"}
    return document(
        NAME,
        namespace,
        engine=ENGINE | {"drainTimeout": "1m"},
        feedback=feedback() | {"maxExtra": 2},
        scaleDown={"step": 2, "every": "2m"},
        **scheduled(calendars=[holidays], overrides=[LAUNCH]),
    )


def calendar() -> dict:
    found = config_map("holidays", {"dates": f"{HOLIDAY}\n"})
    return {**found, "metadata": {"name": "holidays", "labels": {CONFIG_LABEL: "true"}}}


def scripted(plan: Plan) -> Script:
    excess = [(EXCESS, 27.0), (UNHEARD_AT_FIRST, 27.0)]
    return Script(
        start=EVENING_BEFORE.start,
        end=WEEK.end,
        arrivals=as_planned(plan, [interval for interval, _ in STRETCHES], excess),
        gone=[DEAF],
        starts_s=STARTS_S,
        lingering=2,
    )


def play(script: Script, loop: Loop, clock: AcceleratedClock) -> None:
    """What the script says, to the real engines and the real Prometheus, at its instants."""
    events: list[tuple[datetime, Callable[[], object]]] = []
    loop.leaving(NAME, running=script.lingering)
    for start, rate in script.arrivals:
        events.append((start, lambda rate=rate: loop.demand(NAME, rate, finished_per_s=0)))
    for interval in script.gone:
        events += [(interval.start, loop.prometheus.stop), (interval.end, loop.prometheus.start)]
    for instant, happen in sorted(events, key=lambda event: event[0]):
        sleep_until(clock, instant.isoformat())
        happen()
    sleep_until(clock, script.end.isoformat())


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Replicas changed to so many, at an instant of the machine."""

    real: datetime
    replicas: int


def apart_s(one: Sequence[Change], other: Sequence[Change]) -> list[float] | None:
    """By how many seconds of the machine changes are apart; None where they are not the same changes."""
    if [each.replicas for each in one] != [each.replicas for each in other]:
        return None
    return [(b.real - a.real).total_seconds() for a, b in zip(one, other, strict=True)]


def agree(one: Sequence[Change], other: Sequence[Change]) -> bool:
    apart = apart_s(one, other)
    return apart is not None and all(abs(each) <= WITHIN_S for each in apart)


OTHERS: dict[str, Callable[[Plan], Plan]] = {
    "a lead of 12 minutes": lambda plan: replace(plan, lead=replace(plan.lead, declared=12 * MINUTE)),
    "a lead of 8 minutes": lambda plan: replace(plan, lead=replace(plan.lead, declared=8 * MINUTE)),
    "a stabilization of 14 minutes": lambda plan: replace(
        plan, scale_down=replace(plan.scale_down, stabilization=14 * MINUTE)
    ),
    "a step every 4 minutes": lambda plan: replace(plan, scale_down=replace(plan.scale_down, every=4 * MINUTE)),
    "at most one more": lambda plan: replace(plan, feedback=replace(plan.feedback, max_extra=1)),
    "no holiday": lambda plan: replace(plan, calendars=()),
    "no feedback": lambda plan: replace(plan, feedback=replace(plan.feedback, raise_when=RaiseWhen(arrivals=False))),
}
"""Plans that differ a little: each of them must be told apart, or agreement would mean nothing."""


def test_a_week_goes_as_it_was_simulated(local_cluster, kubectl, namespace, run_operator, start_loop, tell):
    plan = resolve(spec(namespace), config_maps({"holidays": calendar()["data"]}))
    script = scripted(plan)
    clock = varying_clock(system_now() + BEGINS_IN, WEEK.start, STRETCHES, quiet=QUIET)
    local_cluster.set_start_time(load=Span(at_least=STARTS_S, at_most=STARTS_S))
    loop = start_loop(clock, gpus=8)
    log = ReplicaLog(kubectl, namespace)
    run_operator(f"--sources-file={loop.sources_file()}", clock=clock)
    kubectl.apply(calendar(), spec(namespace))
    until_ready(kubectl, 2, NAME)
    assert clock.now() in EVENING_BEFORE, "this machine is too slow to begin in time"
    play(script, loop, clock)
    log.end()
    asked = rounds(loop.prometheus, clock)

    instants = scaled_at(local_cluster.audit, namespace, NAME, clock)
    # It begins with when the plan was applied, which is nobody's decision.
    begun = replace(script, start=instants[0])
    written = [Change(real=clock.to_real(at), replicas=to) for at, to in zip(instants, log.levels, strict=True)]

    def simulated(one: Plan) -> list[Change]:
        scales = Simulation(one, begun, clock).run(asked)
        return [Change(real=clock.to_real(scale.time), replicas=scale.after) for scale in scales]

    expected = simulated(plan)
    apart = apart_s(expected, written)
    assert apart is not None, f"simulated:\n{told(expected, clock)}\nwritten:\n{told(written, clock)}"
    tell(f"{len(apart)} changes in a week, simulated and real: at most {max(map(abs, apart)):.2f} s apart")
    assert agree(expected, written), f"{apart}\n{told(expected, clock)}"
    alike = [name for name, changed in OTHERS.items() if agree(simulated(changed(plan)), written)]
    assert alike == []


def told(changes: Sequence[Change], clock: AcceleratedClock) -> str:
    return "\n".join(f"{clock.from_real(c.real).astimezone(BERLIN):%a %H:%M:%S} {c.replicas}" for c in changes)
