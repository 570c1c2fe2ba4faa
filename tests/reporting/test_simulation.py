"""A simulation as rows, page and Markdown: the same figures, nothing rounded to perfection, nothing unescaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest

from servingplan.planning.plan import Bounds
from servingplan.reporting.simulation import Origin, Simulated, simulation_document
from servingplan.reporting.simulation_chart import course_chart, week_chart
from servingplan.reporting.simulation_html import page
from servingplan.reporting.simulation_markdown import simulation_markdown
from servingplan.reporting.simulation_rows import bound_words, main_columns, scenario_columns, share_words, title_words
from servingplan.simulation.comparison import compare
from servingplan.simulation.rivals import entrants
from servingplan.simulation.scenarios.catalogue import SCENARIOS
from servingplan.simulation.scenarios.scene import Severity
from simulation.played import a_world
from support.plans import a_plan

EVIL = "<script>alert(1).csv"


def played(plan, *hours, gpu_hour=None, files=()):
    one = a_world(*hours, plan=plan)
    cron = np.zeros(len(one.lost), np.float32)
    scenarios = list(SCENARIOS.values())
    comparison = compare(one, scenarios, Severity(), entrants(plan, cron), tell=lambda _what, _share: None)
    return Simulated(comparison=comparison, origin=Origin(files=files), gpu_hour=gpu_hour)


@pytest.fixture(scope="module")
def found():
    return played(a_plan(), 2, 2, 18, 18, 2, gpu_hour=Decimal(2), files=(f"/logs/{EVIL}",))


@pytest.mark.parametrize(
    ("share", "words"),
    [(1.0, "100.00 %"), (0.99999, "> 99.99 %"), (0.98765, "98.77 %"), (0.0, "0.00 %"), (1e-6, "< 0.01 %"), (None, "-")],
)
def test_nothing_is_rounded_to_perfection_nor_to_nothing(share, words):
    assert share_words(share) == words


def test_the_best_of_a_column_is_marked_and_none_where_all_are_alike(found):
    columns = {column.head: column for column in main_columns(found)}
    hours = [result.recorded.hours for result in found.comparison.results]

    assert columns["GPU-h"].best == {hours.index(min(hours))}
    assert list(columns) == ["attained", "in rises", "worst hour", "GPU-h", "x ideal", "cost"]
    assert [column.head for column in scenario_columns(found)] == [
        "node lost", "no metrics", "slow rises", "demand up", "burst"
    ]  # fmt: skip
    calm = played(a_plan(), 2, 2)
    assert {column.head: column.best for column in main_columns(calm)}["attained"] == frozenset()


def test_a_bound_that_keeps_everybody_from_serving_is_said(found):
    assert bound_words(found) == ""
    limited = replace(a_plan(), bounds=Bounds(minimum=1, maximum=2))
    assert bound_words(played(limited, 2, 18)).startswith("spec.bounds.maxReplicas of 2 serves 10/s")


def test_pictures_are_images_whose_text_can_be_found_and_the_same_every_time(found):
    for draw, words in ((course_chart, "requests/s"), (week_chart, "Wed")):
        image = draw(found)
        ET.fromstring(image)  # noqa: S314  our own
        assert words in image
        assert "this plan" in image
        assert draw(found) == image


def test_a_page_loads_nothing_and_escapes_what_files_are_called(found):
    text = page(found)

    assert not re.search(r"""(src|href)=["'](?!#)""", text)
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_page_markdown_and_json_say_the_same(found):
    text, markdown, document = page(found), simulation_markdown(found), simulation_document(found)
    ours = document["policies"][0]

    for form in (text, markdown):
        assert f"{ours['gpuHours']['total']:,.1f}" in form
        assert share_words(ours["scenarios"]["slow-rises"]["attainment"]) in form
    assert ours["cost"] == pytest.approx(2 * ours["gpuHours"]["total"], abs=0.02)
    assert document["requests"]["files"] == [f"/logs/{EVIL}"]


def test_the_title_says_how_long_and_when(found):
    assert title_words(found) == "Tue 1 Dec 2026, 5h, Europe/Berlin"
    assert found.start == found.trace.end - timedelta(hours=5)
