"""Prompts for a benchmark of the real vLLM."""

from __future__ import annotations

import json
from collections.abc import Iterable


def prompt_lines(asked: Iterable[tuple[int, int]]) -> str:
    """JSON lines as `servingplan bench` reads them. asked: by prompt, its words, and the tokens of its answer.

    The words are numbers, and no two prompts have a common beginning.
    """
    prompts = (
        {
            "prompt": " ".join(str((7919 * number + 104729 * place) % 1000) for place in range(words)),
            "output_tokens": tokens,
        }
        for number, (words, tokens) in enumerate(asked)
    )
    return "".join(json.dumps(prompt) + "\n" for prompt in prompts)
