"""Plays a day: prepares a place, runs the operator part by part, watches, tells, and cleans up whatever happens.

In: `Options`. Out: `Played`, while the cluster is still there; it is gone when the context ends.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from servingplan.controller.clock import AcceleratedClock, system_now
from servingplan.demo.interrupts import interruptible, no_more_interrupts
from servingplan.demo.material import Material, material
from servingplan.demo.narration import skip_words
from servingplan.demo.operator_process import OperatorProcess, Surroundings
from servingplan.demo.places import Place, Say, local_place, own_place
from servingplan.demo.record import Record
from servingplan.demo.story import Part, Story, tell
from servingplan.demo.summary import next_steps, summary, writes_by_kind
from servingplan.demo.telling import Teller, plain_teller, teller
from servingplan.demo.watching import look
from servingplan.errors import Unreachable

LOOK_EVERY_S = 0.25

START_UP = timedelta(seconds=4)
"""Real time that an operator takes to start; at a fast clock minutes, and they are not worth watching."""

PATIENCE_S = 20.0
"""A server that does not answer for so long ends the demo."""

EARLIEST_START, LATEST_START = Fraction(1, 2), Fraction(11, 12)
"""Played pods take this part of the lead to start: 6 to 11 minutes of 12."""

SETTLED_AFTER = timedelta(minutes=10)
"""On the demo clock: the time that a restarted operator gets to write something, before its writes are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is played. file: a plan of the user's own. context: a cluster of theirs, with a namespace to be made there.

    starts: the least and the most that a played pod takes to start; None: a part of the lead.
    """

    file: str | None = None
    context: str | None = None
    namespace: str | None = None
    factor: float | None = None
    starts: tuple[timedelta, timedelta] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A day that was played, with its cluster still there."""

    record: Record
    document: dict[str, Any]
    steps: tuple[tuple[str, str], ...]
    go_on: Callable[[], None]


@contextmanager
def played(options: Options, *, keep: bool, say: Say, allow: Say) -> Iterator[Played]:
    """Play a day to its end. say: tells the person something. allow: asks, and raises where the answer is no.

    Raises InputError and UsageError before anything is started, ClusterError where something does not work. Whatever
    ends it, SIGTERM too, everything that it made is removed.
    """
    own = options.context is not None
    found = material(options.file, namespace=options.namespace, idle=own, standard_input=sys.stdin)
    story = tell(found.plan, system_now())
    factor = options.factor or story.usual_factor()
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        place = stack.enter_context(_place(options, found, story, say=say, allow=allow))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="servingplan-demo-")))
        player = _Player(place, found, story, factor=factor, starts=options.starts, folder=folder)
        stack.callback(player.stop)
        stack.callback(no_more_interrupts)
        say(_announcement(story, factor, local=not own))
        with teller(player.record, factor=factor) as told:
            player.play(told, keep=keep)
        yield Played(
            record=player.record,
            document=summary(player.record, factor=factor, writes=player.writes),
            steps=tuple(next_steps(player.record, place.access if keep else None)),
            go_on=player.go_on,
        )


def _place(options: Options, found: Material, story: Story, *, say: Say, allow: Say) -> AbstractContextManager[Place]:
    before = story.rise.before
    if options.context is not None:
        return own_place(found, options.context, before=before, say=say, allow=allow)
    return local_place(found, most=story.most, before=before, say=say)


def _announcement(story: Story, factor: float, *, local: bool) -> str:
    seconds = story.length.total_seconds() / factor
    rights = "the cluster's admin" if local else "you"
    return (
        f"Playing {story.plan.key}: {story.length / timedelta(minutes=1):.0f} minutes of its day in {seconds:.0f} s, "
        f"{factor:g} times as fast. The operator runs on this machine with the rights of {rights}, "
        "on a clock that only this demo has."
    )


class _Player:
    """Runs the parts of a story, one operator process each."""

    def __init__(
        self,
        place: Place,
        found: Material,
        story: Story,
        *,
        factor: float,
        starts: tuple[timedelta, timedelta] | None,
        folder: Path,
    ) -> None:
        self.record = Record(story)
        self.writes: Counter[str] = Counter()
        self._place, self._material, self._story = place, found, story
        self._factor = Fraction(factor).limit_denominator(1000)
        lead = story.outlook.course.lead
        self._starts = starts or (lead * float(EARLIEST_START), lead * float(LATEST_START))
        plan = found.plan
        self._surroundings = Surroundings(
            folder=folder, namespace=plan.namespace, kubeconfig=place.kubeconfig, context=place.context
        )
        self._operator: OperatorProcess | None = None
        self._clock = self._clock_at(story.parts[0])
        self._answered = time.monotonic()

    def play(self, told: Teller, *, keep: bool) -> None:
        """All parts. keep: the last operator goes on."""
        parts = self._story.parts
        for i, part in enumerate(parts):
            operator = self._start(part, i)
            if i == 0:
                self._begin(operator, told)
            else:
                self._after_restart(operator, told, part)
            self._until(part.end, operator, told)
            self.writes += operator.writes()
            if i < len(parts) - 1 or not keep:
                operator.stop()
            if i < len(parts) - 1:
                self.record.say(part.end, skip_words(self._story, part, parts[i + 1]))
                told.show()

    def go_on(self) -> None:
        """Tell what happens as plain lines, until it is interrupted."""
        told = plain_teller(self.record, told=len(self.record.feed))
        while self._operator is not None:
            self._look(self._operator, told)

    def stop(self) -> None:
        """End the operator; harmless when repeated."""
        if self._operator is not None:
            self._operator.stop()

    def _start(self, part: Part, number: int) -> OperatorProcess:
        self._clock = self._clock_at(part)
        self._operator = OperatorProcess(self._surroundings, self._clock, number=number)
        return self._operator

    def _clock_at(self, part: Part) -> AcceleratedClock:
        """A clock that shows the part's start once the operator should be up."""
        return AcceleratedClock(start=part.start, since=system_now() + START_UP, factor=self._factor)

    def _begin(self, operator: OperatorProcess, told: Teller) -> None:
        """The plan is applied; the replicas of the night are there before starting takes its time."""
        self._place.link.apply(self._material.document)
        rise = self._story.rise
        while self.record.ready < rise.before or not self.record.asked:
            if self._clock.now() >= rise.start:
                break
            self._look(operator, told)
        least, most = (span.total_seconds() / float(self._factor) for span in self._starts)
        self._place.starts_take(least, most)

    def _after_restart(self, operator: OperatorProcess, told: Teller, part: Part) -> None:
        self.record.restarts += 1
        self._until(part.start + SETTLED_AFTER, operator, told)
        self.record.restart_writes = operator.writes()
        kinds = writes_by_kind(self.record.restart_writes)
        self.record.say(
            self.record.now,
            f"the restarted operator wrote replicas {kinds['replicas']} times, status {kinds['status']} (its clock)",
        )

    def _until(self, instant: datetime, operator: OperatorProcess, told: Teller) -> None:
        while self._clock.now() < instant:
            self._look(operator, told)

    def _look(self, operator: OperatorProcess, told: Teller) -> None:
        operator.check()
        began = time.monotonic()
        try:
            self.record.take(look(self._place.link, self._material.plan, self._clock), self._clock)
            self._answered = began
        except Unreachable:
            if began - self._answered > PATIENCE_S:
                raise
        told.show()
        time.sleep(max(0.0, LOOK_EVERY_S - (time.monotonic() - began)))
