"""Feedback on the wire: its defaults, what it resolves to, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from servingplan.api.resolve import resolve
from servingplan.api.validation import as_kept, form_problems
from servingplan.planning.plan import Auto, Feedback, Foresight, Objective, PrometheusSource, RaiseWhen, ScrapeSource
from support.specs import document

PROMETHEUS: dict[str, Any] = {"prometheus": {}}
SCRAPE: dict[str, Any] = {"scrape": {}}


def feedback(**wire: Any) -> Feedback:
    found = resolve(document(feedback=wire), {}).feedback
    assert found is not None
    return found


def raise_when(**wire: Any) -> RaiseWhen:
    return feedback(scrape={}, raiseWhen=wire).raise_when


def test_without_feedback_the_schedule_alone_decides() -> None:
    assert resolve(document(), {}).feedback is None


def test_what_is_left_out_has_the_defaults_of_the_plan() -> None:
    assert feedback(**PROMETHEUS) == Feedback(
        source=PrometheusSource(name="default"),
        raise_when=RaiseWhen(
            arrivals=True,
            in_flight_per_replica=None,
            tpot_breach=True,
            ttft_breach=True,
            waiting_per_replica=Auto.AUTO,
            queue_time=None,
            preemption_share=Decimal("0.05"),
            rejections=True,
        ),
        max_extra=3,
        stale_after=timedelta(seconds=90),
    )


def test_the_pods_are_asked_at_their_http_port_where_nothing_else_is_stated() -> None:
    assert feedback(**SCRAPE).source == ScrapeSource(port="http", path="/metrics")


def test_everything_that_is_stated_arrives() -> None:
    found = feedback(
        prometheus={"source": "central"},
        maxExtra=7,
        staleAfter="2m30s",
        raiseWhen={
            "arrivals": False,
            "inFlightPerReplica": 40,
            "tpotBreach": False,
            "ttftBreach": False,
            "waitingPerReplica": 12,
            "queueTime": {"p95": "800ms"},
            "preemptionShare": 0.1,
            "rejections": False,
        },
    )
    assert found == Feedback(
        source=PrometheusSource(name="central"),
        raise_when=RaiseWhen(
            arrivals=False,
            in_flight_per_replica=Decimal(40),
            tpot_breach=False,
            ttft_breach=False,
            waiting_per_replica=Decimal(12),
            queue_time=Objective(percentile="p95", limit=timedelta(milliseconds=800)),
            preemption_share=Decimal("0.1"),
            rejections=False,
        ),
        max_extra=7,
        stale_after=timedelta(seconds=150),
    )


@pytest.mark.parametrize("port", ["http", "8000", "a", "metrics-2"])
def test_a_port_has_a_name_or_a_number(port: str) -> None:
    assert feedback(scrape={"port": port, "path": "/engine/metrics"}).source == ScrapeSource(
        port=port, path="/engine/metrics"
    )


def test_zero_turns_a_threshold_off() -> None:
    off = raise_when(waitingPerReplica=0, preemptionShare=0)
    assert (off.waiting_per_replica, off.preemption_share) == (None, None)


def test_no_extra_is_a_check_that_only_reports() -> None:
    assert feedback(scrape={}, maxExtra=0).max_extra == 0


@pytest.mark.parametrize(("stated", "learns"), [({}, True), ({"learn": True}, True), ({"learn": False}, False)])
def test_a_lead_learns_unless_it_is_told_not_to(stated: dict[str, Any], learns: bool) -> None:
    assert resolve(document(leadTime={"declared": "10m", **stated}), {}).lead.learn is learns


@pytest.mark.parametrize(("stated", "minutes"), [({}, 10), ({"stabilization": "25m"}, 25)])
def test_what_was_raised_is_kept_for_the_stabilization(stated: dict[str, Any], minutes: int) -> None:
    assert resolve(document(scaleDown=stated), {}).scale_down.stabilization == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("stated", "price"), [({}, 20), ({"missPrice": 7.5}, Decimal("7.5"))], ids=["by default", "as stated"]
)
def test_foresight_is_asked_for_at_a_price(stated: dict[str, Any], price: Decimal) -> None:
    assert feedback(**PROMETHEUS).foresight is None
    assert feedback(**PROMETHEUS, foresight=stated).foresight == Foresight(miss_price=Decimal(price))


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a number with a fraction of a request": (
        {"raiseWhen": {"waitingPerReplica": 2.5}}, "raiseWhen.waitingPerReplica", "write auto, or a number",
    ),
    "a flag for a number": (
        {"raiseWhen": {"waitingPerReplica": True}}, "raiseWhen.waitingPerReplica", "write auto, or a number",
    ),
    "a list for a number": (
        {"raiseWhen": {"waitingPerReplica": [1]}}, "raiseWhen.waitingPerReplica", "write auto, or a number",
    ),
    "a part of a request in flight": (
        {"raiseWhen": {"inFlightPerReplica": 40.5}}, "raiseWhen.inFlightPerReplica", "write auto, or a number",
    ),
    "in flight: none": (
        {"raiseWhen": {"inFlightPerReplica": 0}}, "raiseWhen.inFlightPerReplica", "write auto, or a number",
    ),
    "a share above all": ({"raiseWhen": {"preemptionShare": 1.1}}, "raiseWhen.preemptionShare", "must be at most 1"),
    "a path without its slash": ({"scrape": {"path": "metrics"}}, "scrape.path", "for example /metrics"),
    "a port in capitals": ({"scrape": {"port": "HTTP"}}, "scrape.port", "for example http or 8000"),
    "a port that ends in a dash": ({"scrape": {"port": "http-"}}, "scrape.port", "for example http or 8000"),
    "an address for a source": (
        {"scrape": None, "prometheus": {"source": "http://prometheus:9090"}}, "prometheus.source", "lower-case letters",
    ),
    "foresight of pods, which remember nothing": ({"foresight": {}}, "foresight", "state prometheus in the place of"),
    "requests that are worth nothing": (
        {"scrape": None, "prometheus": {}, "foresight": {"missPrice": 0}}, "foresight.missPrice", "at least 0.1",
    ),
    "an address beside a source": (
        {"scrape": None, "prometheus": {"url": "http://prometheus:9090"}}, "prometheus.url", "is not a field",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "path", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_one_problem_that_says_what_to_write(changes: dict[str, Any], path: str, says: str) -> None:
    stated = {key: value for key, value in {"scrape": {}, **changes}.items() if value is not None}
    (problem,) = form_problems(as_kept(document(feedback=stated)))
    assert problem.path == f"spec.feedback.{path}"
    assert says in problem.message
