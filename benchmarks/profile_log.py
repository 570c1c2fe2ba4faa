"""How long `servingplan profile from-log` takes for a million requests, and how much memory.

    python benchmarks/profile_log.py [--requests N] [--form csv|jsonl|nginx|mooncake]... [--packed]

The log is generated into a temporary folder: four weeks of an office, arrivals with a seed. The command runs as a
process of its own; what the kernel accounts to it is printed: wall seconds, processor seconds, and the most memory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

START = datetime(2026, 11, 2, tzinfo=UTC).timestamp()
DAYS = 28
SEED = 7
BLOCK_TOKENS = 512

Line = Callable[[float, int, int, random.Random], str]


def arrivals(requests: int, chance: random.Random) -> Iterator[float]:
    """Sorted times: three quarters of all between 8:00 and 18:00 of working days."""
    times = []
    while len(times) < requests:
        at = chance.random() * DAYS * 86400
        weekday, hour = int(at // 86400) % 7, at % 86400 / 3600
        busy = weekday < 5 and 8 <= hour < 18
        if busy or chance.random() < 0.14:
            times.append(START + at)
    yield from sorted(times)


def csv_line(at: float, given: int, answered: int, chance: random.Random) -> str:
    """A line of a gateway's CSV."""
    moment = datetime.fromtimestamp(at, UTC).isoformat()
    return f"{moment},qwen3-14b,{given},{answered},team-{chance.randrange(20)},0\n"


def json_line(at: float, given: int, answered: int, chance: random.Random) -> str:
    """A line of a gateway's structured log."""
    entry = {
        "time": datetime.fromtimestamp(at, UTC).isoformat(),
        "method": "POST",
        "path": "/v1/chat/completions",
        "status": 200,
        "usage": {"prompt_tokens": given, "completion_tokens": answered},
        "user": f"team-{chance.randrange(20)}",
    }
    return json.dumps(entry) + "\n"


def nginx_line(at: float, given: int, answered: int, chance: random.Random) -> str:
    """A line of nginx's combined format, with how long the answer took."""
    moment = datetime.fromtimestamp(at, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    request = '"POST /v1/chat/completions HTTP/1.1"'
    took = f'"-" "openai-python/2.8" rt={answered / 25:.3f} bytes={given * 4}'
    return f"10.1.4.{chance.randrange(250)} - - [{moment}] {request} 200 {answered * 5} {took}\n"


def mooncake_line(at: float, given: int, answered: int, chance: random.Random) -> str:
    """A line of a Mooncake trace, with hashes of blocks."""
    first = chance.randrange(2000) * 1000
    blocks = [first + i for i in range(-(-given // BLOCK_TOKENS))]
    entry = {
        "timestamp": round((at - START) * 1000),
        "input_length": given,
        "output_length": answered,
        "hash_ids": blocks,
    }
    return json.dumps(entry) + "\n"


FORMS: dict[str, tuple[str, Line]] = {
    "csv": ("timestamp,model,prompt_tokens,completion_tokens,user,priority\n", csv_line),
    "jsonl": ("", json_line),
    "nginx": ("", nginx_line),
    "mooncake": ("", mooncake_line),
}


def generate(file: Path, form: str, requests: int, *, packed: bool) -> None:
    """Write a log."""
    header, line = FORMS[form]
    chance = random.Random(SEED)
    with gzip.open(file, "wt", compresslevel=6) if packed else file.open("w") as stream:
        stream.write(header)
        for at in arrivals(requests, chance):
            given, answered = int(chance.lognormvariate(6.4, 0.84)) + 1, int(chance.lognormvariate(5.2, 0.73)) + 1
            stream.write(line(at, given, answered, chance))


def measure(file: Path) -> tuple[float, float, float, dict[str, object]]:
    """Wall and processor seconds, MB at most, and the profile."""
    command = [sys.executable, "-m", "servingplan", "profile", "from-log", str(file)]
    command += ["--time-zone", "Europe/Berlin", "--start", "2026-11-02T01:00", "-o", "json"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603  ours
    assert process.stdout is not None
    answer = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, json.loads(answer)


def main() -> None:
    """Print a line for each format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--form", action="append", choices=sorted(FORMS))
    parser.add_argument("--packed", action="store_true")
    options = parser.parse_args()
    for form in options.form or FORMS:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"log.{form}{'.gz' if options.packed else ''}"
            generate(file, form, options.requests, packed=options.packed)
            took, busy, memory, profile = measure(file)
            assert profile["requests"] == options.requests
            size = file.stat().st_size / 1e6
            print(f"{form:10} {size:6.0f} MB  {took:6.2f} s  {busy:6.2f} s of processor  {memory:6.0f} MB", flush=True)


if __name__ == "__main__":
    main()
