"""Where a server is, and what it computes on, as far as this machine can tell.

In: its address. Out: values for a `Fingerprint`; None for what cannot be read, as without ``nvidia-smi``.
"""

from __future__ import annotations

import asyncio
import ipaddress
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

TIMEOUT_S = 10.0
"""A driver that hangs must not hold a ramp up."""


class Route(StrEnum):
    """What kind of address the requests were sent to."""

    LOCAL = "Local"
    SERVICE = "Service"
    REMOTE = "Remote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """accelerator: name of the GPU, of each kind if there are several. driver: its version."""

    accelerator: str | None = None
    driver: str | None = None


def route(url: str) -> Route:
    """The kind of an address: this machine, a Service of a cluster, another host."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return Route.LOCAL if ipaddress.ip_address(host).is_loopback else Route.REMOTE
    if host == "localhost":
        return Route.LOCAL
    return Route.SERVICE if "svc" in host.split(".")[1:] else Route.REMOTE


async def machine(url: str, *, program: str = "nvidia-smi") -> Machine:
    """What the server computes on, where an engine runs here; a port that is forwarded leads elsewhere."""
    if route(url) is not Route.LOCAL or not await asyncio.to_thread(_an_engine_runs_here):
        return Machine()
    query = ("--query-gpu=name,driver_version", "--format=csv,noheader")
    try:
        process = await asyncio.create_subprocess_exec(
            program, *query, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return Machine()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            text, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        return Machine()
    return _read(text.decode("utf-8", "replace")) if process.returncode == 0 else Machine()


def _read(text: str) -> Machine:
    rows = [[value.strip() for value in line.split(",")] for line in text.splitlines() if line.count(",") == 1]
    names, drivers = sorted({name for name, _ in rows}), sorted({driver for _, driver in rows})
    return Machine(accelerator=", ".join(names) or None, driver=", ".join(drivers) or None)


def _an_engine_runs_here() -> bool:
    """Whether a process of this machine is vLLM, by its command line."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"vllm" in file.read_bytes().lower():
                return True
    return False
