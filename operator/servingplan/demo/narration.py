"""The sentence above the chart: what a newcomer looks at just now. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from servingplan.demo.record import Record, minutes
from servingplan.demo.story import Part, Story
from servingplan.planning.units import format_duration
from servingplan.reporting.local import clock_time


def caption(record: Record) -> str:
    """What happens now, in a sentence or two."""
    story, now = record.story, record.now
    if now < story.rise.start:
        return _before(story, record)
    if now < story.ramp_at:
        return _lead(record)
    if story.fall is None or now < story.fall.start:
        return _between(record)
    if now < story.fall.end:
        return _falling(story)
    return f"The fall is over: {_replicas(record.ready)}, until the next rise."


def _before(story: Story, record: Record) -> str:
    lead, ramp = format_duration(story.outlook.course.lead), clock_time(story.ramp_at, story.zone)
    needed, after = record.required.replicas, story.rise.after
    return (
        f"{_replicas(needed)} {_are(needed)} enough until {ramp}, when {after} {_are(after)} required. They are asked "
        f"for at {clock_time(story.rise.start, story.zone)}, the lead time of {lead} earlier."
    )


def _lead(record: Record) -> str:
    story, ramp = record.story, clock_time(record.story.ramp_at, record.story.zone)
    if record.ready_at is not None:
        at, margin = hour_and_minute(record.ready_at, story.zone), minutes(story.ramp_at - record.ready_at)
        return f"All {story.rise.after} are ready at {at}, {margin:.0f} minutes before the ramp at {ramp}."
    return (
        f"The lead: {story.rise.after} are asked for, and starting takes minutes. {record.ready} {_are(record.ready)} "
        f"ready; the ramp is at {ramp}."
    )


def _between(record: Record) -> str:
    story, ramp = record.story, clock_time(record.story.ramp_at, record.story.zone)
    if not record.on_time:
        return f"The ramp at {ramp} was missed: {record.ready} of {_replicas(story.rise.after)} ready."
    held = f"The ramp at {ramp} found all {story.rise.after} replicas ready."
    if record.restarts and story.fall is not None:
        at = clock_time(story.fall.start, story.zone)
        return f"The operator was restarted, and nothing changed: still {record.ready}. The fall begins at {at}."
    return f"{held} The demand rises, and nobody waits."


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _falling(story: Story) -> str:
    rules = story.plan.scale_down
    step = "one replica leaves" if rules.step == 1 else f"{rules.step} replicas leave"
    return f"The fall: never early, and in steps. At once and then every {format_duration(rules.every)}, {step}."


def hour_and_minute(instant: datetime, zone: ZoneInfo) -> str:
    """``07:56``: what was seen happened at some second, and nobody reads that."""
    return f"{instant.astimezone(zone):%H:%M}"


def skip_words(story: Story, before: Part, after: Part) -> str:
    """Why the clock is set forward between two parts."""
    hours = (after.start - before.end) / timedelta(hours=1)
    return f"the clock skips {hours:.0f} quiet hours to {clock_time(after.start, story.zone)}, the operator restarts"
