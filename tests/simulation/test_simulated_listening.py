"""What is heard on virtual time: rates, shares, silence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from servingplan.planning.drain import Mark
from servingplan.planning.lead import Stages
from servingplan.planning.observation import Draining
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals, Signals
from servingplan.simulation.listening import Listening, Load
from servingplan.simulation.operated import Orders
from servingplan.simulation.pods import Pods

MORNING = datetime(2026, 12, 1, 7, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
BUSY = Load(served_per_s=18.0, running=72.0, waiting=6.0)


def ready(count=3, **options):
    return Pods(start=Stages(), **options).scaled(count, MORNING)


class Ear:
    """Listens every 15 s."""

    def __init__(self, pods):
        self.pods, self.now = pods, MORNING
        self.listening = Listening(stale_after=90 * SECOND, start=MORNING)

    def listen(self, duration, load=BUSY, *, gone=False):
        """For so long; what is heard then."""
        for _ in range(duration // (15 * SECOND)):
            self.now += 15 * SECOND
            self.listening.go_on(self.pods, load, self.now)
            if gone:
                self.listening.gone()
            else:
                self.listening.scrape(self.pods, load, self.now)
                self.listening.poll(self.pods, self.now)
        return self.listening.heard(self.pods, self.now)


def test_the_load_of_all_that_serve_is_heard_as_arrivals_and_in_flight() -> None:
    heard = Ear(ready()).listen(15 * MINUTE)
    assert isinstance(heard, Signals)
    assert heard.arrivals_2m is not None
    assert heard.arrivals_10m is not None
    assert heard.arrivals_2m.value == pytest.approx(18)
    assert heard.arrivals_10m.value == pytest.approx(18)
    assert heard.in_flight == dict.fromkeys(["replica-00001", "replica-00002", "replica-00003"], 26.0)
    assert heard.waiting.value == pytest.approx(6)


def test_whatever_came_before_two_minutes_is_heard_after_two_minutes_alone() -> None:
    ear = Ear(ready())
    early, late = ear.listen(2 * MINUTE), ear.listen(30 * SECOND)
    assert isinstance(early, Signals)
    assert isinstance(late, Signals)
    assert (early.arrivals_2m, late.arrivals_2m is None) == (None, False)


def test_what_queues_up_arrives_too() -> None:
    ear = Ear(ready())
    for second in range(0, 240, 15):
        heard = ear.listen(15 * SECOND, Load(served_per_s=18, running=72, waiting=second))
    assert isinstance(heard, Signals)
    assert heard.arrivals_2m is not None
    assert heard.arrivals_2m.value == pytest.approx(19, abs=0.1)


def test_a_source_that_is_gone_leaves_what_it_said_until_that_is_stale() -> None:
    ear = Ear(ready())
    ear.listen(15 * MINUTE)
    assert isinstance(ear.listen(90 * SECOND, gone=True), Signals)
    silent = ear.listen(15 * SECOND, gone=True)
    assert isinstance(silent, NoSignals)
    assert silent.reason is Reason.METRICS_UNREACHABLE
    again = ear.listen(15 * SECOND)
    assert isinstance(again, Signals)


def test_what_is_on_a_lost_node_does_not_answer_and_is_named() -> None:
    ear = Ear(ready(2, nodes=("a", "b")))
    ear.listen(15 * MINUTE)
    ear.pods = ear.pods.without_node("a", ear.now)
    # For 50 s the cluster takes it for ready; what it said last is stale after 90.
    ear.pods = ear.pods.scaled(3, ear.now)
    heard = ear.listen(45 * SECOND)
    assert isinstance(heard, Signals)
    assert heard.in_flight["replica-00002"] == 39.0
    heard = ear.listen(60 * SECOND)
    assert isinstance(heard, Signals)
    assert set(heard.in_flight) == {"replica-00002", "replica-00003"}


def test_a_replica_that_the_source_does_not_reach_is_missing_beside_the_others() -> None:
    pods, listening = ready(2), Listening(stale_after=90 * SECOND, start=MORNING)
    listening.scrape(pods, BUSY, MORNING, of={"replica-00002"})
    listening.poll(pods, MORNING)
    heard = listening.heard(pods, MORNING)
    assert isinstance(heard, Signals)
    assert (set(heard.in_flight), set(heard.missing)) == ({"replica-00002"}, {"replica-00001"})


def test_a_replica_that_has_left_its_service_still_has_its_last_requests() -> None:
    pods, listening = ready(2), Listening(stale_after=90 * SECOND, start=MORNING)
    first, _ = pods.observed(MORNING).replicas
    mark = Mark(replica=first, draining=Draining(since=MORNING, released=False))
    pods = pods.carried_out(Orders(replicas=2, marks=(mark,)), MORNING)
    listening.scrape(pods, Load(running=10, lingering=3), MORNING)
    listening.poll(pods, MORNING)
    heard = listening.heard(pods, MORNING)
    assert isinstance(heard, Signals)
    assert heard.in_flight == {"replica-00001": 3.0, "replica-00002": 10.0}


def test_while_nobody_is_ready_nobody_can_be_asked() -> None:
    pods = Pods(start=Stages(engine=10 * MINUTE)).scaled(2, MORNING)
    silent = Ear(pods).listen(5 * MINUTE)
    assert isinstance(silent, NoSignals)
    assert silent.reason is Reason.METRICS_AWAITED


def test_nobody_is_heard_before_anybody_is_asked() -> None:
    silent = Listening(stale_after=90 * SECOND, start=MORNING).heard(ready(), MORNING)
    assert isinstance(silent, NoSignals)
    assert silent.reason is Reason.METRICS_AWAITED


def test_a_source_that_reads_one_after_the_other_is_as_old_as_its_oldest() -> None:
    pods, listening = ready(2), Listening(stale_after=90 * SECOND, start=MORNING)
    said = []
    for second, name in enumerate(("replica-00001", "replica-00002")):
        said += listening.scrape(pods, BUSY, MORNING + second * SECOND, of={name})
    listening.poll(pods, MORNING + 2 * SECOND, said)
    heard = listening.heard(pods, MORNING + 2 * SECOND)
    assert isinstance(heard, Signals)
    assert (heard.at, len(heard.in_flight)) == (MORNING, 2)


def test_what_a_source_read_some_seconds_ago_is_that_old() -> None:
    pods, listening = ready(), Listening(stale_after=90 * SECOND, start=MORNING)
    read_at, now = MORNING + 10 * SECOND, MORNING + 15 * SECOND
    listening.go_on(pods, BUSY, read_at)
    listening.scrape(pods, BUSY, read_at)
    listening.go_on(pods, BUSY, now)
    listening.poll(pods, now)
    heard = listening.heard(pods, now)
    assert isinstance(heard, Signals)
    assert heard.at == read_at
