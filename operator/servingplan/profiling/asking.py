"""Asking a Prometheus for a past: range queries, a series in steps.

In: how to reach it, PromQL, a span. Out: plain values, NaN where nothing was kept. Synchronous, for the command line
alone; the operator has its own client.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException

from servingplan.errors import Refused, Unreachable, UsageError

_CHUNK = timedelta(days=7)
"""A query of a week in five minutes has 2,016 points; Prometheus refuses more than 11,000."""

_TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to reach a Prometheus.

    token_file: holds a bearer token. ca: a PEM file of those who may sign its certificate.
    """

    url: str
    token_file: Path | None = None
    ca: Path | None = None


def connected(access: Access) -> PrometheusConnect:
    """A client. Raises UsageError for a token that cannot be read."""
    session = requests.Session()
    if access.ca is not None:
        session.verify = str(access.ca)
    if access.token_file is not None:
        try:
            token = access.token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UsageError(f"--token-file {access.token_file} cannot be read: {error.strerror or error}") from error
        session.headers["Authorization"] = f"Bearer {token}"
    return PrometheusConnect(url=access.url, session=session, timeout=_TIMEOUT_SECONDS)


def range_of(
    server: PrometheusConnect, query: str, start: datetime, end: datetime, step: timedelta
) -> list[dict[str, Any]]:
    """One range query. Raises Unreachable and Refused."""
    try:
        found: list[dict[str, Any]] = server.custom_query_range(query, start, end, f"{step.total_seconds():.0f}s")
    except requests.RequestException as error:
        raise Unreachable(f"Prometheus at {server.url} gives no answer: {error}") from error
    except PrometheusApiClientException as error:
        raise Refused(f"Prometheus at {server.url} refuses: {error}") from error
    except (ValueError, KeyError) as error:
        raise Refused(f"{server.url} does not answer as a Prometheus: check the address") from error
    return found


def one_series(
    server: PrometheusConnect, query: str, start: datetime, end: datetime, step: timedelta, *, option: str
) -> Iterator[tuple[float, float]]:
    """One value an instant, NaN where there is none. Raises Refused for a query with several series.

    option: which one named the query.
    """
    first = start
    while first <= end:
        last = min(end, first + _CHUNK - step)
        found = range_of(server, query, first, last, step)
        if len(found) > 1:
            raise Refused(f"{option} gives {len(found)} series: add them up, as in sum(...)")
        values = {float(at): float(value) for at, value in found[0]["values"]} if found else {}
        while first <= last:
            yield first.timestamp(), values.get(first.timestamp(), math.nan)
            first += step


def numbers(values: Sequence[tuple[float, str]]) -> Iterator[float]:
    """The finite values of a series."""
    return (number for _, text in values if math.isfinite(number := float(text)))
