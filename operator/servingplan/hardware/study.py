"""The whole answer: every model on every accelerator, what it takes there, and the one that takes least.

In: models, accelerators, how to serve, what is asked. Out: a `Study`. Reports are views of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from servingplan.hardware.accelerator import GIB, Accelerator
from servingplan.hardware.engine import (
    Engine,
    Version,
    default_max_num_batched_tokens,
    default_max_num_seqs,
    default_utilization,
)
from servingplan.hardware.layouts import advice, layouts, problem
from servingplan.hardware.memory import Logged, logged_memory, memory
from servingplan.hardware.model import Model
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.replicas import Failure, Need, needs
from servingplan.hardware.roofline import ERROR_FACTOR, Estimate, Replica, estimate
from servingplan.hardware.storage import Keeping, Storage, storage
from servingplan.hardware.traffic import Workload

MONTH_HOURS = 730
"""A twelfth of 8,760."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How to serve: None where vLLM's default, or the smallest layout, is to be taken."""

    version: Version
    max_model_len: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    utilization: float | None
    cache_dtype: str
    prefix_caching: bool
    layout: Layout | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What must be carried. workload: None to size one replica alone.

    measured: capacity (requests/s) by model and accelerator. spare: replicas for a canary and for evaluation.
    """

    workload: Workload | None
    failure: Failure
    spare: int
    measured: Mapping[tuple[str, str], float]
    keeping: Keeping


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One replica that starts, and how many of it are needed.

    estimate: None without a workload. capacity: requests/s that counts, measured or estimated. needs: empty without a
    capacity. replicas: passing all levels, spare ones included; 1 where only one replica was asked for.
    """

    replica: Replica
    advice: tuple[str, ...]
    estimate: Estimate | None
    capacity: float | None
    measured: bool
    needs: tuple[Need, ...]
    spare: int
    keeping: Keeping

    @property
    def required(self) -> int:
        """Replicas that pass all levels."""
        return max((need.replicas for need in self.needs), default=1)

    @property
    def replicas(self) -> int:
        """All that are bought."""
        return self.required + self.spare

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.replicas * self.replica.layout.gpus

    @property
    def storage(self) -> Storage:
        """Disk for the versions of the model and the metrics of all replicas."""
        return storage(self.replica.model.disk, self.replicas, self.keeping)

    @property
    def monthly_cost(self) -> float | None:
        """For 730 hours; None without a price."""
        price = self.replica.accelerator.price
        return None if price is None else price * self.gpus * MONTH_HOURS


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One model on one accelerator. choice: None where it cannot be, with `why_not`."""

    model: Model
    accelerator: Accelerator
    choice: Choice | None
    why_not: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Every option, in the order in which they were asked for. best: the one to take; None where none passes.

    because: why it is the best.
    """

    asked: Asked
    options: tuple[Option, ...]
    best: Option | None
    because: str


def study(
    models: Sequence[Model],
    accelerators: Sequence[Accelerator],
    serving: Serving,
    asked: Asked,
    log: Logged | None = None,
) -> Study:
    """Every model on every accelerator. log: what vLLM logged, for the only pair there is."""
    options = tuple(option(model, accelerator, serving, asked, log) for model in models for accelerator in accelerators)
    best, because = _best(options)
    return Study(asked=asked, options=options, best=best, because=because)


def option(model: Model, accelerator: Accelerator, serving: Serving, asked: Asked, log: Logged | None) -> Option:
    """The layout that needs fewest GPUs in all; of equal ones the smallest replica."""
    engine = engine_for(model, accelerator, serving)
    if engine.max_model_len > model.max_len:
        why = f"its context ends at {model.max_len:,} tokens, {engine.max_model_len:,} are asked for"
        return Option(model=model, accelerator=accelerator, choice=None, why_not=why)
    wanted = [serving.layout] if serving.layout is not None else list(layouts(model, accelerator))
    if serving.layout is not None and (refused := problem(model, serving.layout)) is not None:
        return Option(model=model, accelerator=accelerator, choice=None, why_not=refused)
    replicas = [_replica(model, layout, engine, accelerator, log) for layout in wanted]
    starting = [replica for replica in replicas if replica.memory.starts]
    if not starting:
        return Option(model=model, accelerator=accelerator, choice=None, why_not=_too_small(replicas[-1]))
    choices = list(_choices(starting, asked))
    if not choices:
        return Option(model=model, accelerator=accelerator, choice=None, why_not=_too_slow(starting[-1], asked))
    return Option(model=model, accelerator=accelerator, choice=min(choices, key=_size), why_not="")


