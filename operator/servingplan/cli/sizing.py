"""What a sizing is asked for: flags, a plan, a log and tables become models, accelerators and a workload.

In: flags as typed. Out: a `Study`, and notes for the person. Flags win over the plan, and a log over both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from servingplan.cli.files import one_plan_from
from servingplan.cli.sizing_workload import Flags, span, workload_of
from servingplan.errors import UsageError
from servingplan.hardware.accelerator import GIB, Accelerator
from servingplan.hardware.engine import CACHE_DTYPES, KNOWN_VERSION, Version
from servingplan.hardware.memory import Logged
from servingplan.hardware.model import Model
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.replicas import Failure
from servingplan.hardware.storage import Keeping
from servingplan.hardware.study import Asked, Serving, Study, study
from servingplan.hardware.weights import FORMAT_BITS, requantized
from servingplan.inventory.accelerators import read_accelerators, shipped
from servingplan.inventory.engine_log import EngineLog, read_log
from servingplan.inventory.models import read_model
from servingplan.planning.plan import Plan
from servingplan.planning.units import format_rate

OWN_FORMAT = "own"
DEVICE_TOLERANCE = 0.02
"""A log's GPU is one of the table whose memory is within this share of it."""


def sized(paths: Sequence[str], flags: Flags) -> tuple[Study, Sequence[str]]:
    """The study, and notes on what was taken from where. Raises UsageError and InputError."""
    plan = None if flags.plan_file is None else one_plan_from(flags.plan_file, flags.name, option="--name")
    log = None if flags.log_file is None else read_log(Path(flags.log_file))
    models = _models(paths, flags, plan)
    accelerators = _accelerators(flags, log)
    single = len(models) == len(accelerators) == 1
    if log is not None and not single:
        known = ", ".join(found.name for found in accelerators)
        raise UsageError(f"--log belongs to one model on one accelerator, not to {len(models)} on {known}")
    workload, notes = workload_of(flags, plan)
    measured: Mapping[tuple[str, str], float] = dict(_measured(flags, models, accelerators))
    if plan is not None and (unlike := _unlike(plan, models)) is not None:
        notes = [*notes, unlike]
    if plan is not None and workload is not None and not flags.capacities:
        measured, said = _planned_capacity(plan, models, accelerators)
        notes = [*notes, said]
    asked = Asked(
        workload=workload,
        failure=Failure(flags.failure),
        spare=flags.spare if flags.spare is not None else (0 if workload is None else 1),
        measured=measured,
        keeping=Keeping(
            versions=flags.model_versions,
            retention=span("--metrics-retention", flags.metrics_retention),
            interval=span("--scrape-interval", flags.scrape_interval),
        ),
    )
    serving = _serving(flags, plan, log, measured=bool(measured))
    return study(models, accelerators, serving, asked, _logged(log)), notes


# ---- models and accelerators --------------------------------------------------------------------------------------


def _models(paths: Sequence[str], flags: Flags, plan: Plan | None) -> Sequence[Model]:
    read = [read_model(path) for path in paths]
    names = [model.name for model in read]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two models are called {', '.join(twice)}: name them as in a={paths[0]}")
    return [found for model in read for found in _formats(model, flags, plan)]


def _formats(model: Model, flags: Flags, plan: Plan | None) -> Iterator[Model]:
    planned = plan.engine.quantization if plan is not None and plan.engine is not None else None
    online = [planned] if planned is not None and planned in FORMAT_BITS and model.quantization is None else []
    for form in flags.formats or online or [OWN_FORMAT]:
        if form == OWN_FORMAT:
            yield model
        elif model.quantization is not None:
            raise UsageError(
                f"--quantization {form}: {model.name} is stored as {model.quantization} already; "
                "name its unquantised checkpoint"
            )
        else:
            yield requantized(model, form)


def _unlike(plan: Plan, models: Sequence[Model]) -> str | None:
    """What the plan says of quantisation and the checkpoints do not."""
    planned = None if plan.engine is None else plan.engine.quantization
    if planned is None or all(model.quantization is not None for model in models):
        return None
    return f"{plan.key} serves {planned}, and config.json says that nothing is quantised: weights count as stored"


def _accelerators(flags: Flags, log: EngineLog | None) -> Sequence[Accelerator]:
    table: Sequence[Accelerator] = shipped() if flags.table is None else read_accelerators(Path(flags.table))
    prices = dict(_prices(flags.prices, table))
    table = [dataclasses.replace(gpu, price=prices.get(gpu.name, gpu.price)) for gpu in table]
    if flags.names:
        return [_named(name, table) for name in dict.fromkeys(flags.names)]
    if log is not None and log.device is not None:
        close = [gpu for gpu in table if abs(gpu.memory / log.device - 1) <= DEVICE_TOLERANCE]
        if len(close) != 1:
            found = ", ".join(gpu.name for gpu in close) or "none of the table"
            raise UsageError(f"the log's GPU has {log.device / GIB:.2f} GiB, which is {found}: say --accelerator")
        return close
    return table


def _prices(texts: Sequence[str], table: Sequence[Accelerator]) -> Iterator[tuple[str, float]]:
    for text in texts:
        name, _, price = text.partition("=")
        try:
            value = float(price)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise UsageError(f"--price {text!r}: write for example {table[0].name}=1.10, of one GPU and hour")
        yield _named(name, table).name, value


