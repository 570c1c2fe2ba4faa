"""The token-level model of a replica is vLLM: beside its own scheduler step by step, and beside a real server."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from dataclasses import dataclass

import numpy as np
import pytest

from e2e.support.eventually import eventually
from e2e.vllm.engines import SERVED_NAME, Server, cpu_engine
from e2e.vllm.scheduler_steps import RealScheduler
from e2e.vllm.token_streams import Stream, Streams
from servingplan.simulation.tokens import EngineLimits, TokenRequest
from support.engine_steps import Case, cases, modelled

REQUESTS = 10_000

LIMITS = EngineLimits(max_num_seqs=8, max_num_batched_tokens=256, blocks=101, block_size=32)
"""Requests of the run below wait for sequences, for the budget, and push one another out of 3,200 tokens."""

RULER = TokenRequest(arrival_s=0, prompt_tokens=32, output_tokens=1900)

ITERATION = re.compile(
    r"Iteration\(\d+\): (\d+) context requests, (\d+) context tokens, "
    r"(\d+) generation requests, (\d+) generation tokens,.* KV cache usage: ([\d.]+)%"
)


@pytest.fixture(scope="module")
def scheduler(environment, tmp_path_factory):
    """VLLM's own."""
    with RealScheduler(environment, tmp_path_factory.mktemp("scheduler") / "driver.log") as scheduler:
        yield scheduler


@pytest.mark.parametrize("name", cases(1))
def test_each_step_of_ten_thousand_requests_is_that_of_vllms_own_scheduler(scheduler, name):
    case = cases(REQUESTS)[name]
    real, ours = scheduler.follow(case), modelled(case)

    print(f"{name}: {len(real.rows)} steps, {sum(real.preempted)} preemptions, at most {max(r[0] for r in real.rows)}")
    assert len(real.rows) == len(ours.rows)
    assert [step for step, rows in enumerate(zip(real.rows, ours.rows, strict=True)) if rows[0] != rows[1]] == []
    assert (real.first, real.last, real.preempted) == (ours.first, ours.last, ours.preempted)


@pytest.fixture(scope="module")
def server(environment, tmp_path_factory):
    """A real server with these limits, which logs each of its steps."""
    engine = cpu_engine(
        environment.model,
        f"--block-size={LIMITS.block_size}",
        f"--num-gpu-blocks-override={LIMITS.blocks}",
        "--enable-logging-iteration-details",
        max_model_len=2048,
        max_num_seqs=LIMITS.max_num_seqs,
        max_num_batched_tokens=LIMITS.max_num_batched_tokens,
        prefix_caching=False,
    )
    log = tmp_path_factory.mktemp("engine") / "vllm.log"
    with Server(environment, engine, log, variables={"VLLM_SERVER_DEV_MODE": "1"}) as server:
        yield server.until_up()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A run of the real server. steps: tokens, sequences, and the share of the cache in use after each, in %."""

    streams: list[Stream]
    steps: list[tuple[int, int, str]]
    preemptions: int


def run(server: Server, requests: list[TokenRequest], *, freeze: bool) -> Seen:
    """Requests to the server, to their end."""
    before, logged = _preemptions(server), server.log.stat().st_size
    streams = asyncio.run(Streams(server.url, SERVED_NAME).run(RULER, requests, freeze=freeze))
    steps = eventually(
        lambda: _steps(server.log.read_bytes()[logged:].decode()),
        lambda steps: len(steps) > max(stream.last for stream in streams),
        what="the last step in the log",
    )
    return Seen(streams=streams, steps=steps, preemptions=_preemptions(server) - before)


def _preemptions(server: Server) -> int:
    found = re.search(r"^vllm:num_preemptions_total\{.*\} (\S+)$", server.get("/metrics"), re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


def _steps(log: str) -> list[tuple[int, int, str]]:
    rows = [found.groups() for found in ITERATION.finditer(log)]
    return [
        (int(prefill) + int(tokens), int(prefilling) + int(sequences), usage)
        for prefilling, prefill, sequences, tokens, usage in rows
    ]


def some_requests(*, together: int) -> list[TokenRequest]:
    """60 requests from a seed, in bursts; sent after so many tokens of the ruler, a multiple of `together`."""
    rng = np.random.default_rng(1)
    steps = np.cumsum(rng.gamma(0.5, 18 / 0.5, 60)).astype(int) // together * together
    lengths = zip(steps, rng.integers(20, 600, 60), rng.integers(40, 200, 60), strict=True)
    return [
        TokenRequest(arrival_s=float(step), prompt_tokens=int(prompt), output_tokens=int(output))
        for step, prompt, output in lengths
    ]


def as_case(streams: list[Stream]) -> Case:
    """The same requests for the model."""
    requests = [dataclasses.replace(stream.asked, arrival_s=float(stream.arrived)) for stream in streams]
    return Case(limits=LIMITS, requests=requests)


def test_each_step_of_a_real_server_is_that_of_the_model_where_arrivals_are_known_to_the_step(server):
    seen, ours = run(server, some_requests(together=60), freeze=True), []

    def ended(scheduler, batch):
        ours.append((batch.tokens, len(batch.work), f"{100 * scheduler.blocks_in_use / LIMITS.usable_blocks:.1f}"))

    steps = modelled(as_case(seen.streams), ended)
    first = [abs(stream.first - step) for stream, step in zip(seen.streams, steps.first, strict=True)]
    print(f"{len(seen.steps)} steps, {seen.preemptions} preemptions; first tokens as clients see them: {sorted(first)}")
    assert seen.steps == ours
    assert seen.preemptions == sum(steps.preempted) > 5
    # What brings a token tells its client a little later.
    assert np.median(first) <= 1


def test_a_real_server_preempts_and_holds_as_many_as_the_model_where_arrivals_are_what_clients_see(server):
    seen = run(server, some_requests(together=1), freeze=False)
    ours = modelled(as_case(seen.streams))
    first = [abs(stream.first - step) for stream, step in zip(seen.streams, ours.first, strict=True)]

    real_most = most_at_once((stream.arrived, stream.last) for stream in seen.streams)
    our_most = most_at_once(zip((stream.arrived for stream in seen.streams), ours.last, strict=True))
    print(
        f"{len(seen.steps)} steps, the model {len(ours.rows)}; {seen.preemptions} preemptions, {sum(ours.preempted)}; "
        f"in flight at most {real_most}, {our_most}; first tokens off by {sorted(first)} steps"
    )
    assert len(seen.steps) == pytest.approx(len(ours.rows), rel=0.01)
    assert seen.preemptions == pytest.approx(sum(ours.preempted), rel=0.25, abs=3)
    assert real_most == pytest.approx(our_most, abs=1)
    assert np.quantile(first, 0.9) <= 10


def most_at_once(spans) -> int:
    """Requests in flight at most, from the first and the last step of each."""
    edges = sorted(edge for begin, end in spans for edge in ((begin, 1), (end + 1, -1)))
    return int(np.cumsum([change for _, change in edges]).max())
