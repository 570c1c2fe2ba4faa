"""The folder of a running cluster: private, locked, and removed also after a kill."""

from __future__ import annotations

import subprocess
import sys

from servingplan.localcluster.rundir import RunFolder

HOLD = "import sys, pathlib; from servingplan.localcluster.rundir import RunFolder\n" + (
    "held = RunFolder(pathlib.Path(sys.argv[1])); print(held.path, flush=True); sys.stdin.read()"
)


def test_a_folder_is_private_and_removed_with_all_in_it(tmp_path):
    folder = RunFolder(tmp_path / "runs")
    assert folder.path.stat().st_mode & 0o077 == 0
    assert (tmp_path / "runs").stat().st_mode & 0o077 == 0
    (folder.path / "data").mkdir()
    folder.remove()
    folder.remove()
    assert not folder.path.exists()


def test_the_folder_of_a_killed_process_goes_with_the_next_start_and_a_held_one_stays(tmp_path):
    runs = tmp_path / "runs"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(runs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        path = holder.stdout.readline().strip()
        RunFolder(runs).remove()
        assert path in {str(each) for each in runs.iterdir()}
        holder.kill()
    RunFolder(runs).remove()
    assert path not in {str(each) for each in runs.iterdir()}
