"""The live view: one calm screen, every thing always at its place.

In: a record, and the size of the terminal. Out: exactly as many lines as fit, none wider than the terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from decimal import Decimal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from servingplan.demo.narration import caption
from servingplan.demo.picture import LABEL, Chart, Mark, chart
from servingplan.demo.record import Line, Record, Tone
from servingplan.planning.observation import Stage
from servingplan.planning.units import format_rate
from servingplan.reporting.local import clock_time, short_date

NARROWEST, LOWEST = 60, 22
"""A terminal that is smaller gets plain lines."""

MARGIN = 9
"""Columns left of the chart."""

CHART_HEIGHT = 10
"""At most so many rows of replicas; in a low terminal fewer."""

FIXED_LINES = 16
"""Everything but the chart's rows and the feed."""

FEED_LINES = 3
"""At least so many lines of the feed."""

_CELLS: Mapping[Mark, tuple[str, str]] = {
    Mark.READY: ("█", "green"),
    Mark.EARLY: ("▓", "cyan"),
    Mark.STARTING: ("▒", "yellow"),
    Mark.MISSING: ("!", "bold white on red"),
    Mark.PLANNED: ("░", "bright_black"),
    Mark.AHEAD: ("·", "bright_black"),
    Mark.EMPTY: (" ", ""),
    Mark.BREAK: (" ", ""),
}
_LEGEND = (
    (Mark.READY, "ready"),
    (Mark.EARLY, "ready ahead"),
    (Mark.STARTING, "starting"),
    (Mark.PLANNED, "planned"),
    (Mark.AHEAD, "lead, trail"),
)
_BARS = "▁▂▃▄▅▆▇█"
_TONES = {Tone.PLAIN: "", Tone.GOOD: "bold green", Tone.BAD: "bold red", Tone.DEMO: "magenta"}
_WORDS = {
    Stage.SCHEDULING: "to be scheduled",
    Stage.PULLING: "pulling",
    Stage.ENGINE: "loading",
    Stage.READY: "ready",
    Stage.TERMINATING: "leaving",
}


