"""A team's own prompts, and how the runs of a ramp share them out.

In: a .jsonl file, one ``{"prompt": ..., "output_tokens": ...}`` a line, as ``vllm bench serve`` reads it. Out: the
prompts of one run: every run gets the same mixture of lengths, and no prompt twice without a mark that keeps it out of
the cache.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from servingplan.errors import InputError, Problem

MOST_PROBLEMS = 20
"""So many lines are told; a file of another kind would have as many problems as lines."""

_GOLDEN = 0.6180339887498949
"""Its multiples spread over [0, 1) as evenly as they can: runs take different prompts from between the same lengths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request. input_tokens: as the server counts them; None where it was not asked."""

    text: str
    output_tokens: int
    input_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """The prompts of a file by length, and its digest. mark_tokens: how many tokens a mark adds."""

    entries: tuple[Prompt, ...]
    digest: str
    mark_tokens: int | None = None

    @property
    def mean_output(self) -> float:
        """Mean output tokens a request."""
        return sum(entry.output_tokens for entry in self.entries) / len(self.entries)


def read_prompts(path: Path) -> Prompts:
    """The prompts of a file. Raises InputError with every line that is not one, at most `MOST_PROBLEMS`."""
    try:
        content = path.read_bytes()
        text = content.decode("utf-8")
    except OSError as error:
        raise _unusable(str(path), f"it cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise _unusable(str(path), "it is not UTF-8 text: name a .jsonl file") from error
    problems: list[Problem] = []
    entries = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entries.append(_prompt(line))
        except ValueError as error:
            problems.append(Problem(path=f"{path}:{number}", reason="InvalidPrompt", message=str(error)))
    if problems:
        raise InputError(*problems[:MOST_PROBLEMS])
    if not entries:
        raise _unusable(str(path), 'it holds no prompt: one {"prompt": "...", "output_tokens": 180} a line')
    entries.sort(key=lambda entry: (entry.output_tokens, len(entry.text), entry.text))
    return Prompts(entries=tuple(entries), digest="sha256:" + hashlib.sha256(content).hexdigest())


def _unusable(path: str, message: str) -> InputError:
    return InputError(Problem(path=path, reason="InvalidPrompts", message=message))


def _prompt(line: str) -> Prompt:
    wanted = 'expected {"prompt": "...", "output_tokens": 180}'
    try:
        found = json.loads(line)
    except ValueError:
        raise ValueError(f"it is no JSON: {wanted}") from None
    if not isinstance(found, dict) or not isinstance(found.get("prompt"), str) or not found["prompt"]:
        raise ValueError(f"it has no text `prompt`: {wanted}")
    tokens = found.get("output_tokens")
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        raise ValueError(f"its `output_tokens` is no count of tokens: {wanted}")
    return Prompt(text=found["prompt"], output_tokens=tokens)


def share_out(prompts: Prompts, *, run: int, count: int) -> tuple[Prompt, ...]:
    """The `count` prompts of the run of that number, in random order that the number alone decides."""
    known = len(prompts.entries)
    offset = (run * _GOLDEN) % 1.0
    seen: set[int] = set()
    chosen = []
    for index in range(count):
        place = int((index + offset) * known / count) % known
        entry = prompts.entries[place]
        chosen.append(_marked(entry, index, prompts.mark_tokens) if place in seen else entry)
        seen.add(place)
    random.Random(run).shuffle(chosen)  # noqa: S311  an order, not a secret
    return tuple(chosen)


def halved(prompts: Prompts) -> Prompts:
    """The same with half of each text and half of each answer. Their tokens have to be counted anew."""
    entries = tuple(
        Prompt(text=entry.text[: (len(entry.text) + 1) // 2], output_tokens=(entry.output_tokens + 1) // 2)
        for entry in prompts.entries
    )
    return Prompts(entries=entries, digest=prompts.digest)


def mark(index: int) -> str:
    """What is put before a prompt that comes again, so that nothing of it is in the prefix cache."""
    return f"[{index:06d}] "


def _marked(entry: Prompt, index: int, mark_tokens: int | None) -> Prompt:
    known = entry.input_tokens is not None and mark_tokens is not None
    tokens = entry.input_tokens + mark_tokens if known else None  # type: ignore[operator] # both known
    return replace(entry, text=mark(index) + entry.text, input_tokens=tokens)


def probe_prompts(prompts: Prompts, count: int) -> tuple[Prompt, ...]:
    """The fixed prompts of the probe: as the file mixes them."""
    return tuple(prompts.entries[int((index + 0.5) * len(prompts.entries) / count)] for index in range(count))


def mean_input(prompts: Sequence[Prompt]) -> float | None:
    """Mean input tokens; None where one is unknown."""
    counts = [prompt.input_tokens for prompt in prompts]
    known = [count for count in counts if count is not None]
    return sum(known) / len(known) if known and len(known) == len(counts) else None


def as_lines(prompts: Iterable[Prompt]) -> str:
    """The prompts as vLLM reads them."""
    return "".join(
        json.dumps({"prompt": prompt.text, "output_tokens": prompt.output_tokens}, ensure_ascii=False) + "\n"
        for prompt in prompts
    )
