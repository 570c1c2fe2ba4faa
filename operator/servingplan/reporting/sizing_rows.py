"""The cells of a sizing: the same words and figures in the terminal and on the page.

In: a `Study` and its options. Out: tuples of text. Knows no layout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from servingplan.hardware.accelerator import GIB
from servingplan.hardware.lengths import Lengths
from servingplan.hardware.model import Model
from servingplan.hardware.pages import cache_bytes
from servingplan.hardware.replicas import Need
from servingplan.hardware.roofline import ERROR_FACTOR
from servingplan.hardware.study import MONTH_HOURS, Choice, Option, Study, ranked
from servingplan.hardware.traffic import Workload, lengths_blocks
from servingplan.hardware.weights import lower_bound, total_bytes
from servingplan.planning.units import format_duration
from servingplan.reporting.local import DASH

Pair = tuple[str, str]
LevelRow = tuple[str, str, str, str, str, str, str]
ComparisonRow = tuple[str, str, str, str, str, str, str, str]

COMPARISON = ("model", "GPU", "layout", "cache", "capacity", "replicas", "GPUs", "a month")
LEVELS = ("level", "demand", "replicas", "in flight", "tokens p99", "TTFT p95", "TPOT")


def title_words(found: Study) -> str:
    """What was asked, in one line."""
    workload = found.asked.workload
    if workload is None:
        return "one replica, no workload"
    return (
        f"{workload.rate:g} requests/s, input {_lengths(workload.input)}, output {_lengths(workload.output)} tokens, "
        f"burst {workload.burst:g} x for {format_duration(workload.burst_duration)}, one {found.asked.failure} may fail"
    )


def _lengths(lengths: Lengths) -> str:
    return f"p50 {lengths.quantile(0.5):,.0f} p95 {lengths.quantile(0.95):,.0f}"


def model_words(model: Model) -> str:
    """``8.03B parameters, 14.96 GiB of weights from safetensors headers``."""
    active = f" ({model.active_parameters / 1e9:.3g}B active)" if model.experts is not None else ""
    form = f" in {model.quantization}" if model.quantization is not None else ""
    size = total_bytes(model)
    bound = f", at least {lower_bound(model) / GIB:.2f}" if size > lower_bound(model) * 1.005 else ""
    return (
        f"{model.architecture}, {model.parameters / 1e9:.3g}B parameters{active}{form}, "
        f"{size / GIB:.2f} GiB of weights from {model.weight_source}{bound}"
    )


def memory_rows(choice: Choice) -> Iterator[Pair]:
    """One GPU's memory, GiB, from what vLLM may take to what is left for the cache."""
    found, engine = choice.replica.memory, choice.replica.engine
    yield f"{found.allowed / GIB:.2f}", f"{engine.utilization:.0%} of {choice.replica.accelerator.memory_gib:.2f} GiB"
    yield f"- {found.weights / GIB:.2f}", "weights"
    yield f"- {found.margins.activation / GIB:.2f}", "activations"
    yield f"- {found.margins.outside_torch / GIB:.2f}", "outside of torch"
    if found.margins.graphs:
        yield f"- {found.margins.graphs / GIB:.2f}", "CUDA graphs"
    yield f"= {found.cache / GIB:.2f}", f"KV cache, {_memory_source(choice)}"


def _memory_source(choice: Choice) -> str:
    found = choice.replica.memory
    if not found.logged:
        return f"+/- {found.error / GIB:.2f}, estimated"
    if found.disagreement is None:
        return "as logged"
    return f"as logged; by formula {abs(found.disagreement):.3%} {'more' if found.disagreement > 0 else 'less'} tokens"


def cache_rows(choice: Choice, workload: Workload | None) -> Iterator[Pair]:
    """What the cache of one replica holds."""
    replica, pool = choice.replica, choice.replica.memory.pool
    if pool is None:
        yield "none", "it keeps no cache"
        return
    yield f"{cache_bytes(replica.model, replica.layout, replica.engine):,}", "bytes a token and GPU"
    yield f"{pool.tokens:,}", f"tokens, as vLLM {replica.engine.version} counts them"
    yield f"{pool.concurrency:.2f}", f"requests of {replica.engine.max_model_len:,} tokens at once"
    if pool.wasted > 0.005:
        yield f"{pool.wasted:.0%}", f"of it is padding: {len(pool.groups)} groups of layers"
    if workload is not None:
        for name, share in (("p50", 0.5), ("p95", 0.95)):
            size = lengths_blocks(pool, workload.input, workload.output, share) * pool.block_bytes / GIB
            yield f"{size:.3f}", f"GiB a GPU for one request of {name} length"


def speed_rows(choice: Choice) -> Iterator[Pair]:
    """What one replica carries."""
    if choice.capacity is None:
        return
    if choice.measured:
        yield f"{choice.capacity:.3g}/s", "capacity, as measured"
    if choice.estimate is not None:
        name = "estimated for comparison" if choice.measured else "estimated capacity: measure before you buy"
        yield f"{choice.estimate.capacity:.3g}/s", f"{name} (x/{ERROR_FACTOR:g}), bound by {choice.estimate.bound}"


