"""Charts and pages: real images, the same every time, nothing loaded from elsewhere, nothing unescaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from datetime import datetime, time
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from servingplan.errors import Problem
from servingplan.planning.plan import Bounds, Rate, Total
from servingplan.reporting.chart import chart, need_and_total
from servingplan.reporting.html import page
from servingplan.reporting.outlook import coming_days
from support.plans import a_plan, a_window


@pytest.fixture(scope="module")
def outlook():
    stated = a_window(name="stated", days=frozenset({5}), level=Total(replicas=3))
    warning = Problem(path="spec.<b>", reason="Warned", message="<script>alert(1)</script>")
    plan = a_plan(windows=(a_window(), stated), warnings=(warning,))
    return coming_days(plan, datetime(2026, 12, 1, tzinfo=ZoneInfo("Europe/Berlin")), 7)


def test_an_svg_has_text_that_can_be_found_and_is_the_same_every_time(outlook):
    image = chart(outlook, "svg")
    ET.fromstring(image)  # noqa: S314  our own
    assert b"demand (requests/s)" in image
    assert chart(outlook, "svg") == image


def test_a_png_is_a_png(outlook):
    assert chart(outlook, "png").startswith(b"\x89PNG\r\n\x1a\n")


def test_a_page_loads_nothing_and_escapes_what_a_plan_says(outlook):
    text = page(outlook)
    assert not re.search(r"""(src|href)=["'](?!#)""", text)
    assert "@import" not in text
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_a_page_shows_the_figures_of_the_table(outlook):
    text = page(outlook)
    assert f"{outlook.hours.planned:,.1f}" in text
    assert f"{outlook.month.required:,.1f}" in text
    assert "ready before window working-day at 08:00" in text


@pytest.mark.parametrize(
    ("days", "labels"),
    [
        (7, {"Wed 02", "Thu 03"}),
        (2, {"06:00", "18:00", "Wed 02"}),
        (62, {"Tue 01 Dec", "Fri 01 Jan"}),
    ],
)
def test_days_are_named_with_their_weekday(days, labels):
    start = datetime(2026, 12, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    image = chart(coming_days(a_plan(), start, days), "svg").decode()
    assert labels <= set(re.findall(r">([^<>]+)</text>", image))


def test_the_title_names_the_last_day_and_not_the_midnight_after_it(outlook):
    assert "Tue 1 Dec to Mon 7 Dec, Europe/Berlin" in chart(outlook, "svg").decode()


def test_every_colour_of_the_picture_that_a_dark_page_changes_is_in_it(outlook):
    """The page finds what is white, black or grey by what the picture says; its own colours stay."""
    text = page(outlook)
    changed = re.findall(r'svg \[style\*="([^"]+)"\]', text)
    assert changed
    picture = text[text.index("<svg") :]
    assert [colour for colour in changed if colour not in picture] == []


def test_the_need_is_drawn_also_where_it_changes_and_the_total_does_not():
    """Five replicas, of which the reserve is one, and on Tuesday, when more comes than the bounds allow, none."""
    more = a_window(name="more", days=frozenset({1}), level=Rate(requests_per_second=Decimal(25)))
    outlook = coming_days(
        a_plan(windows=(a_window(start=time(0), end=time(0)), more), bounds=Bounds(minimum=1, maximum=5)),
        datetime(2026, 12, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        1,
    )
    assert need_and_total(outlook.course.required.values) == ([4, 5, 4], [5, 5, 5])
    assert set(outlook.course.required_function.values) == {5}
