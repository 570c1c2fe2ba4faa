"""One run: the probe, ``vllm bench serve`` with the engine's metrics beside it, the probe again.

In: a server, prompts, what to measure. Out: a `Run`. The only clock is the machine's monotonic one, which vLLM's client
uses too, so that its requests and our readings lie on one line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from servingplan.benchmarking import validity
from servingplan.benchmarking.bench_serve import read_result
from servingplan.benchmarking.child import BenchFailed, Child, Ended
from servingplan.benchmarking.command import Load, Target, serve_command
from servingplan.benchmarking.effort import Effort
from servingplan.benchmarking.prompts import Prompt, Prompts, as_lines, mean_input, probe_prompts, share_out
from servingplan.benchmarking.run import Probes, Run, VoidReason
from servingplan.benchmarking.search import Measure
from servingplan.benchmarking.seen import Measured, Plot, run_of
from servingplan.clients.engine_load import EngineLoad
from servingplan.clients.openai_server import OpenAIServer, Question, Timed
from servingplan.errors import ClusterError
from servingplan.planning.plan import Objectives

PROBE_REQUESTS = 20
PROBE_TOKENS = 32
"""Of each answer of the probe, at most: seconds in all, and decoding counts."""

PROBE_S = 5.0
"""The probe's requests are repeated for so long. A fast engine answers them within a second, and that is chance: of two
such probes under the same conditions 15 % differ by more than a fifth, of two of five seconds none
(`tests/benchmarking/test_measuring.py`)."""

EVERY_S = 1.0
"""Between two readings of the engine's metrics."""

START_S = 300.0
"""For the imports of `vllm bench serve`, and its tokenizer."""

DRAIN_TIMES = 2
"""A server that needs more than so many times a run's length beyond it to answer what was sent falls behind."""

IDLE_S = 60.0
"""How long the server may take to be idle after a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is sent. burstiness: vLLM's, 1 is Poisson. prefix_hit_share: what the cache should find, 0 to 1.

    max_concurrency: most requests at once, for an experiment; None where a capacity is measured.
    """

    prompts: Prompts
    objectives: Objectives
    burstiness: float
    prefix_hit_share: float
    max_concurrency: int | None = None


