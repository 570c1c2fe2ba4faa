"""What Prometheus really scraped: the samples of a series with the instants at which they were taken."""

from __future__ import annotations

from dataclasses import dataclass

from e2e.support.prometheus import Prometheus


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value. at: seconds since 1970, when Prometheus scraped it."""

    pod: str
    at: float
    value: float


def samples(prometheus: Prometheus, series: str, *, minutes: int = 30) -> list[Sample]:
    """The samples of a series of the last minutes, of every pod, by instant."""
    values = [
        Sample(pod=each["metric"]["pod"], at=float(at), value=float(value))
        for each in prometheus.query(f"{series}[{minutes}m]")
        for at, value in each["values"]
    ]
    return sorted(values, key=lambda sample: sample.at)
