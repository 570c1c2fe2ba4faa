"""The learner: what it asks a source for, when, and what it keeps when a source fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from servingplan.clients.sources import Source
from servingplan.controller.learner import AFTER_MIDNIGHT, AGAIN_AFTER, AWAITED, SPREAD, Learner
from servingplan.controller.signals import EnginePod, SignalPoller
from servingplan.controller.store import Key
from servingplan.planning.learned import Learned, NotLearned
from servingplan.planning.plan import Foresight, Plan, PrometheusSource
from servingplan.planning.reasons import Reason
from support.foresight import a_learner
from support.live import StillClock
from support.vectors import series

CHAT, CODE = Key("llm", "chat"), Key("llm", "code")
PODS = [EnginePod(name="chat-1", alike="chat-[0-9]+")]
START = timedelta(minutes=10)
NOON = datetime(2026, 3, 16, 12, tzinfo=UTC)
"""A Monday; the fortnight before it begins on Monday the 2nd."""

PER_MINUTE = 300.0


class Past:
    """A Prometheus that remembers `days` days of even arrivals."""

    def __init__(self) -> None:
        self.days, self.status, self.port = 30.0, 200, 0
        self.asked: list[dict[str, str]] = []
        self.meanwhile: Callable[[], object] = lambda: None

    async def query_range(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.asked.append(form)
        self.meanwhile()
        if self.status != 200:
            return web.Response(status=self.status)
        begin, end, step = (float(form[name]) for name in ("start", "end", "step"))
        oldest = NOON.timestamp() - self.days * 86400
        instants = [begin + i * step for i in range(int((end - begin) / step) + 1)]
        known = [(at, str(PER_MINUTE)) for at in instants if at > oldest]
        return web.Response(body=series(known or None).body, content_type="application/json")


@pytest.fixture
async def past() -> AsyncIterator[Past]:
    one, app = Past(), web.Application()
    app.router.add_post("/api/v1/query_range", one.query_range)
    async with TestServer(app) as server:
        assert server.port is not None
        one.port = server.port
        yield one


class School:
    """A learner with a clock that stands still, and whom it told of something new."""

    def __init__(self, past: Past) -> None:
        self.clock, self.told = StillClock(NOON), list[Key]()
        sources = {
            "default": Source(url=f"http://127.0.0.1:{past.port}", matchers={"cluster": "berlin"}),
            "nowhere": Source(url="http://127.0.0.1:1"),
        }
        self.poller = SignalPoller(
            sources=sources,
            clock=self.clock,
            observe=lambda **_: None,
            on_polled=lambda _: None,
            real_now=self.clock.now,
        )
        self.learner = Learner(client=self.poller.client, clock=self.clock, on_learned=self.told.append)

    def known(
        self, key: Key = CHAT, plan: Plan | None = None, pods: Sequence[EnginePod] = PODS
    ) -> tuple[Learned | None, NotLearned | None]:
        return self.learner.known(key, plan or a_learner(), start=START, pods=pods)

    def later(self, plan: Plan) -> None:
        """A second passes, and the plan is another one."""
        self.clock.instant += timedelta(seconds=1)
        self.known(plan=plan)

    async def after(self, time: timedelta = timedelta(0)) -> None:
        self.clock.instant += time
        await self.learner.learn()


@pytest.fixture
async def school(past: Past) -> AsyncIterator[School]:
    one = School(past)
    yield one
    one.learner.close()
    await one.poller.close()


def asking(**changes: object) -> Plan:
    """The plan with another feedback."""
    plan = a_learner()
    assert plan.feedback is not None
    return replace(plan, feedback=replace(plan.feedback, **changes))


NOWHERE = asking(source=PrometheusSource(name="nowhere"))


async def test_a_plan_that_comes_learns_from_a_fortnight_at_once(past, school):
    assert school.known() == (None, AWAITED)

    await school.after()
    learned, trouble = school.known()

    assert trouble is None
    assert learned.days == pytest.approx(14.0)
    assert learned.working == pytest.approx([1.0] * 144)  # 300 a minute are 5/s, what one replica serves
    assert (learned.day, learned.start, learned.at) == (NOON.date(), START, NOON)
    assert school.told == [CHAT]


async def test_it_asks_for_the_plan_s_pods_alone_and_for_few_points_at_once(past, school):
    school.known()
    await school.after()

    begins = NOON - timedelta(days=14, hours=12) + timedelta(minutes=1)
    assert past.asked[0]["start"] == f"{begins.timestamp():.3f}"
    assert past.asked[-1]["end"] == f"{NOON.timestamp():.3f}"
    for form in past.asked:
        assert (float(form["end"]) - float(form["start"])) / float(form["step"]) < 11_000
        assert form["step"] == "60.000"
        for selector in ('cluster="berlin"', 'namespace="llm"', 'pod=~"chat-[0-9]+"', "[60000ms]"):
            assert selector in form["query"]


async def test_then_it_learns_once_a_night_at_a_time_of_its_own(past, school):
    for key in (CHAT, CODE):
        school.known(key)
    await school.after()
    first = school.known()[0]
    midnight = timedelta(hours=12)

    await school.after(midnight)
    assert school.known()[0] is first
    await school.after(AFTER_MIDNIGHT + SPREAD)
    again = school.known()[0]

    assert again.day == first.day + timedelta(days=1)
    assert school.told == [CHAT, CODE, CHAT, CODE]
    await school.after(timedelta(hours=3))
    assert school.known()[0] is again


async def test_what_is_asked_of_foresight_is_learned_at_once(past, school):
    school.known()
    await school.after()
    asked = len(past.asked)

    school.known(plan=asking(max_extra=2))
    await school.after()
    assert len(past.asked) == asked
    school.known(plan=asking(foresight=Foresight(miss_price=Decimal(9))))
    await school.after()

    assert len(past.asked) == 2 * asked


async def test_what_changes_while_it_learns_is_learned_right_after(past, school):
    school.known()
    dearer = asking(foresight=Foresight(miss_price=Decimal(9)))
    past.meanwhile = lambda: school.later(dearer)
    await school.after()
    asked = len(past.asked)
    past.meanwhile = lambda: None

    await school.after()
    assert len(past.asked) == 2 * asked
    await school.after()
    assert len(past.asked) == 2 * asked


async def test_a_source_that_fails_is_asked_again_slowly_and_what_was_learned_stays(past, school):
    school.known()
    await school.after()
    learned, _ = school.known()
    past.status = 503

    await school.after(timedelta(hours=13))
    kept, trouble = school.known()
    asked = len(past.asked)
    await school.after(AGAIN_AFTER / 2)
    assert len(past.asked) == asked
    past.status = 200
    await school.after(AGAIN_AFTER / 2)

    assert kept is learned
    assert trouble.reason is Reason.HISTORY_UNREADABLE
    assert "answered 503" in trouble.message
    assert school.known()[1] is None
    assert school.known()[0].day > learned.day
    assert school.told == [CHAT, CHAT, CHAT]


async def test_where_a_source_gives_no_answer_at_all_the_next_plan_does_not_wait_for_one(school):
    for key in (CHAT, CODE):
        school.known(key, NOWHERE)
    await school.after()

    assert school.known(CHAT, NOWHERE)[1].reason is Reason.HISTORY_UNREADABLE
    assert school.known(CODE, NOWHERE)[1] is AWAITED


@pytest.mark.parametrize(
    ("days", "known", "acts"), [(0.0, 0.0, False), (0.6, 0.1, False), (2.5, 2.0, True)], ids=["none", "hours", "days"]
)
async def test_a_short_past_is_learned_from_as_far_as_it_goes(past, school, days, known, acts):
    past.days = days
    school.known()
    await school.after()
    learned, trouble = school.known()

    assert trouble is None
    assert learned.days == pytest.approx(known, abs=0.01)
    assert (learned.rising is not None) is acts


async def test_without_a_pod_nobody_knows_what_to_ask_for(past, school):
    school.known(pods=())
    await school.after()
    assert past.asked == []

    school.known()
    school.known(pods=())  # all replicas are gone for a moment: their names are known
    await school.after()
    assert school.known(pods=())[0] is not None


async def test_a_plan_that_is_forgotten_is_learned_for_no_more(past, school):
    school.known()
    school.learner.forget(CHAT)
    await school.after()

    assert past.asked == []


async def test_it_learns_while_it_runs(school):
    school.known()
    running = asyncio.create_task(school.learner.run())
    try:
        async with asyncio.timeout(30):
            while school.known()[0] is None:
                await asyncio.sleep(0.05)
    finally:
        running.cancel()
    assert school.told == [CHAT]