def engine_for(model: Model, accelerator: Accelerator, serving: Serving) -> Engine:
    """The settings, with vLLM's defaults for this accelerator where nothing is said."""
    gib, ampere = accelerator.memory_gib, accelerator.ampere
    seqs = serving.max_num_seqs or default_max_num_seqs(gib, ampere=ampere)
    return Engine(
        version=serving.version,
        max_model_len=serving.max_model_len or model.max_len,
        max_num_seqs=seqs,
        max_num_batched_tokens=serving.max_num_batched_tokens
        or max(seqs, default_max_num_batched_tokens(gib, ampere=ampere)),
        utilization=serving.utilization or default_utilization(serving.version),
        cache_dtype=serving.cache_dtype,
        prefix_caching=serving.prefix_caching,
    )


def _replica(model: Model, layout: Layout, engine: Engine, accelerator: Accelerator, log: Logged | None) -> Replica:
    found = (
        memory(model, layout, engine, accelerator)
        if log is None
        else logged_memory(model, layout, engine, accelerator, log)
    )
    return Replica(model=model, layout=layout, engine=engine, accelerator=accelerator, memory=found)


def _choices(starting: Sequence[Replica], asked: Asked) -> Iterator[Choice]:
    """What each layout comes to; the smallest comfortable one alone without a workload, or with a measured capacity."""
    measured = asked.measured.get((starting[0].model.name, starting[0].accelerator.name))
    if asked.workload is None or measured is not None:
        comfortable = (replica for replica in starting if replica.memory.comfortable)
        starting = [next(comfortable, starting[0])]
    for replica in starting:
        guess = None if asked.workload is None else estimate(replica, asked.workload)
        capacity = measured if measured is not None else (guess.capacity if guess is not None else None)
        if capacity == 0:
            continue
        found: tuple[Need, ...] = ()
        if asked.workload is not None and capacity is not None:
            found = needs(replica, asked.workload, capacity, asked.failure)
        yield Choice(
            replica=replica,
            advice=advice(replica.model, replica.layout, replica.accelerator, replica.memory),
            estimate=guess,
            capacity=capacity,
            measured=measured is not None,
            needs=found,
            spare=asked.spare,
            keeping=asked.keeping,
        )


def _size(choice: Choice) -> tuple[int, int]:
    return choice.gpus, choice.replica.layout.gpus


def _too_small(replica: Replica) -> str:
    found = replica.memory
    if found.cache <= 0:
        need = (found.weights + found.margins.total) / GIB
        return (
            f"even on {replica.layout} weights and margins need {need:.1f} GiB a GPU, "
            f"vLLM may take {found.allowed / GIB:.1f}"
        )
    return (
        f"even on {replica.layout} the cache has {found.cache / GIB:.1f} GiB a GPU, "
        f"less than one request of {replica.engine.max_model_len:,} tokens: lower --max-model-len"
    )


def _too_slow(replica: Replica, asked: Asked) -> str:
    if asked.workload is None:
        raise AssertionError("without a workload nothing is too slow")
    found = estimate(replica, asked.workload)
    slow = found.at_capacity
    return (
        f"even on {replica.layout} one request at a time breaks {found.bound}: "
        f"estimated TTFT {1000 * slow.ttft:.0f} ms, TPOT {1000 * slow.tpot:.1f} ms (x/{ERROR_FACTOR})"
    )


def ranked(found: Study) -> Sequence[Option]:
    """Every option, the best first, those that do not pass last."""
    passing = [option for option in found.options if option.choice is not None]
    refused = [option for option in found.options if option.choice is None]
    return [*sorted(passing, key=_by_cost if _priced(passing) else _by_memory), *refused]


def _best(options: Sequence[Option]) -> tuple[Option | None, str]:
    """The cheapest where every option that passes has a price, else the one with the least GPU memory."""
    passing = [option for option in options if option.choice is not None]
    if not passing:
        return None, "no option passes"
    if len(options) == 1:
        return passing[0], "it is the only one"
    if _priced(passing):
        return min(passing, key=_by_cost), "it costs least"
    return min(passing, key=_by_memory), "it takes the least GPU memory; state prices to compare costs"


def _priced(passing: Sequence[Option]) -> bool:
    return all(option.accelerator.price is not None for option in passing)


def _by_cost(option: Option) -> tuple[float, int]:
    return (option.choice.monthly_cost or 0.0, option.choice.gpus) if option.choice is not None else (0.0, 0)


def _by_memory(option: Option) -> tuple[int, int]:
    gpus = option.choice.gpus if option.choice is not None else 0
    return gpus * option.accelerator.memory, gpus