def _named(name: str, table: Sequence[Accelerator]) -> Accelerator:
    for gpu in table:
        if gpu.name.lower() == name.lower():
            return gpu
    raise UsageError(
        f"there is no accelerator {name!r} in the table; there are: {', '.join(gpu.name for gpu in table)}"
    )


# ---- what was measured -------------------------------------------------------------------------------------------


def _measured(
    flags: Flags, models: Sequence[Model], accelerators: Sequence[Accelerator]
) -> Iterator[tuple[tuple[str, str], float]]:
    for text in flags.capacities:
        pair, sign, number = text.rpartition("=")
        rate = _positive(number, text)
        if not sign:
            if len(models) > 1 or len(accelerators) > 1:
                raise UsageError(
                    f"--capacity {text}: say of what, as in {models[0].name}@{accelerators[0].name}={text}"
                )
            yield (models[0].name, accelerators[0].name), rate
            continue
        model, _, name = pair.rpartition("@")
        if model not in [found.name for found in models]:
            known = ", ".join(found.name for found in models)
            raise UsageError(f"--capacity {text}: there is no model {model!r}; there are: {known}")
        yield (model, _named(name, accelerators).name), rate


def _positive(number: str, text: str) -> float:
    try:
        rate = float(number)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise UsageError(f"--capacity {text!r}: write requests/s, as in 5 or MODEL@GPU=5")
    return rate


def _planned_capacity(
    plan: Plan, models: Sequence[Model], accelerators: Sequence[Accelerator]
) -> tuple[Mapping[tuple[str, str], float], str]:
    """The plan's capacity, which belongs to one model on one accelerator; its smallest where the pool's size counts."""
    rate = min(point.requests_per_second for point in plan.capacity.points)
    words = f"{format_rate(rate)} requests/s a replica, the capacity of {plan.key},"
    if len(models) == len(accelerators) == 1:
        engines = 1 if plan.engine is None else plan.engine.parallelism.data
        shared = f", shared by the {engines} data-parallel engines of a replica" if engines > 1 else ""
        pair = models[0].name, accelerators[0].name
        return {pair: float(rate) / engines}, f"{words} counts in the place of an estimate{shared}"
    return {}, f"{words} is not used: it was measured on one accelerator; name it with --accelerator or --capacity"


# ---- how it is served --------------------------------------------------------------------------------------------


def _serving(flags: Flags, plan: Plan | None, log: EngineLog | None, *, measured: bool) -> Serving:
    engine = None if plan is None else plan.engine
    layout = None
    if flags.tensor is not None or flags.pipeline is not None:
        layout = Layout(tensor=flags.tensor or 1, pipeline=flags.pipeline or 1)
    elif engine is not None and measured:
        # A capacity belongs to the layout that it was measured on.
        layout = Layout(tensor=engine.parallelism.tensor, pipeline=engine.parallelism.pipeline)
    planned = Serving(
        version=_version(flags.version),
        max_model_len=flags.max_model_len or (engine.max_model_len if engine is not None else None),
        max_num_seqs=flags.max_num_seqs or (engine.max_num_seqs if engine is not None else None),
        max_num_batched_tokens=flags.max_num_batched_tokens
        or (engine.max_num_batched_tokens if engine is not None else None),
        utilization=flags.utilization or _utilization(plan),
        cache_dtype=flags.cache_dtype or _planned_cache_dtype(plan),
        prefix_caching=_prefix_caching(flags, plan),
        layout=layout,
    )
    return planned if log is None else _as_logged(planned, log)


def _planned_cache_dtype(plan: Plan | None) -> str:
    if plan is None or plan.engine is None:
        return "auto"
    return _known_cache_dtype(plan.engine.kv_cache_dtype or "auto", f"spec.engine.kvCacheDtype of {plan.key}")


def _known_cache_dtype(name: str, where: str) -> str:
    if name not in CACHE_DTYPES:
        raise UsageError(f"{where} has the KV cache in {name}, which sizing does not know: say --kv-cache-dtype")
    return name


def _utilization(plan: Plan | None) -> float | None:
    stated = None if plan is None or plan.engine is None else plan.engine.gpu_memory_utilization
    return None if stated is None else float(stated)


def _prefix_caching(flags: Flags, plan: Plan | None) -> bool:
    stated = None if plan is None or plan.engine is None else plan.engine.prefix_caching
    return next((value for value in (flags.prefix_caching, stated) if value is not None), True)


def _version(text: str | None) -> Version:
    if text is None:
        return KNOWN_VERSION
    try:
        return Version.parse(text)
    except ValueError as error:
        raise UsageError(f"--vllm: {error}") from None


def _as_logged(planned: Serving, log: EngineLog) -> Serving:
    return dataclasses.replace(
        planned,
        version=log.version,
        max_model_len=log.max_len,
        max_num_seqs=log.max_num_seqs or planned.max_num_seqs,
        max_num_batched_tokens=log.max_num_batched_tokens or planned.max_num_batched_tokens,
        utilization=log.utilization or planned.utilization,
        cache_dtype=_known_cache_dtype(log.cache_dtype, f"the log {log.path}"),
        prefix_caching=log.prefix_caching,
        layout=Layout(tensor=log.tensor, pipeline=log.pipeline),
    )


def _logged(log: EngineLog | None) -> Logged | None:
    if log is None:
        return None
    return Logged(
        weights=log.weights,
        activation=log.activation,
        outside_torch=log.outside_torch,
        graphs=log.graphs,
        cache=log.cache,
        tokens=log.tokens,
    )
