"""The policy benchmark, as its one command runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.policy.contest import friendly, with_requests
from benchmarks.policy.tenants import read_tenants

from servingplan.simulation.scorecard import Period
from simulation.recorded import daily, tenants

ROOT = Path(__file__).parents[2]


def play(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.policy", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
        env={"PYTHONPATH": str(ROOT / "operator"), "MPLBACKEND": "agg"},
    )  # fmt: skip


@pytest.fixture
def week(tmp_path) -> Path:
    """Five days of three tenants that ship."""
    some = read_tenants(ROOT / "benchmarks" / "policy" / "traces")
    lines = [f"{step * 600},0,{','.join(map(str, row))}" for step, row in enumerate(some.rates[1152:1872].round(4))]
    (tmp_path / "small_tenants.csv").write_text("t_s,gap,a_rps,b_rps,c_rps\n" + "\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.slow
def test_one_command_compares_all_policies_and_draws_them(week):
    common = ("--traces", str(week), "--score-from", "4", "--starts", "300", "--peaks", "4", "--seeds", "1")

    answer = play(*common, "--days-off", "3,4", "--pictures", str(week / "drawn"))

    assert answer.returncode == 0, answer.stderr
    assert "3 tenants with requests on days 4 to 4" in answer.stdout
    rows = re.findall(r"^\| (.+?) \| .*\d%", answer.stdout, flags=re.MULTILINE)
    assert rows[1:] == [
        "static peak", "HPA in-flight", "KEDA cron + in-flight", "rate-reactive", "cron + rate", "schedule alone",
        "AIBrix-like", "**foresight**",
    ]  # fmt: skip
    assert sorted(path.name for path in (week / "drawn").iterdir()) == ["all.svg", "friendly.svg", "rises.svg"]


def test_a_folder_without_traces_is_said_in_one_sentence(tmp_path):
    answer = play("--traces", str(tmp_path))

    assert answer.returncode == 1
    assert "No CSV file here has the columns t_s, gap and <tenant>_rps" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_friendly_tenant_repeats_its_days_before_the_scored_ones():
    rng = np.random.default_rng(1)
    steady = daily(4).rates[:, 0]
    noise = rng.gamma(1, 3, 4 * 144)
    late = np.where(np.arange(4 * 144) < 2 * 144, noise, steady)
    rare = steady / 100
    some = tenants(np.stack([steady, noise, late, rare], axis=1))

    assert friendly(some, Period(first_day=2, end_day=4)).tolist() == [True, False, False, False]


def test_a_tenant_without_requests_on_the_scored_days_is_left_out():
    some = tenants([[1.0, 1.0]] * 144 + [[1.0, 0.0]] * 144)

    assert with_requests(some, Period(first_day=1, end_day=2)).names == ("t0",)