def level_rows(choice: Choice) -> tuple[LevelRow, ...]:
    """The three levels."""
    return tuple(_level(need) for need in choice.needs)


def _level(need: Need) -> LevelRow:
    found = need.speed
    lost = f" ({need.lost} lost)" if need.lost else ""
    return (
        need.level.value,
        f"{need.rate:.3g}/s",
        f"{need.replicas}{lost}",
        _finite(found.held.in_flight, "{:.0f}"),
        _finite(found.held.p99, "{:,.0f}"),
        _finite(1000 * found.ttft, "{:,.0f} ms"),
        _finite(1000 * found.tpot, "{:.1f} ms"),
    )


def _finite(value: float, form: str) -> str:
    return form.format(value) if math.isfinite(value) else "behind"


def level_reasons(choice: Choice) -> Sequence[Pair]:
    """Why each level needs what it needs."""
    return [(need.level.value, need.because) for need in choice.needs]


def binding(choice: Choice) -> str:
    """Which level decides, and what would have to give."""
    if not choice.needs:
        return ""
    level = max(choice.needs, key=lambda need: need.replicas)
    what = "the measured capacity" if choice.measured else "the estimated capacity"
    bound = f", which {choice.estimate.bound} binds" if choice.estimate is not None and not choice.measured else ""
    return f"{level.level} decides, at {what}{bound}"


def total_rows(choice: Choice) -> Iterator[Pair]:
    """What is bought."""
    gpus = choice.replica.layout.gpus
    if choice.needs:
        spare = f" + {choice.spare} spare for a canary and evaluation" if choice.spare else ""
        yield f"{choice.replicas}", f"replicas: {choice.required} for all three levels{spare}"
    yield f"{choice.gpus}", f"{choice.replica.accelerator.name}, {gpus} a replica{_nodes(choice)}"
    if choice.monthly_cost is not None:
        price = choice.replica.accelerator.price
        yield f"{choice.monthly_cost:,.0f}", f"a month of {MONTH_HOURS} h at {price:g} a GPU and hour"
    yield f"{choice.storage.models / GIB:,.1f}", "GiB of disk for the versions of the model"
    yield f"{choice.storage.metrics / GIB:,.1f}", "GiB for the metrics of all replicas"


def _nodes(choice: Choice) -> str:
    per_node = choice.replica.accelerator.gpus_per_node
    nodes = math.ceil(choice.gpus / per_node)
    return f", {nodes} node{'' if nodes == 1 else 's'} of {per_node}"


def comparison_rows(found: Study) -> tuple[tuple[Option, ComparisonRow], ...]:
    """Every option, those that pass first, the best of them at the top."""
    return tuple((option, _comparison(option)) for option in ranked(found))


def _comparison(option: Option) -> ComparisonRow:
    choice = option.choice
    if choice is None:
        return option.model.name, option.accelerator.name, DASH, DASH, DASH, DASH, DASH, DASH
    pool = choice.replica.memory.pool
    source = "" if choice.measured else "~"
    return (
        option.model.name,
        option.accelerator.name,
        str(choice.replica.layout),
        DASH if pool is None else f"{pool.tokens:,}",
        DASH if choice.capacity is None else f"{source}{choice.capacity:.3g}/s",
        f"{choice.required} + {choice.spare}" if choice.needs else DASH,
        str(choice.gpus),
        DASH if choice.monthly_cost is None else f"{choice.monthly_cost:,.0f}",
    )


def refused(found: Study) -> Iterator[Pair]:
    """Options that do not pass, and why."""
    for option in found.options:
        if option.choice is None:
            yield f"{option.model.name} on {option.accelerator.name}", option.why_not


def shown_options(found: Study) -> Sequence[Option]:
    """The best option of each model."""
    by_model: dict[str, Option] = {}
    for option in ranked(found):
        if option.choice is not None:
            by_model.setdefault(option.model.name, option)
    return list(by_model.values())


def exactness(found: Study) -> tuple[str, ...]:
    """How far the figures may be off, one sentence a kind."""
    logged = any(option.choice is not None and option.choice.replica.memory.logged for option in found.options)
    cache = (
        "The cache's bytes are those of the log."
        if logged
        else "The cache's bytes carry the error: weights 1 % from headers of text models, 7 % otherwise; margins 10 %."
    )
    speed = (
        f"TTFT, TPOT and estimated capacities are a roofline, within a factor of {ERROR_FACTOR:g} at best: "
        "buy nothing on them alone, run a benchmark on one replica first."
    )
    return (
        "Tokens and concurrency follow from the cache's bytes by vLLM's own rules, within 0.1 %.",
        cache,
        *([speed] if found.asked.workload is not None else []),
    )
