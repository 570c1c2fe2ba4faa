"""Evaluation sets and results of somebody's own: what they hold, and every problem at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servingplan.errors import InputError
from servingplan.evaluating.items import MOST_PROBLEMS, read_set
from servingplan.evaluating.record import Role
from servingplan.evaluating.results import read_results


def written(tmp_path: Path, *lines: object) -> Path:
    file = tmp_path / "set.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return file


def problems(read, file: Path) -> list[str]:
    with pytest.raises(InputError) as raised:
        read(file)
    return [str(problem).removeprefix(f"{file}:") for problem in raised.value.problems]


def test_items_of_several_kinds_stand_in_one_set(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "2 + 2?"}]
    file = written(
        tmp_path,
        {"prompt": "Capital of France?", "answer": "Paris"},
        {"messages": chat, "answer": "4", "id": "sum", "max_tokens": 5},
        "",
        {"prompt": "Which?", "scorer": "choice", "answer": "B"},
    )
    first, second, third = read_set(file).items
    assert (first.id, first.messages, first.max_tokens, first.scorer.kind) == ("1", None, None, "exact")
    assert (second.id, second.messages, second.max_tokens) == ("sum", tuple(chat), 5)
    assert second.words == "system: Be short.\nuser: 2 + 2?"
    assert (third.id, third.scorer.kind) == ("4", "choice")


def test_defaults_hold_for_items_of_their_scorer(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"defaults": {"scorer": "choice", "choices": "ABC", "max_tokens": 3}},
        {"prompt": "Which?", "answer": "C"},
        {"prompt": "Say yes", "answer": "yes", "scorer": "exact"},
    )
    first, second = read_set(file).items
    assert (first.scorer.kind, first.max_tokens) == ("choice", 3)
    assert (second.scorer.kind, second.max_tokens) == ("exact", 3)


def test_another_set_has_another_digest(tmp_path: Path) -> None:
    one = read_set(written(tmp_path, {"prompt": "a", "answer": "b"})).digest
    other = read_set(written(tmp_path, {"prompt": "a", "answer": "c"})).digest
    assert one != other
    assert one.startswith("sha256:")


def test_every_problem_of_a_set_is_told_with_its_line(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"answer": "Paris"},
        {"prompt": "a", "messages": [], "answer": "b"},
        {"prompt": "a", "answer": 3, "max_tokens": 0, "colour": "red"},
        {"prompt": "a", "answer": "b", "id": "x"},
        {"prompt": "a", "answer": "b", "id": "x"},
        {"prompt": "a", "answer": "(", "scorer": "regex"},
        {"prompt": "a", "answer": "b", "scorer": "guess"},
        {"messages": [{"content": "no role"}], "answer": "b"},
    )
    told = problems(read_set, file)
    assert [line.split(":")[0] for line in told] == ["1", "2", "3", "3", "3", "5", "6", "7", "8"]
    assert "exactly one of `prompt`" in told[0]
    assert "`max_tokens` is a count" in told[2]
    assert "`colour` is not known here" in told[3]
    assert "'x' is that of another item" in told[5]
    assert "exact, choice, regex, json_schema" in told[7]


FILES = {
    "no JSON": ("Paris\n", "1: it is no JSON"),
    "no object": ("[1]\n", "1: it is no object"),
    "half a character": ('{"prompt": "\\ud800", "answer": "b"}\n', "1: it is no JSON"),
    "nothing": ("\n", "it holds no item"),
    "wrong defaults": ('{"defaults": {"scorer": "choice", "normalize": []}}\n', "1: `normalize` is not known here"),
}


@pytest.mark.parametrize(("text", "says"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_set_says_why(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text(text)
    assert says in problems(read_set, file)[0]


def test_a_file_that_is_not_there_or_no_text_says_so(tmp_path: Path) -> None:
    assert "cannot be read" in problems(read_set, tmp_path / "none")[0]
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in problems(read_set, tmp_path / "binary")[0]


def test_a_file_of_another_kind_does_not_tell_a_problem_a_line(tmp_path: Path) -> None:
    told = problems(read_set, written(tmp_path, *["text"] * 1000))
    assert len(told) == MOST_PROBLEMS + 1
    assert "900 more problems" in told[-1]


# ---- results ----


def test_results_hold_scores_and_missing_answers(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"id": "a", "baseline": 1, "variant": 0.5, "again": 1},
        {"id": "b", "baseline": 0, "variant": None},
    )
    found = read_results(file)
    assert found.ids == ("a", "b")
    assert found.answers["a", Role.VARIANT].known_score == 0.5
    assert found.answers["b", Role.VARIANT].known_score is None
    assert ("b", Role.AGAIN) not in found.answers


def test_every_problem_of_results_is_told_with_its_line(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"id": "a", "baseline": 1},
        {"id": "b", "baseline": 2, "variant": True},
        '{"id": "c", "baseline": NaN, "variant": 1}',
        {"baseline": 1, "variant": 1, "score": 1},
    )
    told = problems(read_results, file)
    assert [line.split(":")[0] for line in told] == ["1", "2", "2", "3", "4", "4"]
    assert "no `variant`" in told[0]
    assert "`score` is not known here" in told[5]
