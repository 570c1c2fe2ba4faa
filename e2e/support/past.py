"""A past for a Prometheus: what an engine of a plan would have counted before a demo's clock began."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from servingplan.controller.clock import AcceleratedClock

EVERY = timedelta(seconds=20)
"""Three samples a minute, on the clock of plans."""


def past_of(
    plan: str, namespace: str, clock: AcceleratedClock, days: int, rate: Callable[[datetime], float]
) -> Iterator[str]:
    """Lines of the OpenMetrics format: `days` before now, in which one pod of the plan served `rate` requests/s.

    now: when the first line is taken. rate: of an instant of the plans' clock. The samples lie where the real clock
    was then.
    """
    now, total = clock.now(), 0.0
    instant = now - timedelta(days=days)
    arrived: list[tuple[float, float]] = []
    while instant < now:
        arrived.append((clock.to_real(instant).timestamp(), total))
        total += rate(instant) * EVERY.total_seconds()
        instant += EVERY
    labels = f'namespace="{namespace}",pod="{plan}-7d4f9c6b58-x2k9z",instance="past:8000",engine="0",model_name="m"'
    yield "# TYPE vllm:time_to_first_token_seconds histogram"
    yield from (f"vllm:time_to_first_token_seconds_count{{{labels}}} {count:g} {at:.3f}" for at, count in arrived)
    yield "# TYPE vllm:num_requests_waiting gauge"
    yield from (f"vllm:num_requests_waiting{{{labels}}} 0 {at:.3f}" for at, _ in arrived)
