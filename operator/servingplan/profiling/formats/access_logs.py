"""Access logs of nginx, Envoy and vLLM: one request a line, of which most is not about tokens.

nginx writes a line when the answer ends. Where it logs the time that took (``rt=`` or ``request_time=``), the request
is counted at its arrival.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from servingplan.profiling.formats.format import Context, Passed, passed
from servingplan.profiling.instants import NoInstant, clf_minute
from servingplan.profiling.request import Logged, Request

NGINX = re.compile(
    r"\S+ \S+ (?P<user>\S+) \[(?P<minute>[^\]:]+:\d\d:\d\d):(?P<second>\d\d) (?P<offset>[+-]\d{4})\] "
    r'"(?P<method>[A-Z]+) (?P<path>\S+)[^"]*" (?P<status>\d{3}) (?P<rest>.*)'
)
_TOOK = re.compile(r"\b(?:rt|request_time)[=:]\"?(\d+(?:\.\d+)?)")

ENVOY = re.compile(r'\[(?P<time>\d{4}-[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>\S+)[^"]*" (?P<status>\d{3}) ')

_STAMP = r"(?:(?P<stamp>\d{4}-\d\d-\d\dT\S+) (?:std(?:out|err) [FP] )?)?"
"""What ``kubectl logs --timestamps`` and container runtimes write before each line."""

_PROCESS = r"(?:\(\w+[^)]*\) )?"
VLLM_ACCESS = re.compile(
    rf"{_STAMP}{_PROCESS}INFO:\s+\S+ - \"(?P<method>[A-Z]+) (?P<path>\S+) HTTP/[\d.]+\" (?P<status>\d{{3}})"
)
VLLM_REQUEST = re.compile(rf"{_STAMP}{_PROCESS}INFO (?P<local>\d\d-\d\d \d\d:\d\d:\d\d) \[[^\]]*\] Received request ")


def nginx(context: Context) -> Callable[[str], Logged | Passed]:
    """Reads a line of the combined format, with anything behind it."""

    def parse(line: str) -> Logged | Passed:
        found = NGINX.match(line)
        if found is None:
            raise ValueError("it is no line of nginx's combined format")
        user, minute, second, offset, method, path, status, rest = found.groups()
        if (why := passed(context, path=path, status=int(status), method=method)) is not None:
            return why
        took = _TOOK.search(rest)
        at = clf_minute(f"{minute}:00 {offset}") + int(second) - (float(took[1]) if took else 0.0)
        return Request(at, None, None, "" if user == "-" else user)

    return parse


def envoy(context: Context) -> Callable[[str], Logged | Passed]:
    """Reads a line of Envoy's default text format."""

    def parse(line: str) -> Logged | Passed:
        found = ENVOY.match(line)
        if found is None:
            raise ValueError("it is no line of Envoy's default format")
        time, method, path, status = found.groups()
        if (why := passed(context, path=path, status=int(status), method=method)) is not None:
            return why
        return Request(context.instants.of_iso(time))

    return parse


def vllm_access(context: Context) -> Callable[[str], Logged | Passed]:
    """Reads a line of a pod's log that says which request was answered. vLLM writes no time into it."""

    def parse(line: str) -> Logged | Passed:
        found = VLLM_ACCESS.match(line)
        if found is None:
            return Passed.OTHER_LINE
        if (
            why := passed(context, path=found["path"], status=int(found["status"]), method=found["method"])
        ) is not None:
            return why
        if found["stamp"] is None:
            raise NoInstant("it has no time: read the log with kubectl logs --timestamps")
        return Request(context.instants.of_iso(found["stamp"]))

    return parse


def vllm_requests(context: Context) -> Callable[[str], Logged | Passed]:
    """Reads a line that vLLM writes with --enable-log-requests, when the request arrives."""

    def parse(line: str) -> Logged | Passed:
        found = VLLM_REQUEST.match(line)
        if found is None:
            return Passed.OTHER_LINE
        if found["stamp"] is not None:
            return Request(context.instants.of_iso(found["stamp"]))
        if context.year is None:
            raise NoInstant("vLLM writes no year: state it with --year, or read the log with kubectl logs --timestamps")
        wall = datetime.strptime(f"{context.year}-{found['local']}", "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007  read in the zone
        return Request(context.instants.of_wall(wall))

    return parse
