"""The ledger as it is kept: what is written down of a reconcile, and pages that stay small whatever is in them."""

from __future__ import annotations

import base64
import gzip
import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest

from planning.loop import berlin
from servingplan.planning.ledger import Entry
from servingplan.planning.observation import Scale, Trouble
from servingplan.planning.ownership import Contest
from servingplan.planning.reasons import Reason
from servingplan.rendering.ledger import (
    LARGEST_BYTES,
    LONGEST_TEXT,
    entries_of,
    entry_of,
    is_ledger_of,
    last_entry,
    ledger_manifest,
    meaning,
    with_entries,
)
from servingplan.rendering.metadata import CONFIG_LABEL, Owner
from servingplan.rendering.status import TRAIL_LENGTH
from support.plans import a_plan
from support.situations import a_situation, an_invalid_situation, an_observation, pods

DAYS = 35
OWNER = Owner(uid="uid-1", api_version="servingplan.dev/v1alpha1", kind="ServingPlan", name="support-chat")


def pages(*entries: Entry, days: int = DAYS) -> dict[str, str]:
    """What is kept after these were written one after the other."""
    kept: dict[str, str] = {}
    for entry in entries:
        changed = with_entries(kept, [entry], days=days)
        kept = {day: page for day, page in {**kept, **changed}.items() if page is not None}
    return kept


# ---- an entry ----


def test_an_entry_tells_what_was_decided_from_what_and_why():
    situation = a_situation("2026-12-01T07:50", observation=an_observation(pods(2, engine=3)))
    scaled = Scale(time=situation.now, before=2, after=5, because="ready before window working-day")
    entry = entry_of(situation, {"desiredReplicas": 2}, scaled)
    assert (entry.before, entry.desired, entry.required, entry.floor, entry.current, entry.ready) == (2, 5, 2, 5, 5, 2)
    assert (entry.because, entry.generation, entry.reason) == ("ready before window working-day", 7, "")
    assert [step["name"] for step in entry.trail][:2] == ["demand", "need"]
    assert len(entry.trail) <= TRAIL_LENGTH


@pytest.mark.parametrize(
    ("situation", "reason", "words"),
    [
        (an_invalid_situation(), "Invalid", "spec.schedule.timeZone: Europe/Berln"),
        (a_situation(plan=a_plan(suspend=True)), "Suspended", "suspended"),
        (a_situation(autoscaler="HorizontalPodAutoscaler llm/vllm"), "ScaledByHPA", "HorizontalPodAutoscaler llm/vllm"),
        (
            a_situation(apply_trouble=Trouble(reason=Reason.APPLY_REFUSED, message="exceeded quota")),
            "ApplyRefused",
            "exceeded quota",
        ),
        (
            a_situation(
                contest=Contest(
                    manager="kubectl",
                    since=berlin("2026-12-01T11:00"),
                    last_write=berlin("2026-12-01T11:30"),
                    value=1,
                    raises=2,
                    last_raise=None,
                )
            ),
            "SecondWriter",
            "kubectl writes replicas too, and last set 1",
        ),
    ],
    ids=["invalid", "suspended", "an autoscaler", "refused", "contested"],
)
def test_an_entry_says_what_kept_the_operator_from_acting(situation, reason, words):
    entry = entry_of(situation, {"desiredReplicas": 3}, None)
    assert entry.reason == reason
    assert words in entry.note


def test_a_plan_that_does_not_resolve_keeps_what_was_asked_for_and_counts_nothing():
    entry = entry_of(an_invalid_situation(), {"desiredReplicas": 3}, None)
    assert (entry.before, entry.desired, entry.current, entry.trail) == (3, 3, None, ())


def test_what_moves_while_replicas_start_is_no_other_meaning():
    situation = a_situation("2026-12-01T07:50", observation=an_observation(pods(2, engine=3)))
    later = a_situation("2026-12-01T07:55", observation=an_observation(pods(4, engine=1)))
    assert meaning(entry_of(situation, {}, None)) == meaning(entry_of(later, {"desiredReplicas": 5}, None))


@pytest.mark.parametrize(
    "changed",
    [{"generation": 8}, {"desired": 6}, {"required": 4}, {"floor": 4}, {"current": 1}, {"reason": "Suspended"}],
    ids=lambda changed: next(iter(changed)),
)
def test_what_decides_is_another_meaning(changed):
    entry = entry_of(a_situation(), {}, None)
    assert meaning(replace(entry, **changed)) != meaning(entry)


# ---- pages ----


def an_entry(at: str, **changes) -> Entry:
    situation = a_situation(at, observation=an_observation(pods(5)))
    return replace(entry_of(situation, {"desiredReplicas": 5}, None), **changes)


