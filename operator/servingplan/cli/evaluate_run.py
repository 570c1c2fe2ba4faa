"""The asking of ``servingplan evaluate``: looks at both servers, asks what is still to be asked, keeps every answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from servingplan.cli.evaluate import Asking
from servingplan.cli.instants import now
from servingplan.cli.output import talk
from servingplan.cli.stopping import finished
from servingplan.clients.openai_server import KEY_VARIABLE, OpenAIServer
from servingplan.errors import ClusterError, UsageError
from servingplan.evaluating.asking import SEED, Manner, Side, ask, look, turns
from servingplan.evaluating.evaluation import Evaluation, evaluation
from servingplan.evaluating.items import EvaluationSet, read_set
from servingplan.evaluating.record import Answer, Header, Record, Role, Served, differs, read
from servingplan.evaluating.verdict import Rule
from servingplan.planning.units import parse_duration

KEYS = {Role.BASELINE: "BASELINE_API_KEY", Role.VARIANT: "VARIANT_API_KEY"}
"""Where a server's key is taken from; else from `KEY_VARIABLE`."""

_STEPS = 20
"""Lines of progress of a whole run."""


def run(whom: Asking, rule: Rule) -> Evaluation:
    """Ask all that is still to be asked, and judge. Ends the process with 130 after Ctrl-C and SIGTERM."""
    manner = _manner(whom)
    questions = read_set(whom.set_file)
    try:
        record = finished(_answered(whom, manner, questions), lambda: _kept_words(whom.out))
    except ClusterError:
        talk(f"{_kept_words(whom.out)}; the same command goes on.")
        raise
    items = {item.id: item for item in questions.items}
    known = {key: answer for key, answer in record.answers.items() if whom.repeat or key[1] is not Role.AGAIN}
    return evaluation(tuple(items), known, rule, set_digest=questions.digest, items=items, header=record.header)


async def _answered(whom: Asking, manner: Manner, questions: EvaluationSet) -> Record:
    """The record with an answer to everything."""
    kept = read(whom.out)
    todo = turns(questions.items, () if kept is None else kept.answers, repeat=whom.repeat)
    async with AsyncExitStack() as stack:
        servers = {
            role: await stack.enter_async_context(OpenAIServer(url, key=_key(role)))
            for role, url in ((Role.BASELINE, whom.baseline), (Role.VARIANT, whom.variant))
        }
        served = await _served(whom, servers) if todo or kept is None else _as_kept(whom, servers, kept.header)
        header = _header(whom, questions, served)
        if kept is not None:
            if (other := differs(kept.header, header)) is not None:
                raise UsageError(f"{whom.out} holds another evaluation: {other}. Name another file with --out")
            talk(f"Going on with {len(kept.answers):,} answers in {whom.out}")
        sides = {role: Side(server=servers[role], model=served[role].model) for role in servers}
        sides[Role.AGAIN] = sides[Role.BASELINE]
        with kept or Record(path=whom.out, header=header) as record:
            await ask(todo, sides, manner, _keeping(record, len(todo)))
        return record


def _kept_words(path: Path) -> str:
    kept = read(path)
    return f"Kept in {path}: {0 if kept is None else len(kept.answers):,} answers"


async def _served(whom: Asking, servers: dict[Role, OpenAIServer]) -> dict[Role, Served]:
    return {
        Role.BASELINE: await look(servers[Role.BASELINE], whom.baseline_model, option="--baseline-model"),
        Role.VARIANT: await look(servers[Role.VARIANT], whom.variant_model, option="--variant-model"),
    }


def _as_kept(whom: Asking, servers: dict[Role, OpenAIServer], kept: Header) -> dict[Role, Served]:
    """What was served, where nothing is to be asked any more and the servers may be gone."""
    there = ((Role.BASELINE, kept.baseline, whom.baseline_model), (Role.VARIANT, kept.variant, whom.variant_model))
    return {
        role: Served(url=servers[role].url, model=model or served.model, vllm=served.vllm)
        for role, served, model in there
    }


def _header(whom: Asking, questions: EvaluationSet, served: dict[Role, Served]) -> Header:
    return Header(
        started=now().isoformat(timespec="seconds"),
        set=questions.digest,
        baseline=served[Role.BASELINE],
        variant=served[Role.VARIANT],
        max_tokens=whom.max_tokens,
        chat=whom.chat,
        seed=SEED,
    )


def _key(role: Role) -> str | None:
    return os.environ.get(KEYS[role]) or os.environ.get(KEY_VARIABLE)


def _manner(whom: Asking) -> Manner:
    try:
        timeout = parse_duration(whom.timeout).total_seconds()
    except ValueError as error:
        raise UsageError(f"--timeout: {error}") from None
    return Manner(concurrency=whom.concurrency, timeout_s=timeout, max_tokens=whom.max_tokens, chat=whom.chat)


def _keeping(record: Record, todo: int) -> Callable[[Answer], None]:
    """Keeps an answer, and says now and then how far it is."""
    done = failed = 0

    def keep(answer: Answer) -> None:
        nonlocal done, failed
        record.keep(answer)
        done, failed = done + 1, failed + (answer.failure is not None)
        if done * _STEPS // todo > (done - 1) * _STEPS // todo:
            missing = f", {failed:,} of them failures" if failed else ""
            talk(f"{done:,} of {todo:,} answers{missing}")

    return keep
