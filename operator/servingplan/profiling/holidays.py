"""Public holidays by name, from the package of that name. In: ``DE-BE`` and years. Out: names by date. No clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

import holidays

from servingplan.errors import UsageError


def holidays_of(place: str, years: Iterable[int]) -> Mapping[date, str]:
    """Holidays of a country, or of a part of it. Raises UsageError for a place that is not known."""
    country, _, part = place.partition("-")
    try:
        found = holidays.country_holidays(country, subdiv=part or None, years=list(years))
    except NotImplementedError as error:
        raise UsageError(
            f"--holidays {place}: {error}; write a country and, where it matters, a part: DE-BE"
        ) from error
    return dict(found.items())
