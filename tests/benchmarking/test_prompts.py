"""A team's prompts: read, shared out over runs, kept out of the cache."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

import pytest

from servingplan.benchmarking.prompts import Prompt, Prompts, as_lines, mark, mean_input, read_prompts, share_out
from servingplan.errors import InputError


def some(count: int, *, input_tokens: int | None = 50) -> Prompts:
    entries = tuple(Prompt(text=f"prompt {n}", output_tokens=n + 1, input_tokens=input_tokens) for n in range(count))
    return Prompts(entries=entries, digest="sha256:0", mark_tokens=6)


def test_every_run_gets_the_same_mixture_in_another_order() -> None:
    prompts = some(1000)
    runs = [share_out(prompts, run=number, count=200) for number in range(6)]
    assert all(mean(prompt.output_tokens for prompt in run) == pytest.approx(500.5, rel=0.01) for run in runs)
    assert len(set(runs)) == 6
    assert share_out(prompts, run=3, count=200) == runs[3]


def test_runs_take_different_prompts() -> None:
    first, second = (set(share_out(some(1000), run=number, count=200)) for number in range(2))
    assert len(first & second) < 20


def test_no_prompt_comes_twice_without_a_mark_of_its_own() -> None:
    run = share_out(some(10), run=0, count=95)
    assert len({prompt.text for prompt in run}) == 95
    marked = [prompt for prompt in run if prompt.text.startswith("[")]
    assert len(marked) == 85
    assert {prompt.input_tokens for prompt in marked} == {56}


def test_marks_differ_from_the_first_characters_on() -> None:
    assert mark(3) != mark(4)
    assert len(mark(3)) == len(mark(99999))


def test_tokens_that_nobody_counted_are_unknown() -> None:
    assert mean_input(share_out(some(10, input_tokens=None), run=0, count=20)) is None
    assert mean_input(share_out(some(10), run=0, count=10)) == 50


def test_what_is_written_is_what_vllm_reads() -> None:
    lines = [json.loads(line) for line in as_lines(some(2).entries).splitlines()]
    assert lines == [{"prompt": "prompt 0", "output_tokens": 1}, {"prompt": "prompt 1", "output_tokens": 2}]


BROKEN = {
    "no JSON": ("hello", "it is no JSON"),
    "no prompt": ('{"text": "a", "output_tokens": 3}', "has no text `prompt`"),
    "no tokens": ('{"prompt": "a"}', "`output_tokens` is no count"),
    "no tokens at all": ('{"prompt": "a", "output_tokens": 0}', "`output_tokens` is no count"),
}


@pytest.mark.parametrize(("line", "says"), BROKEN.values(), ids=BROKEN)
def test_every_line_that_is_no_prompt_is_told_with_its_number(tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "a", "output_tokens": 3}\n' + line + "\n\n" + line + "\n")
    with pytest.raises(InputError) as caught:
        read_prompts(file)
    assert [problem.path for problem in caught.value.problems] == [f"{file}:2", f"{file}:4"]
    assert says in str(caught.value)


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text("\n")
    with pytest.raises(InputError, match="holds no prompt"):
        read_prompts(file)


def test_the_digest_follows_the_content(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "a", "output_tokens": 3}\n')
    first = read_prompts(file).digest
    file.write_text('{"prompt": "b", "output_tokens": 3}\n')
    assert first.startswith("sha256:")
    assert read_prompts(file).digest != first
