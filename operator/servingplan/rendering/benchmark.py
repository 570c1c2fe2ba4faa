"""A CapacityBenchmark's runs, and what was found as its status shows it.

In: a `Benchmark`, reports of ramps that ended (JSON as ``api.benchmark.BenchReport`` checked it), what engine and nodes
say of themselves. Out: a `RunnerJob` for each pool size, and the result's fields of the status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from servingplan.planning.benchmark import Benchmark, Endpoint, TrialPool
from servingplan.planning.plan import Objectives
from servingplan.planning.reasons import Reason
from servingplan.planning.units import format_duration
from servingplan.rendering.measured import Measured
from servingplan.rendering.runner import KEY_VARIABLE, REPORT_PATH, WORK_MOUNT, Model, RunnerJob, data_path, job_name
from servingplan.rendering.trial import trial_name
from servingplan.rendering.volumes import MODEL_MOUNT

Json = dict[str, Any]

LONGEST: Mapping[str, timedelta] = {"Standard": timedelta(hours=4), "Quick": timedelta(minutes=30)}
"""Of one ramp's runs, by effort, where nothing is stated."""

BESIDE_RUNS = timedelta(minutes=30)
"""Looking at the server, counting tokens, probes and what the last run takes longer than those before: a Job that needs
more beside its runs hangs."""

BELOW = Decimal("0.7")
"""The first rate of a larger pool, as a share of what the smaller one's replicas served: a step of the ladder below."""


def runner_job(benchmark: Benchmark, work: str, size: int, reports: Mapping[int, Json]) -> RunnerJob:
    """The ramp of a pool of `size`. reports: of the sizes before it, which say where to start."""
    measured = benchmark.measured
    serves = measured.engine if isinstance(measured, TrialPool) else measured
    volume = measured.engine.model_volume if isinstance(measured, TrialPool) else None
    longest = LONGEST[benchmark.effort] if benchmark.longest is None else benchmark.longest
    return RunnerJob(
        namespace=benchmark.namespace,
        evidence=benchmark.name,
        work=work,
        piece=size,
        arguments=tuple(_arguments(benchmark, work, size, _start(benchmark, size, reports))),
        runner=benchmark.runner,
        data=benchmark.prompts,
        longest=longest + BESIDE_RUNS,
        keys={} if serves.api_key is None else {KEY_VARIABLE: serves.api_key},
        model=None if volume is None else Model(claim_name=volume.claim_name, path=MODEL_MOUNT),
    )


def _arguments(benchmark: Benchmark, work: str, size: int, start: Decimal | None) -> Iterator[str]:
    yield from ("bench", "run")
    yield from _server(benchmark, size)
    yield f"--prompts={data_path(benchmark.prompts)}"
    yield f"--out={WORK_MOUNT}/{job_name(benchmark.name, work, size)}.json"
    yield f"--report={REPORT_PATH}"
    for name, objective in benchmark.objectives.stated:
        yield f"--{name}={objective.percentile}:{format_duration(objective.limit)}"
    if benchmark.objectives.goodput_share is not None:
        yield f"--goodput-share={benchmark.objectives.goodput_share}"
    yield f"--effort={benchmark.effort.lower()}"
    yield f"--cv={benchmark.cv}"
    yield f"--prefix-hit-share={benchmark.prefix_hit_share}"
    if start is not None:
        yield f"--start={start.normalize():f}"
    if benchmark.longest is not None:
        yield f"--longest={format_duration(benchmark.longest)}"
    if benchmark.chat:
        yield "--chat"


def _server(benchmark: Benchmark, size: int) -> Iterator[str]:
    """Where it is, what it serves, and what of it its metrics do not say."""
    measured = benchmark.measured
    if isinstance(measured, Endpoint):
        yield f"--url=http://{measured.name}:{measured.port}"
        yield f"--replicas={measured.replicas}"
        yield from (f"--{name}={value}" for name, value in _named(measured) if value is not None)
        return
    engine = measured.engine
    yield f"--url=http://{trial_name(benchmark.name)}:{engine.port}"
    yield f"--replicas={size}"
    yield f"--model={engine.served_model_name}"
    yield f"--tokenizer={engine.model}"
    limits = (("max-num-seqs", engine.max_num_seqs), ("max-num-batched-tokens", engine.max_num_batched_tokens))
    yield from (f"--{name}={value}" for name, value in limits if value is not None)