class Bench:
    """Measures runs against one server.

    name: of the ramp, in every salt, so that no two ramps share a cache. alone: whether its metrics are those of all
    that answers; behind a Service they are of one replica of many, and say nothing.
    """

    def __init__(
        self, server: OpenAIServer, target: Target, workload: Workload, effort: Effort, *, name: str, alone: bool
    ) -> None:
        self._alone = alone
        self._server = server
        self._target = target
        self._workload = workload
        self._effort = effort
        self._name = name
        self._probes = 0
        self._last_probe: float | None = None

    async def probe(self) -> tuple[Timed, ...]:
        """The fixed requests, one after the other, nothing else in flight."""
        self._probes += 1
        answers = []
        for index, prompt in enumerate(probe_prompts(self._workload.prompts, PROBE_REQUESTS)):
            salt = f"{self._name}-probe-{self._probes}-{index}"
            tokens = min(prompt.output_tokens, PROBE_TOKENS)
            question = Question(text=prompt.text, output_tokens=tokens, salt=salt)
            answers.append(await self._server.answer(self._target.model, question))
        return tuple(answers)

    async def _median_probe(self) -> float:
        """Its median latency in seconds; the one after a run is the one before the next."""
        until = time.perf_counter() + PROBE_S
        latencies: list[float] = []
        while not latencies or time.perf_counter() < until:
            latencies += [answer.latency_s for answer in await self.probe()]
        self._last_probe = median(latencies)
        return self._last_probe

    async def run(self, step: Measure, number: int, latency_s: float) -> Run:
        """One run. number: of the run in its ramp, from 0; decides its prompts. latency_s: mean, as expected."""
        began = time.perf_counter()
        before = await self._median_probe() if self._last_probe is None else self._last_probe
        window = self._effort.window(latency_s) * (2 if step.extended else 1)
        warm_up = self._effort.warm_up(latency_s)
        seconds = warm_up + window + latency_s
        prompts = share_out(self._workload.prompts, run=number, count=max(2, round(step.rate * seconds)))
        with TemporaryDirectory(prefix="servingplan-bench-") as folder:
            done = await self._drive(step, prompts, number, seconds, Path(folder))
        if done.ended.code is None:
            if done.loads and not done.loads[-1].running + done.loads[-1].waiting:
                raise BenchFailed(f"`vllm bench serve` at {step.rate:g}/s did not end, although the server is idle")
            return await self._unfinished(step, number, window, began, before)
        await self._idle()
        after = await self._median_probe()
        plot = Plot(
            rate=step.rate,
            seed=number,
            extended=step.extended,
            warm_up_s=warm_up,
            window_s=window,
            took_s=time.perf_counter() - began,
        )
        measured = Measured(
            requests=read_result(done.text, name="the result of vllm bench serve", seed=number),
            loads=done.loads,
            before=done.before,
            after=done.after,
            client_cpu=done.client_cpu,
            probes=Probes(before=before, after=after),
            own=len(prompts),
        )
        return run_of(measured, plot, self._workload.objectives, self._expected(step, prompts))

    def _expected(self, step: Measure, prompts: Sequence[Prompt]) -> validity.Expected:
        ttft = self._workload.objectives.ttft
        return validity.Expected(
            rate=step.rate,
            ttft_limit_s=None if ttft is None else ttft.limit.total_seconds(),
            input_tokens=mean_input(prompts),
            output_tokens=sum(prompt.output_tokens for prompt in prompts) / len(prompts),
            prefix_hit_share=self._workload.prefix_hit_share,
            capped=self._workload.max_concurrency is not None,
        )

    async def _drive(
        self, step: Measure, prompts: Sequence[Prompt], number: int, seconds: float, folder: Path
    ) -> _Done:
        load = Load(
            rate=step.rate,
            burstiness=self._workload.burstiness,
            count=len(prompts),
            seed=number,
            salt=f"{self._name}-run-{number}",
            max_concurrency=self._workload.max_concurrency,
        )
        lines, result = folder / "prompts.jsonl", folder / "result.json"
        lines.write_text(as_lines(prompts), encoding="utf-8")
        command = serve_command(self._target, load, self._workload.objectives, prompts=lines, result=result)
        before = await self._load()
        child = await Child.start(command, log=folder / "log")
        watch = _Watch()
        async with asyncio.TaskGroup() as group:
            sampling = group.create_task(watch.sample(child, self._load))
            ended = await child.wait(START_S + (1 + DRAIN_TIMES) * seconds)
            sampling.cancel()
        if ended.code is not None and (ended.code != 0 or not result.exists()):
            raise BenchFailed(f"`vllm bench serve` ended with {ended.code}; its last lines:\n{ended.output}")
        return _Done(
            ended=ended,
            text=result.read_text(encoding="utf-8") if ended.code == 0 else "",
            loads=tuple(watch.loads),
            client_cpu=tuple(watch.client_cpu),
            before=before,
            after=await self._load(),
        )

    async def _unfinished(self, step: Measure, number: int, window: float, began: float, before: float) -> Run:
        """The time was over: the server fell behind, or something slowed it. before: the probe's median latency."""
        probes = Probes(before=before, after=await self._median_probe()) if await self._idle() else None
        took = time.perf_counter() - began
        return Run(
            rate=step.rate,
            seed=number,
            extended=step.extended,
            took_s=took,
            window_s=window,
            blocks=(),
            voids=validity.judge_unfinished(probes),
            unjudged=(VoidReason.NEIGHBOUR,) if probes is None else (),
            unfinished=True,
        )

    async def _idle(self) -> bool:
        """Wait until nothing is in flight, at most `IDLE_S`; whether it is so, where the server tells."""
        until = time.perf_counter() + IDLE_S
        while time.perf_counter() < until:
            load = await self._load()
            if load is None:
                return False
            if not load.running + load.waiting:
                return True
            await asyncio.sleep(EVERY_S)
        return False

    async def _load(self) -> EngineLoad | None:
        if self._alone:
            with suppress(ClusterError):
                return await self._server.load()
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    ended: Ended
    text: str
    loads: tuple[EngineLoad, ...]
    client_cpu: tuple[tuple[float, float], ...]
    before: EngineLoad | None
    after: EngineLoad | None


class _Watch:
    """Readings while a run goes on."""

    def __init__(self) -> None:
        self.loads: list[EngineLoad] = []
        self.client_cpu: list[tuple[float, float]] = []

    async def sample(self, child: Child, load: Callable[[], Awaitable[EngineLoad | None]]) -> None:
        """One reading a second, until cancelled."""
        while True:
            if (cpu := child.cpu_sample()) is not None:
                self.client_cpu.append(cpu)
            if (seen := await load()) is not None:
                self.loads.append(seen)
            await asyncio.sleep(EVERY_S)
