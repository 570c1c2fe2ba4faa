"""A profile in the terminal: the week at a glance, the schedule that it suggests, and how predictable it is.

In: a `Profile`, and what people wish of a plan. Out: renderables. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from servingplan.planning.plan import WEEKDAYS
from servingplan.profiling.manifests import Wishes
from servingplan.profiling.predictability import Verdict
from servingplan.profiling.profile import Profile
from servingplan.profiling.week import WeekSlot
from servingplan.reporting.profile_rows import (
    CHOICE_HEADS,
    FILE_HEADS,
    LENGTH_HEADS,
    SCHEDULE_HEADS,
    by_weekday,
    day_lines,
    demand_words,
    fact_lines,
    file_rows,
    length_rows,
    predictability_words,
    rate_words,
    reading_lines,
    schedule_rows,
    spread_words,
    title_words,
)
from servingplan.reporting.strip import block
from servingplan.reporting.tables import RESOLUTIONS, block_style, hour_scale, indented, plain_table

_MARGIN, _FIGURES = 5, 18
_STYLES = {Verdict.SCHEDULE: "green", Verdict.STEADY: "green"}


def profile_view(profile: Profile, wishes: Wishes) -> RenderableType:
    """Everything that a person needs to judge a workload."""
    parts: list[RenderableType] = [Text(title_words(profile), style="bold"), Text(demand_words(profile)), ""]
    if profile.week:
        parts += [WeekStrip(profile), "", *_schedule(profile, wishes), ""]
    verdict = profile.predictability.verdict
    words = predictability_words(profile.predictability)
    parts.append(Text.assemble(("Predictable? ", "bold"), (words, _STYLES.get(verdict, "yellow"))))
    if rows := list(length_rows(profile)):
        parts += ["", _table(LENGTH_HEADS, rows, numbers=LENGTH_HEADS[1:])]
    parts += _lines(fact_lines(profile))
    if lines := _lines(day_lines(profile)):
        parts += ["", Text("Left out", style="bold"), *lines]
    if rows := list(file_rows(profile)):
        parts += ["", _table(FILE_HEADS, rows, numbers=FILE_HEADS[2:])]
    return Group(*parts, *_lines(reading_lines(profile)))


class WeekStrip:
    """The picture: a row of blocks a weekday, the highest for the busiest. As fine as width and profile allow."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rows, with the hours above."""
        rows = by_weekday(self._profile)
        width = options.max_width - _MARGIN - _FIGURES
        cells = next((each for each in RESOLUTIONS if each <= width and each <= len(rows[0])), RESOLUTIONS[-1])
        peak = max(slot.rate for slot in self._profile.week)
        yield Text(" " * _MARGIN + hour_scale(cells) + "  most/s".rjust(8) + "weeks".rjust(8), style="dim")
        for weekday, slots in zip(WEEKDAYS, rows, strict=True):
            yield _row(weekday, slots, cells, peak)


def _row(weekday: str, slots: Sequence[WeekSlot], cells: int, peak: float) -> Text:
    text = Text(weekday.ljust(_MARGIN))
    for cell in range(cells):
        first, last = cell * len(slots) // cells, -(-(cell + 1) * len(slots) // cells)
        share = max(slot.rate for slot in slots[first:last]) / peak if peak else 0.0
        text.append(block(share), block_style(share))
    most = rate_words(max(slot.rate for slot in slots))
    return text.append(f"{most:>10}{spread_words(slots):>8}")


def _schedule(profile: Profile, wishes: Wishes) -> list[RenderableType]:
    found = schedule_rows(profile, wishes)
    if found is None:
        return []
    choices = _table(CHOICE_HEADS, found.choices, numbers=CHOICE_HEADS)
    heading = Text.assemble(("Windows and what they cost", "bold"), (f", in {found.unit}", "dim"))
    return [_table(SCHEDULE_HEADS, found.rows, numbers=SCHEDULE_HEADS[3:]), "", heading, indented(choices)]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[str]) -> RenderableType:
    table = plain_table(*heads, numbers=numbers)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _lines(lines: Iterable[str]) -> list[RenderableType]:
    return [indented(Text(line)) for line in lines]
