"""How near a ramp's capacity lies to the truth: ramps of standard effort on simulated servers, in virtual time.

    python benchmarks/capacity_ramps.py --each 40

Each server's true capacity is the rate at which its windows hold the objectives on average. `bias` is the mean of
capacity / truth - 1, `covers` how often the truth lay between the largest passing and the smallest failing rate,
`width` the mean ratio of these two, `minutes` what the ramp would take on a real server.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import mean

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

from benchmarking.ramping import accounted  # noqa: E402  found through the line above
from support.queueing import STEEP  # noqa: E402  as above


def main() -> None:
    """Print a line for each server and one for all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=40, help="ramps on each server")
    each = parser.parse_args().each
    offs: list[float] = []
    covers: list[bool] = []
    for name in STEEP:
        found = accounted(name, each=each)
        offs += found.offs
        covers += found.covers
        print(
            f"{name:24} truth {found.truth:6.2f}/s  bias {mean(found.offs):+.2%}  covers {mean(found.covers):6.1%}  "
            f"width {mean(found.widths):.3f}  minutes {found.minutes:.0f}",
            flush=True,
        )
    print(f"{'all':24} {len(offs)} ramps   bias {mean(offs):+.2%}  covers {mean(covers):6.1%}")


if __name__ == "__main__":
    main()
