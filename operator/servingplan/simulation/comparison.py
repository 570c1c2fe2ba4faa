"""The plan, and what else a user might run, on the same requests: who attains what, and for how many GPU-hours.

In: a world, the scenes to play beside it, the entrants. Out: a `Comparison`. This is all that ``simulate`` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

import numpy as np

from servingplan.simulation.playing import Played, play
from servingplan.simulation.reference import clairvoyant, fluid_bound
from servingplan.simulation.rivals import PLAN, Entrant
from servingplan.simulation.scenarios.catalogue import RECORDED, as_recorded
from servingplan.simulation.scenarios.scene import Scenario, Scene, Severity
from servingplan.simulation.scorecard import Period
from servingplan.simulation.servers import Fluid, Model
from servingplan.simulation.standing import Excess, Standing, excess, share_of, standing
from servingplan.simulation.tuning import half_time, judged_from, tuned
from servingplan.simulation.world import Lanes, World

CLAIRVOYANT_ATTAINMENT = 0.995
"""What the fleet that knows all arrivals is sized for: as in ``benchmarks/policy``."""

Tell = Callable[[str, float], None]
"""Gets what is being done, and how much of it is, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One policy. setting: None where it has no knob. standings: by scene. played: as recorded, by [slice, 1, 1].

    calm: what it attains as recorded, in the time by which each scene is judged.
    """

    entrant: Entrant
    setting: float | None
    standings: Mapping[str, Standing]
    calm: Mapping[str, float | None]
    played: Played

    @property
    def recorded(self) -> Standing:
        """As recorded."""
        return self.standings[RECORDED]

    @property
    def words(self) -> str:
        """What it does, and with which setting."""
        knob = self.entrant.knob
        told = "" if knob is None or self.setting is None else knob.words(self.setting)
        return ", ".join(part for part in (self.entrant.words, told) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Results, the plan's first. scenes: as recorded first.

    tuned_until: settings are right for what came before it, and everybody is judged by what came after it; None where
    the trace is too short for that. reference, bound: GPU-hours of a fleet that knows all arrivals, without reserve,
    and of divisible replicas that are always full; the first is None where it cannot attain as much either.
    above: requests above the plan, by scene.
    """

    world: World
    scenes: Sequence[Scene]
    results: Sequence[Result]
    tuned_until: datetime | None
    reference: float | None
    bound: float
    above: Mapping[str, Excess]

    @property
    def plan(self) -> Result:
        """The plan's own result."""
        return self.results[0]


def compare(
    world: World,
    scenarios: Sequence[Scenario],
    severity: Severity,
    entrants: Sequence[Entrant],
    *,
    tell: Tell,
    model: Model = Fluid,
) -> Comparison:
    """Play every entrant in the world as it was recorded, and in every scenario. The first entrant is the plan."""
    plan, *others = entrants
    if plan.key != PLAN:
        raise ValueError("the plan comes first: others are tuned to attain as much")
    half = half_time(world)
    judged = world if half is None else judged_from(world, half)
    scenes = (as_recorded(judged), *(scenario(judged, severity) for scenario in scenarios))
    stage = _Stage(scenes, model, tell)
    results = [stage.result(plan, None)]
    wanted = 0.0 if half is None else _attained(results[0], world.until(half))
    for entrant in others:
        setting = None if entrant.knob is None else entrant.knob.usual
        if half is not None and entrant.knob is not None:
            tell(f"{entrant.title}: tuning", 0)
            setting = tuned(entrant, world, half, wanted)
        results.append(stage.result(entrant, setting))
    tell("clairvoyant fleet", 0)
    reference, bound = _references(judged)
    return Comparison(
        world=judged,
        scenes=scenes,
        results=tuple(results),
        tuned_until=half,
        reference=reference,
        bound=bound,
        above={scene.key: excess(scene) for scene in scenes},
    )


class _Stage:
    """Where entrants are played: scenes with the same start side by side, as lanes."""

    def __init__(self, scenes: Sequence[Scene], model: Model, tell: Tell) -> None:
        self._scenes = scenes
        groups = (tuple(group) for _, group in groupby(sorted(scenes, key=_start_s), key=_start_s))
        self._groups = [(group, Lanes([scene.world for scene in group])) for group in groups]
        self._model, self._tell = model, tell

    def result(self, entrant: Entrant, setting: float | None) -> Result:
        """Play one entrant in all scenes."""
        standings: dict[str, Standing] = {}
        recorded: list[Played] = []
        for number, (scenes, lanes) in enumerate(self._groups):
            played = self._played(entrant, setting, lanes, number)
            for lane, scene in enumerate(scenes):
                standings[scene.key] = standing(played, lanes, scene, lane=lane)
                if scene.key == RECORDED:
                    recorded.append(played.lane(lane))
        (calm,) = recorded
        good, requests = calm.good[:, 0, 0], self._scenes[0].world.trace.requests
        return Result(
            entrant=entrant,
            setting=setting,
            standings=standings,
            calm={scene.key: share_of(good, requests * scene.judged) for scene in self._scenes},
            played=calm,
        )

    def _played(self, entrant: Entrant, setting: float | None, lanes: Lanes, number: int) -> Played:
        return play(
            lanes,
            entrant.make(lanes, () if setting is None else (setting,)),
            model=self._model,
            tell=lambda share: self._tell(entrant.title, (number + share) / len(self._groups)),
        )


def _start_s(scene: Scene) -> float:
    return scene.world.rules.start_s


def _attained(result: Result, world: World) -> float:
    """The attainment in the first part of what was played; 1 where no request came."""
    requests = world.trace.requests * world.judged
    share = share_of(result.played.good[: len(requests), 0, 0], requests)
    return 1.0 if share is None else share


def _references(world: World) -> tuple[float | None, float]:
    """GPU-hours of the clairvoyant fleet, and the fluid bound."""
    load = Lanes([world]).workload
    everything = Period(first_day=0, end_day=len(load.days_off))
    gpus = world.plan.gpus_per_replica or 1
    hours = float(clairvoyant(load, world.rules, everything, CLAIRVOYANT_ATTAINMENT)[0]) * gpus
    return (None if np.isnan(hours) else hours), float(fluid_bound(load, everything)[0]) * gpus
