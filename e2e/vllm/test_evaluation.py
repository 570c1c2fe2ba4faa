"""`servingplan evaluate` against the real vLLM: a model against itself, and against a copy whose weights are off."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.vllm.engines import SERVED_NAME, Server, cpu_engine

ITEMS = 180
"""Enough that no difference at any of them shows that two points are not lost."""

KEY = "a-key-of-the-variant"

PERTURB = """
import sys, torch
from safetensors.torch import load_file, save_file
torch.manual_seed(1)
weights = load_file(sys.argv[1])
changed = {name: (w + torch.randn_like(w) * 0.3 * w.float().std()).to(w.dtype) for name, w in weights.items()}
save_file(changed, sys.argv[1], metadata={"format": "pt"})
"""


@pytest.fixture(scope="module")
def perturbed(environment, tmp_path_factory) -> Path:
    """A copy of the tiny model whose weights are a third of their spread off."""
    folder = tmp_path_factory.mktemp("perturbed") / "model"
    shutil.copytree(environment.model, folder)
    weights = str(folder / "model.safetensors")
    subprocess.run([environment.python, "-c", PERTURB, weights], check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def servers(environment, perturbed, tmp_path_factory):
    """The model and the copy, the latter with a key; and what the model says, which is right here by definition."""
    logs = tmp_path_factory.mktemp("engines")
    baseline = Server(environment, cpu_engine(environment.model), logs / "baseline.log")
    variant = Server(environment, cpu_engine(perturbed), logs / "variant.log", replaced=(f"--api-key={KEY}",))
    with baseline, variant:
        yield baseline.until_up(), variant.until_up()


@pytest.fixture(scope="module")
def questions(servers, tmp_path_factory) -> Path:
    """A set of which the baseline's first answers are right."""
    lines = []
    for number in range(ITEMS):
        prompt = f"import module{number} as m\nprint(m.value{number * 7})\n"
        asked = {"model": SERVED_NAME, "prompt": prompt, "max_tokens": 4, "temperature": 0, "seed": 0}
        said = json.loads(servers[0].post("/v1/completions", json.dumps(asked).encode()))["choices"][0]["text"]
        lines.append(json.dumps({"prompt": prompt, "answer": said, "normalize": [], "max_tokens": 4}))
    file = tmp_path_factory.mktemp("set") / "set.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture
def evaluate(servers, questions, tmp_path) -> Callable[..., list[str]]:
    """The command that compares the baseline with another server."""
    return lambda variant, *more: [
        sys.executable, "-m", "servingplan.cli", "evaluate", "--baseline", servers[0].url, "--variant", variant.url,
        "--set", str(questions), "--out", str(tmp_path / "answers.jsonl"), "-o", "json", *more,
    ]  # fmt: skip


def run(arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(arguments, env=plain | environment, capture_output=True, text=True, timeout=600, check=False)


def test_a_model_against_itself_passes_and_its_own_discordance_is_shown(servers, evaluate):
    done = run(evaluate(servers[0]))
    found = json.loads(done.stdout)
    print(json.dumps({key: value for key, value in found.items() if key != "items"}, indent=1))

    difference = found["difference"]
    assert found["failures"] == {"baseline": 0, "variant": 0}
    assert found["baseline"]["model"] == SERVED_NAME
    assert found["baseline"]["vllm"].startswith("0.")
    assert 0 <= difference["baselineDiscordant"] < 0.05
    # Requests in flight together change sums in the last bit: what differs then differs in both directions.
    assert (done.returncode == 0) == (found["verdict"] == "Passed") == (difference["lowerBound"] >= -0.02)
    assert difference["discordant"] < 0.05


def test_a_copy_whose_weights_are_off_fails(servers, evaluate):
    done = run(evaluate(servers[1]), VARIANT_API_KEY=KEY)
    found = json.loads(done.stdout)
    print(json.dumps({key: value for key, value in found.items() if key != "items"}, indent=1))

    assert (found["verdict"], found["reason"]) == ("Failed", "Worse")
    assert done.returncode == 4


def test_a_key_that_is_refused_is_said_and_counts_nothing(servers, evaluate, tmp_path):
    done = run(evaluate(servers[1]), OPENAI_API_KEY="wrong")

    assert done.returncode == 3
    assert "401" in done.stderr
    assert not (tmp_path / "answers.jsonl").exists()


def test_a_server_that_goes_away_in_the_middle_counts_no_wrong_answers(environment, evaluate, tmp_path):
    out = tmp_path / "answers.jsonl"
    with Server(environment, cpu_engine(environment.model), tmp_path / "vllm.log") as leaving:
        leaving.until_up()
        with subprocess.Popen(
            evaluate(leaving, "--concurrency", "1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as running:
            until = time.monotonic() + 120
            while time.monotonic() < until and not (out.exists() and '"variant"' in out.read_text().partition("\n")[2]):
                time.sleep(0.05)
            leaving.terminate()
            told = running.communicate(timeout=300)[1]

    assert running.returncode == 3, told
    assert "the same command goes on" in told
    kept = [json.loads(line) for line in out.read_text().splitlines()[1:]]
    assert 0 < sum(line["role"] == "variant" for line in kept) < ITEMS
    assert not any(line["failure"] for line in kept)


def test_what_is_refused_for_one_item_is_that_items_failure(servers, evaluate, tmp_path, questions):
    """A prompt that is longer than the model's context."""
    long = tmp_path / "long.jsonl"
    first = questions.read_text().splitlines()[0]
    long.write_text(first + "\n" + json.dumps({"prompt": "word " * 4000, "answer": "x", "max_tokens": 4}) + "\n")
    done = run([*evaluate(servers[0]), "--set", str(long)])
    found = json.loads(done.stdout)

    assert found["failures"] == {"baseline": 1, "variant": 1}
    assert found["items"][1]["variant"]["failure"] == "Refused"
    assert found["difference"]["items"] == 1
