"""What a plan knows of the benchmark that measured its capacity: of what engine, and what was seen there.

In: made by ``api.capacity`` alone (and by builders in tests). Out: read by signals, which take thresholds from it,
and by ``rendering.currency``, which compares it with what runs. Values only.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What was measured; empty where the benchmark does not say.

    digest: of image, model, arguments and accelerator, as ``rendering.identity`` makes it. image: as stated.
    image_digest: as the pod ran it. product, driver: as its node says. objectives: name and words (``ttft``,
    ``p95 1500ms``), as `planning.plan.Objectives.words`.
    """

    digest: str = ""
    image: str = ""
    image_digest: str = ""
    model: str = ""
    arguments: tuple[str, ...] = ()
    accelerator: str = ""
    product: str = ""
    driver: str = ""
    objectives: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AtCapacity:
    """One replica at its capacity; None where it is not known.

    in_flight_mean: requests. unloaded_ttft_p95_s: of one request at a time. input_tokens, output_tokens: mean of a
    request. prefix_hit_share: of prompt tokens, 0 to 1.
    """

    in_flight_mean: float | None = None
    unloaded_ttft_p95_s: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    prefix_hit_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Where a plan's capacity is from. benchmark: the name of the CapacityBenchmark."""

    benchmark: str
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    at_capacity: AtCapacity = field(default_factory=AtCapacity)
