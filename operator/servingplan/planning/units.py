"""Units of the wire: durations and shares, parsed and formatted.

In: strings as people write them. Out: ``timedelta`` and ``Fraction``. Knows nothing of plans.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

DURATION_PATTERN = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
"""What a duration looks like on the wire, for example ``1h30m`` or ``1500ms``."""

PERCENT_PATTERN = r"^[0-9]{1,3}(\.[0-9]{1,2})?%$"
"""What a share in per cent looks like on the wire, for example ``20%``."""

_PART = re.compile(r"([0-9]+)(ms|h|m|s)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


def parse_duration(text: str) -> timedelta:
    """``1h30m`` -> 90 minutes. Raises ValueError where the text is no duration."""
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"{text!r} is not a duration; write for example 90s, 10m, 1h30m or 1500ms")
    return timedelta(milliseconds=sum(int(n) * _MILLISECONDS[unit] for n, unit in _PART.findall(text)))


def format_duration(duration: timedelta) -> str:
    """90 minutes -> ``1h30m``; the inverse of `parse_duration`, to the millisecond."""
    left = round(duration / timedelta(milliseconds=1))
    if left < 0:
        return "-" + format_duration(-duration)
    parts = []
    for unit in ("h", "m", "s", "ms"):
        count, left = divmod(left, _MILLISECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_percent(text: str) -> Fraction:
    """``20%`` -> 1/5. Raises ValueError where the text is no percentage."""
    if not re.fullmatch(PERCENT_PATTERN, text):
        raise ValueError(f"{text!r} is not a percentage; write for example 20%")
    return Fraction(text.removesuffix("%")) / 100


def scale_duration(duration: timedelta, factor: Fraction) -> timedelta:
    """A duration times an exact factor, to the microsecond."""
    microseconds = duration // timedelta(microseconds=1)
    return timedelta(microseconds=round(microseconds * factor))


def exact(value: float | Decimal | str) -> Decimal:
    """A number as it was written: 0.1 -> Decimal("0.1"), not its binary neighbour."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def format_rate(rate: Decimal) -> str:
    """A rate in requests/s without trailing zeros or exponents."""
    return format(rate.normalize(), "f")


def rate_number(rate: Decimal) -> int | float:
    """A rate as a number of JSON: whole where it is."""
    return int(rate) if rate == rate.to_integral_value() else float(rate)
