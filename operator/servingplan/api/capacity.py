"""A plan's capacity: stated, or read from the status of the CapacityBenchmark that it refers to.

Place in the flow: part of ``resolve``. In: `spec.capacity` and `References`. Out: a `Capacity`, and what was measured
where it was. Of a benchmark only its result counts, also while it runs anew: it stands until there is a better one.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator

from servingplan.api.objectives import ObjectivesSpec, objectives
from servingplan.api.references import Content, Kind, Reference, References
from servingplan.api.rules import ONE_PERCENTILE
from servingplan.api.v1alpha1 import CapacitySpec
from servingplan.api.wire import MAX_RATE, Tolerant
from servingplan.errors import InputError, Problem
from servingplan.planning.measured import AtCapacity, Fingerprint, Measured
from servingplan.planning.plan import Capacity, PoolCapacity
from servingplan.planning.units import exact

Rate = Annotated[float, Field(gt=0, le=MAX_RATE)]
Amount = Annotated[float, Field(ge=0)]


class _PoolSize(Tolerant):
    replicas: Annotated[int, Field(ge=1)]
    requests_per_second: Rate


class _Capacity(Tolerant):
    requests_per_second: Rate
    per_pool_size: tuple[_PoolSize, ...] = ()


class _AtCapacity(Tolerant):
    in_flight_mean: Amount | None = None
    unloaded_ttft_p95_seconds: Amount | None = None
    input_tokens: Amount | None = None
    output_tokens: Amount | None = None
    prefix_hit_share: Annotated[float, Field(ge=0, le=1)] | None = None


class _Fingerprint(Tolerant):
    digest: str = ""
    image: str = ""
    image_digest: str = ""
    model: str = ""
    arguments: tuple[str, ...] = ()
    accelerator: str = ""
    product: str = ""
    driver: str = ""
    objectives: ObjectivesSpec | None = None

    @field_validator("objectives")
    @classmethod
    def _has_limits(cls, stated: ObjectivesSpec | None) -> ObjectivesSpec | None:
        """Of a file: the API server has checked it already."""
        for limit in (stated.ttft, stated.tpot, stated.e2el) if stated is not None else ():
            if limit is not None and len(limit.model_dump(exclude_none=True)) != 1:
                raise ValueError(ONE_PERCENTILE.message)
        return stated


class _Result(Tolerant):
    capacity: _Capacity
    at_capacity: _AtCapacity = _AtCapacity()
    fingerprint: _Fingerprint = _Fingerprint()


def capacity(wire: CapacitySpec, path: str, references: References) -> tuple[Capacity, Measured | None]:
    """The capacity; with what was measured where a benchmark did. Raises InputError where that has no result."""
    if wire.benchmark_ref is not None:
        return _measured(wire.benchmark_ref.name, f"{path}.benchmarkRef.name", references)
    if wire.requests_per_second is not None:
        return _by_size([(1, wire.requests_per_second)]), None
    return _by_size([(point.replicas, point.requests_per_second) for point in wire.per_pool_size or ()]), None


def _measured(name: str, where: str, references: References) -> tuple[Capacity, Measured]:
    result = _result(name, where, references.get(Reference(Kind.BENCHMARK, name)))
    found, known = result.fingerprint, result.at_capacity
    sizes = [(size.replicas, size.requests_per_second) for size in result.capacity.per_pool_size]
    points = _by_size(sizes if len(sizes) > 1 else [(1, result.capacity.requests_per_second)]).points
    measured = Measured(
        benchmark=name,
        fingerprint=Fingerprint(
            digest=found.digest,
            image=found.image,
            image_digest=found.image_digest,
            model=found.model,
            arguments=found.arguments,
            accelerator=found.accelerator,
            product=found.product,
            driver=found.driver,
            objectives=objectives(found.objectives).words,
        ),
        at_capacity=AtCapacity(
            in_flight_mean=known.in_flight_mean,
            unloaded_ttft_p95_s=known.unloaded_ttft_p95_seconds,
            input_tokens=known.input_tokens,
            output_tokens=known.output_tokens,
            prefix_hit_share=known.prefix_hit_share,
        ),
    )
    return Capacity(points=points, source=name, fingerprint=found.digest), measured


def _by_size(sizes: list[tuple[int, float]]) -> Capacity:
    """One number is one point: it holds for every pool size. Order in the list never matters."""
    return Capacity(
        points=tuple(PoolCapacity(replicas=size, requests_per_second=exact(rate)) for size, rate in sorted(sizes))
    )


def _result(name: str, where: str, content: Content | None) -> _Result:
    if content is None:
        message = (
            f"CapacityBenchmark {name!r} does not exist in the plan's namespace: create it, or state "
            "capacity.requestsPerSecond"
        )
        raise InputError(Problem(path=where, reason="BenchmarkNotFound", message=message))
    if "capacity" not in content:
        raise InputError(Problem(path=where, reason="BenchmarkWithoutCapacity", message=_why_none(name, content)))
    try:
        return _Result.model_validate_json(json.dumps(dict(content)))
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in detail["loc"])
        message = f"status.{field} of CapacityBenchmark {name!r} cannot be used ({detail['msg']}): measure again"
        raise InputError(Problem(path=where, reason="BenchmarkInvalid", message=message)) from error


def _why_none(name: str, content: Content) -> str:
    """An unfinished benchmark is waited for; one that found nothing needs a person."""
    complete: dict[str, Any] = content.get("complete") or {}
    why = f" ({complete.get('reason')}: {complete.get('message', '')})" if complete else ""
    if complete.get("status") == "True":
        return f"CapacityBenchmark {name!r} found no capacity{why}: change what it says, and measure again"
    return f"CapacityBenchmark {name!r} has no result yet{why}: it counts as soon as there is one"
