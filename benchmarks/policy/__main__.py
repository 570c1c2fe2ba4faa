"""Which policy serves real tenants at the least cost, at equal attainment.

    python -m benchmarks.policy --traces DIR

All policies meet the same requests: recorded rates of tenants, with Gamma-distributed arrivals inside a recorded
step. Each has 24 settings. Those that another one beats on days 3 to 6 are dropped; the rest is scored on days 7 to 13,
and the cost interpolated where mean attainment is 99.5 %. Prints Markdown; how far it has come is said on stderr.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from pathlib import Path

import numpy as np
from benchmarks.policy.contest import Case, Outcome, friendly, hold, with_requests
from benchmarks.policy.pictures import draw
from benchmarks.policy.report import told
from benchmarks.policy.tenants import read_tenants

from servingplan.errors import ServingPlanError
from servingplan.simulation.arrivals import DISPERSION
from servingplan.simulation.scorecard import Period
from servingplan.simulation.workload import DAY_S

OWN_TRACES = Path(__file__).parent / "traces"


def options() -> argparse.Namespace:
    """What is asked for on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policy", description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, default=OWN_TRACES, help="a folder of recorded rates")
    parser.add_argument(
        "--starts", type=_whole_numbers, default=[120, 300, 600], help="seconds a replica takes to start"
    )
    parser.add_argument("--peaks", type=_whole_numbers, default=[10, 4], help="replicas that the largest rate needs")
    parser.add_argument("--seeds", type=_whole_numbers, default=[1, 2, 3], help="of the arrivals inside a step")
    parser.add_argument(
        "--dispersion", type=float, default=DISPERSION, help="variance over mean of arrivals in a slice"
    )
    parser.add_argument(
        "--days-off", type=_whole_numbers, default=[3, 4, 5, 11, 12], help="days that are no working days, from 0"
    )
    parser.add_argument(
        "--score-from", type=int, default=7, help="the first day that is scored; those before teach and tune"
    )
    parser.add_argument("--tenants", type=_whole_numbers, help="only these, by their place in the folder, from 0")
    parser.add_argument("--friendly", action="store_true", help="only the schedule-friendly ones")
    parser.add_argument("--pictures", type=Path, help="a folder for the curves")
    return parser.parse_args()


def _whole_numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    """Read, compare case by case, print."""
    asked = options()
    try:
        outcomes = _compare(asked)
    except ServingPlanError as wrong:
        sys.exit(str(wrong))
    if asked.pictures:
        draw(outcomes, asked.pictures)


def _compare(asked: argparse.Namespace) -> list[Outcome]:
    began_s = time.monotonic()
    tenants = read_tenants(asked.traces)
    days = len(tenants.rates) * tenants.step_s // DAY_S
    period = Period(first_day=asked.score_from, end_day=days)
    tenants = with_requests(tenants if asked.tenants is None else tenants.some(asked.tenants), period)
    chosen = friendly(tenants, period)
    print(
        f"{len(tenants.names)} tenants with requests on days {period.first_day} to {days - 1}, of which "
        f"{chosen.sum()} schedule-friendly: {', '.join(np.array(tenants.names)[chosen])}."
    )
    if asked.friendly:
        tenants = tenants.some(np.flatnonzero(chosen).tolist())
    outcomes = []
    for peak in asked.peaks:
        for start_s in asked.starts:
            case = Case(
                start_s=start_s,
                peak=peak,
                seeds=asked.seeds,
                dispersion=asked.dispersion,
                days_off=asked.days_off,
                scored=period,
            )

            def tell(what: str, start_s: int = start_s, peak: int = peak) -> None:
                print(f"{time.monotonic() - began_s:6.0f} s  start {start_s} s, peak {peak}: {what}", file=sys.stderr)

            outcome = hold(tenants, case, tell=tell)
            print("\n" + "\n".join(told(outcome, seed=asked.seeds[0])), flush=True)
            outcomes.append(outcome)
    print(
        f"Took {time.monotonic() - began_s:.0f} s with numpy {np.__version__}, Python {platform.python_version()}, "
        f"seeds {', '.join(map(str, asked.seeds))}."
    )
    return outcomes


if __name__ == "__main__":
    main()