class Screen:
    """The whole view as one renderable; factor: how much faster the demo clock runs."""

    def __init__(self, record: Record, *, factor: float) -> None:
        self._record = record
        self._factor = factor

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As many lines as the terminal has."""
        width, height = options.max_width, options.height or console.height
        lines = self.lines(width, height)
        for i, line in enumerate(lines):
            line.truncate(width, overflow="ellipsis")
            line.no_wrap = True
            # The last line ends without a line break, or the terminal would scroll.
            line.end = "" if i == len(lines) - 1 else "\n"
            yield line

    def lines(self, width: int, height: int) -> list[Text]:
        """The lines from the top down, `height` of them."""
        record = self._record
        rows = max(1, min(CHART_HEIGHT, height - FIXED_LINES - FEED_LINES))
        picture = chart(record, width=width - MARGIN - 1, height=rows)
        top = [self._title(width), *_two_lines(caption(record), width, "bold"), Text()]
        middle = [*_demand(picture), *_rows(picture), *_axis(picture, record), _legend(), Text()]
        state = [_numbers(record), _pods(record), _next(record), *_attention(record, width), Text()]
        free = max(0, height - len(top) - len(middle) - len(state) - 1)
        footer = Text(" Ctrl-C ends the demo and removes all of it", style="bright_black")
        return [*top, *middle, *state, *_feed(record, free), footer][:height]

    def _title(self, width: int) -> Text:
        story, now = self._record.story, self._record.now
        local = now.astimezone(story.zone)
        left = f" servingplan demo  {story.plan.key}"
        right = f"demo clock {short_date(local.date())} {local:%H:%M}  {self._factor:g}x "
        space = width - len(left) - len(right)
        if space < 1:
            left, space = left[: max(0, width - len(right) - 1)], 1
        return Text(left + " " * space + right, style="bold reverse")


def _demand(picture: Chart) -> list[Text]:
    highest = max((rate for rate in picture.demand if rate), default=Decimal(1))
    line = Text("  demand ", style="bright_black")
    for column, rate in zip(picture.columns, picture.demand, strict=True):
        if column.is_break or rate is None:
            line.append(" ")
            continue
        share = float(rate / highest)
        line.append(_BARS[max(0, round(share * len(_BARS)) - 1)], style="blue")
    return [line]


def _rows(picture: Chart) -> list[Text]:
    lines = []
    for level, marks in picture.rows:
        line = Text(f"{level:>7} ┤", style="bright_black")
        for mark in marks:
            character, style = _CELLS[mark]
            line.append(character, style=style)
        lines.append(line)
    return lines


def _axis(picture: Chart, record: Record) -> list[Text]:
    ticks = {at for at, _ in picture.labels}
    axis = Text("replicas└", style="bright_black")
    for i, column in enumerate(picture.columns):
        if i == picture.now:
            axis.append("▲", style="bold")
        else:
            axis.append("·" if column.is_break else "┬" if i in ticks else "─")
    times = [" "] * (len(picture.columns) + MARGIN + LABEL)
    for at, instant in picture.labels:
        times[MARGIN + at : MARGIN + at + LABEL] = clock_time(instant, record.story.zone)[:LABEL]
    width = len(picture.columns) + MARGIN
    return [axis, Text("".join(times)[:width], style="bright_black")]


def _legend() -> Text:
    line = Text(" " * MARGIN)
    for mark, words in _LEGEND:
        character, style = _CELLS[mark]
        line.append(character, style=style).append(f" {words}   ", style="bright_black")
    return line


def _numbers(record: Record) -> Text:
    required = record.required
    line = Text(" ")
    demand = f"{format_rate(required.rate)}/s" if required.rate is not None else "stated"
    for name, value in (("demand", demand), ("required", required.replicas), ("asked", record.asked)):
        line.append(f"{name} ", style="bright_black").append(f"{value!s:<5}", style="bold").append("  ")
    good = record.ready >= required.replicas
    line.append("ready ", style="bright_black").append(str(record.ready), style="bold green" if good else "bold red")
    return line


def _pods(record: Record) -> Text:
    stages = record.stages
    words = ", ".join(f"{stages[stage]} {_WORDS[stage]}" for stage in Stage if stages.get(stage))
    return Text.assemble((" pods ", "bright_black"), words or "none")


def _next(record: Record) -> Text:
    upcoming = record.last.status.get("nextChange") if record.last is not None else None
    words = f"{upcoming['summary']} ({upcoming['because']})" if upcoming else "nothing comes"
    return Text.assemble((" next ", "bright_black"), words)


def _attention(record: Record, width: int) -> list[Text]:
    """Two lines: conditions that are not good, else the ramp's own, else that all is well."""
    conditions = record.conditions
    bad = [condition for condition in conditions if not condition.good]
    shown = next(iter(bad), None) or next((c for c in conditions if c.type == "ReadyByNextRamp"), None)
    if shown is None:
        text, style = "no conditions yet", "bright_black"
    else:
        others = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        text = f"{shown.type} {shown.status}: {shown.message}{others}"
        style = "green" if shown.good else "yellow" if shown.status == "Unknown" else "red"
    return _two_lines(text, width, style)


def _two_lines(text: str, width: int, style: str) -> list[Text]:
    lines = textwrap.wrap(text, width - 2, max_lines=2, placeholder=" …")
    return [Text(f" {line}", style=style) for line in (*lines, "", "")[:2]]


def _feed(record: Record, free: int) -> list[Text]:
    lines = [feed_line(record, line) for line in record.feed[-free:]] if free else []
    return [*lines, *(Text() for _ in range(free - len(lines)))]


def feed_line(record: Record, line: Line) -> Text:
    """One line of the feed with its time on the demo clock."""
    local = line.time.astimezone(record.story.zone)
    return Text.assemble((f" {local:%H:%M}  ", "bright_black"), (line.text, _TONES[line.tone]))


def fits(width: int, height: int) -> bool:
    """Whether a terminal is large enough."""
    return width >= NARROWEST and height >= LOWEST
