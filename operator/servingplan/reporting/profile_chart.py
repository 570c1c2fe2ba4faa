"""The week of a profile as a picture: each slot by its busiest five minutes, and the suggested schedule above it.

In: a `Profile`, and what people wish of a plan. Out: SVG or PNG bytes, the same for the same profile. Imported only
where a picture is asked for: matplotlib takes a second to load.
"""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.figure import Figure

from servingplan.planning.plan import WEEKDAYS
from servingplan.profiling.manifests import Wishes, schedules_of
from servingplan.profiling.profile import Profile, busiest_is_known
from servingplan.profiling.windows import levels_of
from servingplan.reporting.chart import DOTS_PER_INCH, SETTINGS, WIDTH_INCHES, saved
from servingplan.reporting.profile_rows import schedule_rows, title_words

_HEIGHT_INCHES = 3.8
_DEMAND, _SCHEDULE = "#3b6ea5", "#d97706"
_DAY = 24
_ROOM = 1.15
"""Above the highest: for the legend."""


def week_chart(profile: Profile, wishes: Wishes, form: str) -> bytes:
    """The picture as ``svg`` or ``png``. Raises InputError where the profile has no week."""
    schedules_of(profile, None)
    hours = [slot.weekday * _DAY + slot.hour + slot.minute / 60 for slot in profile.week]
    edges, rates = [*hours, 7 * _DAY], [slot.rate for slot in profile.week]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH_INCHES, _HEIGHT_INCHES), layout="constrained", dpi=DOTS_PER_INCH)
        axes = figure.subplots()
        lowest, highest = [slot.lowest for slot in profile.week], [slot.highest for slot in profile.week]
        spread = axes.fill_between(edges, [*lowest, lowest[-1]], [*highest, highest[-1]], step="post")
        spread.set(color=_DEMAND, alpha=0.2, linewidth=0, label="lowest to highest of the weeks")
        what = "busiest five minutes" if busiest_is_known(profile) else "mean of a step"
        axes.step(edges, [*rates, rates[-1]], where="post", color=_DEMAND, linewidth=1.1, label=what)
        found = schedule_rows(profile, wishes)
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
