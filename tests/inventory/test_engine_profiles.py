"""The file of an engine for the token-level model: what it becomes, and every way to write it wrongly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from servingplan.errors import InputError
from servingplan.inventory.engine_profiles import read_engine_profile
from servingplan.simulation.tokens import EngineLimits, StepCost

HOW_TO = Path(__file__).parents[2] / "docs/how-to/simulate-a-plan.md"

GOOD = """\
maxModelLen: 4096
maxNumSeqs: 64
maxNumBatchedTokens: 2048
kvCacheTokens: 65543
blockSize: 16
prefixCaching: false
asyncScheduling: true
stepSeconds: {base: 0.01, prefillToken: 1e-4, sequence: 2e-5, contextToken: 0}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "engine.yaml"
    file.write_text(text)
    return file


def test_a_file_becomes_limits_and_costs(tmp_path):
    engine = read_engine_profile(written(tmp_path, GOOD + "watermark: 0.02\nlongPrefillTokenThreshold: 512\n"))

    assert engine.limits == EngineLimits(
        max_num_seqs=64,
        max_num_batched_tokens=2048,
        blocks=4096,
        block_size=16,
        watermark=0.02,
        long_prefill_token_threshold=512,
        prefix_caching=False,
        async_scheduling=True,
    )
    assert engine.cost == StepCost(base_s=0.01, prefill_token_s=1e-4, sequence_s=2e-5, context_token_s=0)
    assert engine.longest == 4096


def test_the_file_of_the_how_to_can_be_read(tmp_path):
    (example,) = re.findall(r"```yaml\n(maxModelLen.*?)```", HOW_TO.read_text(), re.DOTALL)

    assert read_engine_profile(written(tmp_path, example)).limits.blocks == 15269


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param("maxNumSeqs: 64\n", "", "engine.yaml: maxNumSeqs: field required", id="missing"),
        pytest.param("blockSize", "blocksize", "engine.yaml: blocksize: extra inputs are not permitted", id="misspelt"),
        pytest.param("base: 0.01", "base: 0", "stepSeconds.base: input should be greater than 0", id="a-free-step"),
        pytest.param("base: 0.01", "base: .inf", ".inf is not a number", id="endless"),
        pytest.param("2048", "32", "maxNumBatchedTokens is less than maxNumSeqs", id="a-small-budget"),
        pytest.param("65543", "4096", "kvCacheTokens hold no request of maxModelLen", id="a-small-cache"),
        pytest.param("maxModelLen", "- maxModelLen", "engine.yaml", id="no-yaml"),
        pytest.param(GOOD, "- 1\n", "it is no engine profile: write its fields", id="a-list"),
        pytest.param(GOOD, "", "it is no engine profile: write its fields", id="empty"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, before, after, said):
    with pytest.raises(InputError) as refused:
        read_engine_profile(written(tmp_path, GOOD.replace(before, after)))

    assert said in str(refused.value)


def test_a_file_that_is_missing_is_said(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_engine_profile(tmp_path / "engine.yaml")
