"""Step functions of time: a value from each instant on, until the next.

Knows nothing of plans. Instants are aware datetimes in UTC; a function starts at its first instant and its
last value holds to its `end`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece(Generic[T]):
    """A value that holds on [start, end)."""

    start: datetime
    end: datetime
    value: T


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFunction(Generic[T]):
    """Values from `times` on, ascending, until `end`. Never empty."""

    times: Sequence[datetime]
    values: Sequence[T]
    end: datetime

    @property
    def start(self) -> datetime:
        """Where the function begins."""
        return self.times[0]

    def index(self, instant: datetime) -> int:
        """The position of the piece that holds at `instant`; the first one before the start."""
        return max(0, bisect_right(self.times, instant) - 1)

    def at(self, instant: datetime) -> T:
        """The value at `instant`."""
        return self.values[self.index(instant)]

    def pieces(self) -> Iterator[Piece[T]]:
        """All pieces in order."""
        for i, (start, value) in enumerate(zip(self.times, self.values, strict=True)):
            end = self.times[i + 1] if i + 1 < len(self.times) else self.end
            yield Piece(start=start, end=end, value=value)

    def within(self, first: datetime, last: datetime) -> Sequence[int]:
        """The positions of all pieces that touch the closed interval [first, last]."""
        return range(self.index(first), max(self.index(first), self.index(last)) + 1)

    def next_change(self, instant: datetime) -> datetime | None:
        """The first change strictly after `instant`."""
        i = bisect_right(self.times, instant)
        return self.times[i] if i < len(self.times) else None

    def previous(self, instant: datetime) -> T | None:
        """The value before the piece that holds at `instant`; None in the first piece."""
        i = self.index(instant)
        return self.values[i - 1] if i else None

    def since(self, first: datetime) -> StepFunction[T]:
        """The same function, cut to start at `first`."""
        i = self.index(first)
        return StepFunction(times=(first, *self.times[i + 1 :]), values=self.values[i:], end=self.end)

    def until(self, last: datetime) -> StepFunction[T]:
        """The same function, cut to end at `last`."""
        n = max(1, bisect_left(self.times, last))
        return StepFunction(times=self.times[:n], values=self.values[:n], end=last)

    def hours(self, weight: Callable[[T], int]) -> float:
        """The integral of `weight` in hours."""
        total = sum((weight(p.value) * (p.end - p.start) for p in self.pieces()), timedelta())
        return total / timedelta(hours=1)


def step_function(points: Sequence[tuple[datetime, T]], *, end: datetime) -> StepFunction[T]:
    """A step function from points in ascending order, equal neighbours merged."""
    times: list[datetime] = []
    values: list[T] = []
    for time, value in points:
        if not values or values[-1] != value:
            times.append(time)
            values.append(value)
    return StepFunction(times=tuple(times), values=tuple(values), end=end)


def largest(function: StepFunction[int], start: datetime, end: datetime) -> int:
    """The largest value on [start, end)."""
    return max(function.values[i] for i in function.within(start, end - timedelta(microseconds=1)))


def combine(
    first: StepFunction[int], second: StepFunction[int], function: Callable[[int, int], int]
) -> StepFunction[int]:
    """A function of two step functions, from the later start to the earlier end."""
    start, end = max(first.start, second.start), min(first.end, second.end)
    times = sorted({start, *(t for t in (*first.times, *second.times) if start < t < end)})
    return step_function([(t, function(first.at(t), second.at(t))) for t in times], end=end)
