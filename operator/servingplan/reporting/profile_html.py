"""A profile as one self-contained page.

In: a `Profile`, and what people wish of a plan. Out: HTML with the picture and the tables of the terminal inside,
nothing loaded from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from servingplan.planning.plan import WEEKDAYS
from servingplan.profiling.manifests import Wishes
from servingplan.profiling.predictability import Verdict
from servingplan.profiling.profile import Profile
from servingplan.reporting.chart import inline
from servingplan.reporting.pages import render
from servingplan.reporting.profile_chart import week_chart
from servingplan.reporting.profile_rows import (
    CHOICE_HEADS,
    FILE_HEADS,
    LENGTH_HEADS,
    SCHEDULE_HEADS,
    day_lines,
    fact_lines,
    file_rows,
    length_rows,
    predictability_words,
    rate_words,
    reading_lines,
    schedule_rows,
    slot_words,
    title_words,
)


def page(profile: Profile, wishes: Wishes) -> str:
    """The page. Every text of logs and flags is escaped."""
    schedule = schedule_rows(profile, wishes)
    return render(
        "profile.html.j2",
        name=wishes.name,
        title=title_words(profile),
        figures=list(_figures(profile)),
        picture=inline(week_chart(profile, schedule, "svg")) if profile.week else "",
        helps=profile.predictability.verdict in {Verdict.SCHEDULE, Verdict.STEADY},
        predictability=predictability_words(profile.predictability),
        schedule=schedule,
        schedule_heads=SCHEDULE_HEADS,
        choice_heads=CHOICE_HEADS,
        length_heads=LENGTH_HEADS,
        lengths=list(length_rows(profile)),
        facts=list(fact_lines(profile)),
        left_out=list(day_lines(profile)),
        file_heads=FILE_HEADS,
        files=list(file_rows(profile)),
        reading=list(reading_lines(profile)),
    )


def _figures(profile: Profile) -> Iterator[tuple[str, str]]:
    yield f"{profile.requests:,.0f}", "requests"
    yield f"{rate_words(profile.mean_rate)}/s", "on average"
    if (peak := profile.peak) is not None:
        yield f"{rate_words(peak.rate)}/s", f"at the busiest, {WEEKDAYS[peak.weekday]} {slot_words(peak)}"
    if profile.predictability.explained is not None:
        yield f"{max(0.0, profile.predictability.explained):.0%}", "of the last week explained by those before"
