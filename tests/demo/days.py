"""Stories and records for tests: the worked example, with fields replaced, as if it had been watched."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from servingplan.api.resolve import resolve
from servingplan.controller.clock import AcceleratedClock
from servingplan.demo.record import Record
from servingplan.demo.story import Story, tell
from servingplan.demo.watching import Snapshot
from servingplan.planning.observation import Stage
from servingplan.rendering.times import wire_time
from support.specs import document

BERLIN = ZoneInfo("Europe/Berlin")
CLOCK = AcceleratedClock(
    start=datetime(2026, 11, 30, 7, 15, tzinfo=BERLIN),
    since=datetime(2026, 11, 29, 20, tzinfo=BERLIN),
    factor=Fraction(60),
)


def local(text: str) -> datetime:
    """An instant by its wall time in Berlin."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


def story_of(now: str = "2026-11-29T20:00", **spec: Any) -> Story:
    """The story of the worked example, with fields replaced."""
    return tell(resolve(document(**spec), {}), local(now))


def snapshot(time: str, *, asked: int, ready: int, starting: int = 0, status: Any = None, events: Any = ()) -> Snapshot:
    """What is seen at a wall time of the Monday."""
    stages = {stage: count for stage, count in ((Stage.READY, ready), (Stage.ENGINE, starting)) if count}
    return Snapshot(
        time=local(f"2026-11-30T{time}"),
        document={"status": {"desiredReplicas": asked, **(status or {})}},
        stages=stages,
        events=tuple(events),
    )


def scaled(time: str, before: int, after: int) -> dict[str, Any]:
    """A status whose last change of replicas was at a wall time of the Monday."""
    at = wire_time(local(f"2026-11-30T{time}"))
    return {"lastScale": {"time": at, "from": before, "to": after, "because": "ready before window working-day"}}


def watched(*, ready_at: str | None = "07:57", until: str = "20:29", story: Story | None = None) -> Record:
    """A day as it goes, looked at every minute of its parts; `ready_at`: when the last of the five is ready."""
    story = story or story_of()
    record = Record(story)
    course = story.outlook.course
    for part in story.parts:
        now = part.start
        while now < min(part.end, local(f"2026-11-30T{until}")):
            asked = course.asked_function.at(now)
            late = ready_at is None or now < local(f"2026-11-30T{ready_at}")
            ready = min(asked, 2) if late else asked
            status = scaled("07:48", 2, 5) if asked == 5 else {}
            text = f"{now.astimezone(BERLIN):%H:%M}"
            record.take(snapshot(text, asked=asked, ready=ready, starting=asked - ready, status=status), CLOCK)
            now += timedelta(minutes=1)
    return record