def test_what_was_written_is_read_back():
    written = [
        an_entry("2026-12-01T12:00"),
        an_entry("2026-12-01T23:30", reason="Suspended", note="über 3", ready=None),
        an_entry("2026-12-02T12:00"),
    ]
    kept = pages(*written)
    assert sorted(kept) == ["2026-12-01", "2026-12-02"]
    assert list(entries_of(kept)) == [replace(entry, trail=tuple(entry.trail)) for entry in written]
    assert last_entry(kept) == entries_of(kept)[-1]


def test_the_same_entries_are_the_same_bytes():
    assert pages(an_entry("2026-12-01T12:00")) == pages(an_entry("2026-12-01T12:00"))


def test_the_last_days_that_have_entries_are_kept():
    kept = pages(*(an_entry(f"2026-12-{day:02d}T12:00") for day in range(1, 11)), days=3)
    assert sorted(kept) == [f"2026-12-{day:02d}" for day in range(8, 11)]


def test_days_ahead_go_where_a_clock_was_far_ahead_and_nearer_ones_stay_and_are_said():
    far = an_entry("2030-01-01T12:00")
    near = an_entry("2026-12-02T12:00")
    kept = pages(near, far, an_entry("2026-12-01T12:00"))
    assert sorted(kept) == ["2026-12-01", "2026-12-02"]
    assert entries_of(kept)[0].behind == far.time


def test_a_ledger_stays_within_its_bytes_by_dropping_the_oldest_days():
    day = berlin("2026-01-01T00:00")
    kept: dict[str, str] = {}
    for number in range(40):
        entries = [
            Entry(
                time=day + timedelta(days=number, minutes=minute),
                generation=minute,
                note=hashlib.shake_256(f"{number} {minute}".encode()).hexdigest(LONGEST_TEXT // 2),
            )
            for minute in range(60)
        ]
        changed = with_entries(kept, entries, days=366)
        kept = {day: page for day, page in {**kept, **changed}.items() if page is not None}
        assert sum(len(day) + len(page) for day, page in kept.items()) <= LARGEST_BYTES
    assert 1 < len(kept) < 40
    assert max(kept) == (day + timedelta(days=39)).date().isoformat()


def test_five_weeks_of_an_hourly_profile_take_a_tenth_of_what_a_config_map_may_hold():
    kept: dict[str, str] = {}
    usual = an_entry("2026-11-01T12:00")
    for day in range(DAYS):
        hours = [berlin("2026-11-01T02:00") + timedelta(days=day, hours=hour) for hour in range(22)]
        entries = [replace(usual, time=at, generation=at.hour) for at in hours]
        changed = with_entries(kept, entries, days=DAYS)
        kept = {day: page for day, page in {**kept, **changed}.items() if page is not None}
    assert len(entries_of(kept)) == DAYS * 22
    assert sum(map(len, kept.values())) < 100_000


def packed(text: str | bytes) -> str:
    return base64.b64encode(gzip.compress(text.encode() if isinstance(text, str) else text)).decode()


@pytest.mark.parametrize(
    "page",
    [
        "no base64!",
        base64.b64encode(b"no gzip").decode(),
        packed(b"\xff\xfe"),
        packed("[]\n{}\nnull\n3\nno json\n"),
        packed('{"time": "2026-12-01T12:00:00", "generation": 1}'),
        packed('{"time": "0001-01-01T00:00:00+23:00", "generation": 1}'),
        packed('{"time": "2026-12-01T12:00:00Z", "generation": "x"}'),
        packed('{"time": "2026-12-01T12:00:00Z", "generation": 1e999}'),
        packed('{"time": "2026-12-01T12:00:00Z", "generation": 1, "trail": 3}'),
        packed('{"time": "2026-12-01T12:00:00Z", "generation": 1, "trail": [["demand"]]}'),
        packed("[" * 100_000),
    ],
    ids=[
        "base64", "gzip", "utf-8", "json", "an instant without offset", "before all time", "a word for a number",
        "no number", "no trail", "half a step", "too deep",
    ],
)  # fmt: skip
def test_what_somebody_wrote_by_hand_is_passed_over(page):
    good = pages(an_entry("2026-12-02T12:00"))
    assert len(entries_of({**good, "2026-12-01": page})) == 1
    assert last_entry({**good, "2026-12-03": page}) is None


def test_a_page_that_unpacks_to_gigabytes_does_not():
    bomb = base64.b64encode(gzip.compress(b"\n" * (1 << 27))).decode()
    assert entries_of({"2026-12-01": bomb}) == ()


# ---- the object ----


def test_a_ledger_goes_with_its_plan_and_is_no_config_that_is_watched():
    manifest = ledger_manifest("support-chat", "llm", OWNER, "default", {})
    assert manifest["metadata"]["name"] == "support-chat-decisions"
    assert manifest["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert CONFIG_LABEL not in manifest["metadata"]["labels"]
    assert is_ledger_of(manifest, "uid-1")
    assert not is_ledger_of(manifest, "uid-2")
    assert not is_ledger_of({"metadata": {"name": "support-chat-decisions"}}, "uid-1")
