"""What was seen during a demo, and what it comes to: samples, a feed of lines, the ramp's margin.

In: snapshots in the order of their time. Out: values for the screen, the plain lines and the summary. Has no clock of
its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from servingplan.controller.clock import Clock
from servingplan.demo.story import Story
from servingplan.demo.watching import SeenEvent, Snapshot
from servingplan.planning.demand import Requirement
from servingplan.planning.observation import Stage
from servingplan.rendering.stated import StatedCondition
from servingplan.rendering.times import parse_wire_time
from servingplan.reporting.local import clock_time


class Tone(Enum):
    """How a line of the feed is meant."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    DEMO = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the feed. time: on the demo clock."""

    time: datetime
    text: str
    tone: Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Replicas at an instant: asked for by the operator, and ready."""

    time: datetime
    asked: int
    ready: int


class Record:
    """Everything that was seen so far."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.samples: list[Sample] = []
        self.feed: list[Line] = []
        self.last: Snapshot | None = None
        self.asked_at: datetime | None = None
        self.ready_at: datetime | None = None
        self.settled_at: datetime | None = None
        self.restarts = 0
        self.restart_writes: Mapping[str, int] = {}
        self._times: list[datetime] = []
        self._seen: set[str] = set()

    # ---- in ----

    def take(self, snapshot: Snapshot, clock: Clock) -> None:
        """Keep a snapshot; what is new in it goes to the feed. clock: the one that the operator runs on now."""
        before = self.samples[-1] if self.samples else None
        sample = Sample(time=snapshot.time, asked=snapshot.status.get("desiredReplicas", 0), ready=snapshot.ready)
        self.last = snapshot
        self.samples.append(sample)
        self._times.append(sample.time)
        for event in snapshot.events:
            if event.identity not in self._seen:
                self._seen.add(event.identity)
                self._tell_event(event, clock)
        self.asked_at = self.asked_at or self._asked_for_ramp(snapshot)
        if sample.asked and (before is None or not before.asked or sample.ready != before.ready):
            self._tell_ready(sample)
        if self.settled_at is None and sample.asked and sample.ready >= self.required.replicas:
            self.settled_at = sample.time

    def say(self, time: datetime, text: str, tone: Tone = Tone.DEMO) -> None:
        """Add a line of the demo's own."""
        self.feed.append(Line(time=time, text=text, tone=tone))

    def _tell_event(self, event: SeenEvent, clock: Clock) -> None:
        # The operator says the demo clock's time in its notes; here it is the time of every line.
        text = event.note.partition(" (demo clock")[0]
        tone = Tone.BAD if event.warning else Tone.PLAIN
        self.feed.append(Line(time=clock.from_real(event.time), text=f"{event.reason}: {text}", tone=tone))

    def _asked_for_ramp(self, snapshot: Snapshot) -> datetime | None:
        """When the operator asked for the rise, as it wrote itself; None while the last change is another one."""
        last = snapshot.status.get("lastScale")
        if last is None or last["to"] < self.story.rise.after:
            return None
        return parse_wire_time(last["time"])

    def _tell_ready(self, sample: Sample) -> None:
        ramp_at, needed = self.story.ramp_at, self.story.rise.after
        full = self.ready_at is None and sample.ready >= needed and sample.time >= self.story.rise.start
        there = sum(count for stage, count in self.stages.items() if stage is not Stage.TERMINATING)
        text, tone = f"{sample.ready} of {there} ready", Tone.PLAIN
        if full:
            self.ready_at = sample.time
            margin = minutes(ramp_at - sample.time)
            early = margin >= 0
            tone = Tone.GOOD if early else Tone.BAD
            when = f"{margin:.0f} min before" if early else f"{-margin:.0f} min after"
            text = f"all {sample.ready} ready, {when} the ramp at {clock_time(ramp_at, self.story.zone)}"
        self.feed.append(Line(time=sample.time, text=text, tone=tone))

    # ---- out ----

    @property
    def conditions(self) -> Sequence[StatedCondition]:
        """The plan's conditions at the last look."""
        return self.last.conditions if self.last is not None else ()

    @property
    def now(self) -> datetime:
        """The demo clock at the last look."""
        return self.samples[-1].time if self.samples else self.story.parts[0].start

    @property
    def ready(self) -> int:
        """Replicas that served at the last look."""
        return self.samples[-1].ready if self.samples else 0

    @property
    def asked(self) -> int:
        """Replicas that the operator asked for at the last look."""
        return self.samples[-1].asked if self.samples else 0

    @property
    def required(self) -> Requirement:
        """What must be ready now."""
        return self.story.outlook.course.required.at(self.now)

    @property
    def stages(self) -> Mapping[Stage, int]:
        """Pods by how far they have come."""
        return self.last.stages if self.last is not None else {}

    @property
    def margin(self) -> timedelta | None:
        """Ramp minus all replicas ready; negative where it was missed, None where they never were ready."""
        return None if self.ready_at is None else self.story.ramp_at - self.ready_at

    @property
    def on_time(self) -> bool:
        """Whether all replicas were ready before the ramp."""
        return self.margin is not None and self.margin >= timedelta()

    def sample_at(self, instant: datetime) -> Sample | None:
        """The last sample at or before an instant."""
        i = bisect_right(self._times, instant)
        return self.samples[i - 1] if i else None


def minutes(span: timedelta) -> float:
    """A span in minutes."""
    return span / timedelta(minutes=1)
