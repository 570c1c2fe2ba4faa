"""Events: repeated ones are a series, memory is bounded, and nothing that fails reaches the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from servingplan.clients.references import ObjectRef
from servingplan.controller.events import EventLimits, EventRecorder, EventType
from servingplan.errors import NotFound, Refused

PLAN = {
    "apiVersion": "servingplan.dev/v1alpha1",
    "kind": "ServingPlan",
    "metadata": {"name": "chat", "namespace": "llm", "uid": "u-1", "resourceVersion": "7"},
}


class Posted:
    """Keeps what was posted."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.patches = 0
        self.error: Exception | None = None

    async def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        self.events[manifest["metadata"]["name"]] = dict(manifest)
        return dict(manifest)

    async def merge_patch(self, ref: ObjectRef, body: Mapping[str, Any]) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        if ref.name not in self.events:
            raise NotFound(f"{ref} expired")
        self.patches += 1
        self.events[ref.name] |= body
        return self.events[ref.name]

    @property
    def only(self) -> dict[str, Any]:
        (event,) = self.events.values()
        return event


class Story:
    """A recorder on a clock that the test moves."""

    def __init__(self, **limits: Any) -> None:
        self.now_s = 1000.0
        self.posted = Posted()
        self.recorder = EventRecorder(
            client=self.posted,
            controller="servingplan.dev/operator",
            instance="operator-0",
            limits=EventLimits(**limits),
            monotonic=lambda: self.now_s,
        )

    async def tell(self, note: str = "5 replicas for working-day", *, plan: Mapping = PLAN, after_s: float = 0) -> None:
        self.now_s += after_s
        self.recorder.record(plan, reason="Scaled", note=note, action="Scale")
        await self.recorder.flush()


async def test_an_event_says_what_happened_to_which_object() -> None:
    story = Story()
    story.recorder.record(PLAN, reason="RampAtRisk", note="2 of 5", action="Scale", event_type=EventType.WARNING)
    await story.recorder.flush()
    event = story.posted.only
    assert (event["type"], event["reason"], event["note"], event["action"]) == (
        "Warning",
        "RampAtRisk",
        "2 of 5",
        "Scale",
    )
    assert event["regarding"] == {
        "apiVersion": "servingplan.dev/v1alpha1",
        "kind": "ServingPlan",
        "name": "chat",
        "namespace": "llm",
        "uid": "u-1",
        "resourceVersion": "7",
    }
    assert event["metadata"]["namespace"] == "llm"
    assert "series" not in event


async def test_a_repetition_within_the_window_becomes_a_series() -> None:
    story = Story(window_s=600, series_every_s=60)
    for _ in range(3):
        await story.tell(after_s=100)
    assert story.posted.only["series"]["count"] == 3


async def test_a_series_is_updated_at_most_once_a_minute_and_counts_all() -> None:
    story = Story(window_s=600, series_every_s=60)
    for _ in range(121):
        await story.tell(after_s=1)
    assert story.posted.patches == 2
    assert story.posted.only["series"]["count"] == 121


async def test_after_the_window_it_is_a_new_event() -> None:
    story = Story(window_s=600)
    await story.tell()
    await story.tell(after_s=601)
    assert len(story.posted.events) == 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"note": "2 replicas"}, id="note"),
        pytest.param({"plan": {**PLAN, "metadata": {**PLAN["metadata"], "uid": "u-2"}}}, id="object"),
    ],
)
async def test_what_differs_is_an_event_of_its_own(other: dict) -> None:
    story = Story()
    await story.tell()
    await story.tell(**other)
    assert len(story.posted.events) == 2


async def test_a_series_whose_event_expired_is_posted_anew() -> None:
    story = Story(window_s=7200, series_every_s=60)
    await story.tell()
    story.posted.events.clear()
    await story.tell(after_s=3700)
    assert story.posted.only["series"]["count"] == 2


@pytest.mark.parametrize("error", [Refused("no rights"), RuntimeError("a defect")], ids=["refused", "defect"])
async def test_a_post_that_fails_harms_nobody_and_is_tried_with_the_next_repetition(error: Exception) -> None:
    story = Story()
    story.posted.error = error
    await story.tell()
    story.posted.error = None
    await story.tell()
    assert story.posted.only["series"]["count"] == 2


async def test_memory_is_bounded_by_the_number_of_series() -> None:
    story = Story(kept=10)
    for index in range(100):
        await story.tell(f"note {index}")
    assert len(story.recorder._series) == 10


async def test_what_waits_for_the_server_is_bounded_and_recording_never_waits() -> None:
    story = Story(waiting=5)
    for index in range(100):
        story.recorder.record(PLAN, reason="Scaled", note=f"note {index}", action="Scale")
    await story.recorder.flush()
    assert len(story.posted.events) == 5


async def test_the_background_task_posts_what_is_recorded() -> None:
    story = Story()
    task = asyncio.create_task(story.recorder.run())
    story.recorder.record(PLAN, reason="Scaled", note="5", action="Scale")
    async with asyncio.timeout(10):
        while not story.posted.events:
            await asyncio.sleep(0)
    task.cancel()
    assert story.posted.only["note"] == "5"


async def test_limits_of_the_api_server_are_kept_in_bytes() -> None:
    story = Story()
    plan = {**PLAN, "metadata": {**PLAN["metadata"], "name": "n" * 253}}
    await story.tell("ü" * 2000, plan=plan)
    event = story.posted.only
    assert len(event["note"].encode()) <= 1024
    assert len(event["metadata"]["name"]) <= 253


async def test_an_object_without_namespace_has_its_events_in_default() -> None:
    story = Story()
    await story.tell(plan={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-0", "uid": "n"}})
    assert story.posted.only["metadata"]["namespace"] == "default"
