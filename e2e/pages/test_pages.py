"""Every page opens without a network, in a wide and in a narrow window, in light and in dark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from e2e.pages.made import PAGES

WIDTHS = {"wide": 1280, "narrow": 390}
HEIGHT = 900

LEAST_CONTRAST = 4.5
"""Of text to what is behind it: WCAG 2.2, 1.4.3, level AA."""

LEAST_TEXT_PX = 9
"""As it comes out on the screen, pictures included."""

ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update")
"""For a browser of root in a container, which asks nobody for updates."""

PICTURES = os.environ.get("SERVINGPLAN_PAGES")
"""A folder for a screenshot of each, to be looked at."""

UNREADABLE = (Path(__file__).parent / "unreadable.js").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The Chromium of this machine."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("these tests need Chromium: install the package chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module", params=PAGES)
def made(request, tmp_path_factory) -> Path:
    """A page as a file."""
    folder = tmp_path_factory.mktemp("page")
    file = folder / f"{request.param.replace(' ', '-')}.html"
    file.write_text(PAGES[request.param](folder))
    return file


@pytest.fixture(params=["light", "dark"])
def scheme(request) -> str:
    """What the reader's system asks for."""
    return request.param


@pytest.fixture(params=WIDTHS)
def opened(request, made, scheme, browser) -> Iterator[tuple[Page, list[str]]]:
    """The page in a window without a network, and what the browser complained of."""
    context = browser.new_context(
        viewport={"width": WIDTHS[request.param], "height": HEIGHT}, color_scheme=scheme, offline=True
    )
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url) if asked.url != made.as_uri() else None)
    page.goto(made.as_uri())
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{made.stem}-{request.param}-{scheme}.png", full_page=True)
    yield page, complaints
    context.close()


def test_a_page_opens_offline_and_is_readable(opened):
    page, complaints = opened

    assert page.locator("h1").count() == 1
    assert complaints == [], "a page needs nothing but itself"
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, "nothing sticks out"
    assert page.evaluate(UNREADABLE, [LEAST_CONTRAST, LEAST_TEXT_PX]) == []
