"""The week of a profile as a picture: each slot by its busiest five minutes, and the suggested schedule above it.

In: a `Profile`, and the schedule that it suggests. Out: SVG or PNG bytes, the same for the same profile. Imported only
where a picture is asked for: matplotlib takes a second to load.
"""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.figure import Figure

from servingplan.planning.plan import WEEKDAYS
from servingplan.profiling.manifests import week_of
from servingplan.profiling.profile import Profile, busiest_is_known
from servingplan.profiling.windows import levels_of
from servingplan.reporting.chart import DOTS_PER_INCH, SETTINGS, WIDTH_INCHES, saved
from servingplan.reporting.profile_rows import ScheduleRows, title_words

_HEIGHT_INCHES = 3.8
_DEMAND, _SCHEDULE = "#3b6ea5", "#d97706"
_DAY = 24
_ROOM = 1.15
"""Above the highest: for the legend."""


def week_chart(profile: Profile, found: ScheduleRows | None, form: str) -> bytes:
    """The picture as ``svg`` or ``png``, with what `schedule_rows` found. Raises InputError where there is no week."""
    week = week_of(profile)
    hours = [slot.weekday * _DAY + slot.hour + slot.minute / 60 for slot in week]
    edges, rates = [*hours, 7 * _DAY], [slot.rate for slot in week]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH_INCHES, _HEIGHT_INCHES), layout="constrained", dpi=DOTS_PER_INCH)
        axes = figure.subplots()
        lowest, highest = [slot.lowest for slot in week], [slot.highest for slot in week]
        spread = axes.fill_between(edges, [*lowest, lowest[-1]], [*highest, highest[-1]], step="post")
        spread.set(color=_DEMAND, alpha=0.2, linewidth=0, label="lowest to highest of the weeks")
        what = "busiest five minutes" if busiest_is_known(profile) else "mean of a step"
        axes.step(edges, [*rates, rates[-1]], where="post", color=_DEMAND, linewidth=1.1, label=what)
        if found is not None:
            stated = levels_of(found.chosen, profile.slot_minutes)
            axes.step(edges, [*stated, stated[-1]], where="post", color=_SCHEDULE, linewidth=1.4, label="schedule")
        axes.set_xlim(0, 7 * _DAY)
        axes.set_ylim(0, max(axes.get_ylim()[1], 1e-9) * _ROOM)
        axes.set_ylabel("requests/s")
        axes.set_xticks([day * _DAY for day in range(7)], list(WEEKDAYS), ha="left")
        axes.legend(loc="upper right", ncols=3, frameon=False)
        figure.suptitle(title_words(profile), fontsize=12, fontweight="bold")
        return saved(figure, form)
