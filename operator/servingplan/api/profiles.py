"""The weekly profile, from the text of a ConfigMap to 168 or 1,008 rates.

Place in the flow: part of ``resolve``. In: ``profile.csv``. Out: a `Profile`, or `InputError` with every line that is
wrong. Header ``weekday,hour,requests_per_second``, with ``minute`` too where slots are ten minutes.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from servingplan.api.config_maps import entry_of, limited
from servingplan.api.references import References
from servingplan.api.schedule import ProfileSpec
from servingplan.api.wire import MAX_RATE
from servingplan.errors import InputError, Problem
from servingplan.planning.plan import WEEKDAYS, Profile

PROFILE_KEY = "profile.csv"

_COLUMNS = ("weekday", "hour", "requests_per_second")
_COLUMNS_WITH_MINUTE = (*_COLUMNS, "minute")
_HOURS = {str(hour): hour for hour in range(24)}
_MINUTES = {str(minute): minute for minute in range(0, 60, 10)}

Slot = tuple[int, int, int]
"""Weekday (0 = Monday), hour, minute."""


def profile(wire: ProfileSpec, path: str, references: References) -> Profile:
    """The profile. Raises InputError for a missing ConfigMap and for every wrong, missing or doubled row."""
    _, text = entry_of(references, wire.config_map.name, (PROFILE_KEY,), path)
    rates, complaints = _parsed(text)
    if complaints:
        where, file = f"{path}.configMap.name", f"{PROFILE_KEY} of ConfigMap {wire.config_map.name!r}"
        problems = [Problem(path=where, reason="InvalidProfile", message=f"{file}, {words}") for words in complaints]
        raise InputError(*limited(problems))
    return Profile(rates=rates)


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[tuple[Decimal, ...], tuple[str, ...]]:
    """Rates from Monday 00:00 on, or what is wrong. Cached by text: a plan is resolved far more often than edited."""
    lines = csv.reader(text.removeprefix("\ufeff").splitlines())
    header = [cell.strip() for cell in next(lines, [])]
    if sorted(header) not in (sorted(_COLUMNS), sorted(_COLUMNS_WITH_MINUTE)):
        complaint = f"line 1: the header must be {','.join(_COLUMNS)}, with minute too for slots of ten minutes"
        return (), (complaint,)
    minutes = _MINUTES if "minute" in header else {"0": 0}
    rates: dict[Slot, Decimal] = {}
    seen: dict[Slot, int] = {}
    complaints: list[str] = []
    for cells in lines:
        if not any(cell.strip() for cell in cells):
            continue
        try:
            slot, rate = _row(header, cells, minutes)
        except ValueError as error:
            complaints.append(f"line {lines.line_num}: {error}")
            continue
        if slot in seen:
            complaints.append(f"line {lines.line_num}: {_named(slot)} is already in line {seen[slot]}: keep one")
        seen.setdefault(slot, lines.line_num)
        rates.setdefault(slot, rate)
    slots = [(day, hour, minute) for day in range(7) for hour in range(24) for minute in minutes.values()]
    complaints += _missing(slots, seen) if not complaints else []
    return tuple(rates.get(slot, Decimal(0)) for slot in slots), tuple(complaints)


def _row(header: Sequence[str], cells: Sequence[str], minutes: dict[str, int]) -> tuple[Slot, Decimal]:
    if len(cells) != len(header):
        raise ValueError(f"has {len(cells)} columns, not {len(header)}")
    row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
    if row["weekday"] not in WEEKDAYS:
        raise ValueError(f"weekday {row['weekday']!r} is none of {', '.join(WEEKDAYS)}")
    hour = _HOURS.get(_plain(row["hour"]))
    if hour is None:
        raise ValueError(f"hour {row['hour']!r} is none of 0 to 23")
    minute = minutes.get(_plain(row.get("minute", "0")))
    if minute is None:
        raise ValueError(f"minute {row['minute']!r} is none of 0, 10, 20, 30, 40, 50")
    return (WEEKDAYS.index(row["weekday"]), hour, minute), _rate(row["requests_per_second"])


def _plain(number: str) -> str:
    """``08`` is ``8``."""
    return number.removeprefix("0") or "0" if len(number) == 2 else number


def _rate(text: str) -> Decimal:
    try:
        rate = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"requests_per_second {text!r} is no number") from None
    if not rate.is_finite() or not 0 <= rate <= Decimal(MAX_RATE):
        raise ValueError(f"requests_per_second {text} must be a number from 0 to {MAX_RATE:.0f}")
    return rate


def _missing(slots: Sequence[Slot], seen: dict[Slot, int]) -> list[str]:
    missing = [slot for slot in slots if slot not in seen]
    if not missing:
        return []
    names = ", ".join(_named(slot) for slot in missing[:3])
    more = " and more" if len(missing) > 3 else ""
    return [
        f"{len(missing)} of {len(slots)} rows are missing ({names}{more}): state every one, 0 where nothing arrives"
    ]


def _named(slot: Slot) -> str:
    day, hour, minute = slot
    return f"{WEEKDAYS[day]} {hour:02d}:{minute:02d}"
