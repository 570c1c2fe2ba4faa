"""Recorded rates: read, checked, and drawn into requests."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from benchmarks.policy.tenants import read_tenants

from servingplan.simulation.arrivals import SLICE_S, arrivals
from servingplan.simulation.traces import UnreadableTrace
from simulation.recorded import load, tenants

OWN = Path(__file__).parents[2] / "benchmarks" / "policy" / "traces"


def write(folder: Path, text: str, name: str = "a_tenants.csv") -> Path:
    (folder / name).write_text(text)
    return folder


def test_the_tenants_that_ship_are_a_fortnight_long():
    found = read_tenants(OWN)

    assert [name.split("/")[1] for name in found.names] == ["c31", "c35", "c36"]
    assert found.rates.shape == (14 * 144, 3)
    assert not found.counted.all()


def test_packed_and_plain_files_are_read_together_and_silent_tenants_left_out(tmp_path):
    write(tmp_path, "t_s,gap,x_rps,quiet_rps\n0,0,1,0\n600,0,2,0\n")
    (tmp_path / "b_tenants.csv.gz").write_bytes(gzip.compress(b"t_s,gap,y_rps\n0,0,3\n600,0,4\n"))
    write(tmp_path, "t_s,input_tokens\n0,12\n", "requests.csv")

    found = read_tenants(tmp_path)

    assert found.names == ("a/x", "b/y")
    assert found.rates.tolist() == [[1, 3], [2, 4]]


def test_a_gap_is_bridged_and_not_counted(tmp_path):
    found = read_tenants(write(tmp_path, "t_s,gap,x_rps\n0,0,1\n600,1,0\n1200,0,3\n"))

    assert found.rates[:, 0].tolist() == [1, 2, 3]
    assert found.counted[:, 0].tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("t_s,gap,x_rps\n0,0,1\n600,0,-1\n", "Line 3: -1.0 is no rate", id="a negative rate"),
        pytest.param("t_s,gap,x_rps\n0,0,1\n600,0,nan\n", "nan is no rate", id="no number"),
        pytest.param("t_s,gap,x_rps\n0,0,1\n600,0,2\n700,0,2\n", "equal steps", id="uneven steps"),
        pytest.param("t_s,gap,x_rps\n0,0,1\n7,0,2\n", "equal steps", id="steps between slices"),
        pytest.param("t_s,gap,x_rps\n0,0,1\n", "at least two rows", id="one row"),
        pytest.param("t_s,gap\n0,0\n600,0\n", "No CSV file", id="no tenant"),
        pytest.param("t_s,gap,x_rps\n0,1,1\n600,1,2\n", "one gap", id="nothing but a gap"),
        pytest.param("t_s,gap,x_rps\n0,0,1\n600,0,some\n", "Line 3: could not convert", id="words"),
        pytest.param("time,rate\n0,1\n", "No CSV file", id="another file"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_file(tmp_path, text, says):
    with pytest.raises(UnreadableTrace, match=says) as wrong:
        read_tenants(write(tmp_path, text))

    assert str(tmp_path) in str(wrong.value)


def test_files_of_different_lengths_are_refused(tmp_path):
    write(tmp_path, "t_s,gap,x_rps\n0,0,1\n600,0,2\n")
    write(tmp_path, "t_s,gap,x_rps\n0,0,1\n600,0,2\n1200,0,2\n", "b_tenants.csv")

    with pytest.raises(UnreadableTrace, match="differ in their steps"):
        read_tenants(tmp_path)


def test_arrivals_keep_the_recorded_total_of_each_step_and_follow_their_seed():
    rates = np.array([[4.0], [0.0], [9.0]])

    first, second = (arrivals(rates, 600, seeds=[7, 8], dispersion=3.0) for _ in range(2))

    totals = first.reshape(3, -1, 1, 2).sum(axis=1)[:, 0]
    assert totals == pytest.approx(np.array([[2400, 2400], [0, 0], [5400, 5400]]), rel=1e-5)
    assert first.tolist() == second.tolist()
    assert first[:, 0, 0].tolist() != first[:, 0, 1].tolist()


def test_arrivals_vary_as_much_as_was_asked_for():
    counts = arrivals(np.full((400, 1), 20.0), 600, seeds=[1], dispersion=3.0)[:, 0, 0].astype(float)
    within = counts.reshape(400, -1).var(axis=1, ddof=1) / (20.0 * SLICE_S)

    assert within.mean() == pytest.approx(3.0, rel=0.05)


def test_a_quarter_of_an_hour_is_scored_apart_from_each_step_that_rises_above_the_half_hour_before():
    some = load(tenants([[2.0]] * 5 + [[4.0]] * 5))

    # Of the steps at 4, the third is no more a quarter above the mean of the three before it.
    last_rise = 6 * 600 // SLICE_S
    assert np.flatnonzero(some.rising[:, 0]).tolist() == list(range(100, last_rise + 900 // SLICE_S))
