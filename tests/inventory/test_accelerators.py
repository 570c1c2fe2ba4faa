"""The table of accelerators: the shipped one, one's own, and tables that are wrong."""

from __future__ import annotations

import pytest

from servingplan.errors import InputError
from servingplan.hardware.accelerator import Link
from servingplan.inventory.accelerators import read_accelerators, shipped

ROW = "{name: X1, memory: 80, bandwidth: 2000, tflops: 300, link: PCIe, gpusPerNode: 4}"


def table(tmp_path, text):
    file = tmp_path / "gpus.yaml"
    file.write_text(text)
    return file


def test_the_shipped_table_knows_the_usual_ones_by_what_the_driver_shows():
    found = {gpu.name: gpu for gpu in shipped()}

    assert {"L4", "L40S", "A100-80GB", "H100-SXM", "H200", "B200", "MI300X"} <= set(found)
    assert found["H100-SXM"].memory_gib == pytest.approx(79.19)
    assert all(gpu.price is None for gpu in found.values())
    assert [name for name, gpu in found.items() if gpu.ampere] == ["A100-40GB", "A100-80GB"]


def test_a_table_of_ones_own_takes_its_place(tmp_path):
    (found,) = read_accelerators(table(tmp_path, f"accelerators:\n  - {ROW[:-1]}, price: 1.5}}\n"))

    assert (found.name, found.memory, found.link) == ("X1", 80 * 1024**3, Link.PCIE)
    assert (found.bandwidth, found.tflops, found.tflops_8bit) == (2e12, 300, None)
    assert (found.gpus_per_node, found.price, found.ampere) == (4, 1.5, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is no table of accelerators"),
        ("- a", "it is no table of accelerators"),
        ("accelerators: []", "at least 1 item"),
        ("accelerators: [{name: X1}]", "accelerators[0].memory: field required"),
        (f"accelerators: [{ROW.replace('80', '-1')}]", "greater than 0"),
        (f"accelerators: [{ROW.replace('80', '.nan')}]", "finite number"),
        (f"accelerators: [{ROW.replace('PCIe', 'wire')}]", "'nvlink' or 'pcie'"),
        (f"accelerators: [{ROW[:-1]}, colour: red}}]", "colour: extra inputs"),
        (f"accelerators: [{ROW}, {ROW}]", "X1 is there more than once"),
        ("accelerators: [", "correct the file"),
    ],
)
def test_a_wrong_table_says_what_is_wrong(tmp_path, text, words):
    with pytest.raises(InputError) as caught:
        read_accelerators(table(tmp_path, text))

    assert words in "\n".join(str(problem) for problem in caught.value.problems)
    assert all("gpus.yaml" in problem.path for problem in caught.value.problems)


def test_every_wrong_row_is_named_at_once(tmp_path):
    with pytest.raises(InputError) as caught:
        read_accelerators(table(tmp_path, "accelerators: [{name: X1}, {name: X2}]"))

    assert len(caught.value.problems) == 10


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None], ids=["not text", "not there"])
def test_a_table_that_cannot_be_read_is_one_problem(tmp_path, content):
    file = tmp_path / "gpus.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_accelerators(file)

    assert len(caught.value.problems) == 1