def _named(endpoint: Endpoint) -> Sequence[tuple[str, str | None]]:
    return (("model", endpoint.model), ("tokenizer", endpoint.tokenizer))


def _start(benchmark: Benchmark, size: int, reports: Mapping[int, Json]) -> Decimal | None:
    """The first rate of the whole pool: as stated, else from a smaller pool; None where the runner finds it out."""
    if benchmark.start is not None:
        return benchmark.start * size
    found = [report["requestsPerSecond"] for _, report in sorted(reports.items()) if _found(report)]
    return Decimal(str(found[-1])) * size * BELOW if found else None


# ---- what was found ---------------------------------------------------------------------------------------


def outcome(reports: Mapping[int, Json]) -> tuple[Reason, str]:
    """How the work ended: found for every size, or the first that was not, and why."""
    missing = [(size, report) for size, report in sorted(reports.items()) if not _found(report)]
    if missing:
        size, report = missing[0]
        pool = f"with {size} replica{'s' * (size > 1)}" if len(reports) > 1 else ""
        words = [f"no capacity was found {pool}".strip(), report.get("message", "")]
        return Reason(report["outcome"]), ": ".join(filter(None, words))
    size, report = min(reports.items())
    text = f"one replica holds {report['requestsPerSecond']:g} requests/s at the objectives"
    if report.get("failingRequestsPerSecond") is not None:
        text += f", and does not hold {report['failingRequestsPerSecond']:g}"
    return Reason.FOUND, text


def result(benchmark: Benchmark, reports: Mapping[int, Json], measured: Measured) -> Json:
    """The fields of the status that say what was found. reports: by pool size, all of them.

    Without a capacity for every size there is none in the status: half of a curve would be read as a whole one.
    """
    smallest = min(reports)
    first = reports[smallest]
    fields: Json = {"levels": [_level(size, level) for size, levels in _levels(reports) for level in levels]}
    if all(map(_found, reports.values())):
        fields["capacity"] = _rates(first) | {
            "perPoolSize": [{"replicas": size} | _rates(report) for size, report in sorted(reports.items())]
        }
    if first.get("bottleneck") is not None:
        fields["bottleneck"] = first["bottleneck"]
    if first.get("atCapacity") is not None:
        fields["atCapacity"] = first["atCapacity"] | {"prefixHitShare": float(benchmark.prefix_hit_share)}
    return fields | {"fingerprint": _fingerprint(benchmark, first, measured)}


def _found(report: Json) -> bool:
    return bool(report["outcome"] == Reason.FOUND.value and report.get("requestsPerSecond") is not None)


def _rates(report: Json) -> Json:
    names = ("requestsPerSecond", "failingRequestsPerSecond")
    return {name: report[name] for name in names if report.get(name) is not None}


def _levels(reports: Mapping[int, Json]) -> Iterator[tuple[int, Sequence[Json]]]:
    for size, report in sorted(reports.items()):
        yield size, report.get("levels", ())


def _level(size: int, level: Json) -> Json:
    return {"replicas": size} | level


def _fingerprint(benchmark: Benchmark, report: Json, measured: Measured) -> Json:
    known = measured.identity
    found: Json = {
        "imageDigest": measured.image_digest,
        "product": measured.product,
        "driver": measured.driver,
        "vllm": report.get("vllm"),
        "dataset": report.get("dataset"),
        "objectives": objectives_to_wire(benchmark.objectives),
        "router": "Service",
    }
    if known is not None:
        found |= {
            "digest": known.digest,
            "image": known.image,
            "model": known.model,
            "arguments": list(known.arguments),
            "accelerator": known.accelerator,
        }
    return {name: value for name, value in found.items() if value is not None}


def objectives_to_wire(objectives: Objectives) -> Json:
    """Objectives as a plan states them."""
    wire: Json = {
        name: {objective.percentile: format_duration(objective.limit)} for name, objective in objectives.stated
    }
    if objectives.goodput_share is not None:
        wire["goodputShare"] = float(objectives.goodput_share)
    return wire
