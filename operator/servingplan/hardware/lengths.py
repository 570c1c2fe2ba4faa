"""Token lengths as a distribution: two quantiles become a lognormal, whose moments the formulas need.

In: quantiles as a plan states them. Out: `Lengths`. Prompts and answers of the field are skewed like this; a mean alone
would hide the long ones, which fill the cache.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

_NORMAL = NormalDist()
_USUAL = frozenset({"p50", "p95"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens a request: a lognormal by its median and sigma (of the logarithm); sigma 0 is a fixed length."""

    median: float
    sigma: float

    @classmethod
    def from_quantiles(cls, quantiles: Mapping[str, int]) -> Lengths:
        """From ``{"p50": 600, "p95": 2400}``: sigma = ln(upper / lower) / (z_upper - z_lower).

        p50 and p95 count, or else the outermost two; one alone is a fixed length. Raises ValueError where there is
        none, or an upper one is smaller than a lower one.
        """
        if not quantiles:
            raise ValueError("no quantile of the length is stated: write for example p50:600,p95:2400")
        names = _USUAL if quantiles.keys() >= _USUAL else quantiles.keys()
        points = sorted((int(name.removeprefix("p")) / 100, quantiles[name]) for name in names)
        (low, lower), (high, upper) = points[0], points[-1]
        if upper < lower:
            raise ValueError(f"p{100 * high:.0f} is {upper}, less than p{100 * low:.0f}, which is {lower}")
        if low == high:
            return cls(median=float(lower), sigma=0.0)
        z_low, z_high = _NORMAL.inv_cdf(low), _NORMAL.inv_cdf(high)
        sigma = math.log(upper / lower) / (z_high - z_low)
        return cls(median=lower * math.exp(-z_low * sigma), sigma=sigma)

    def moment(self, order: int) -> float:
        """E[X^order] = median^order x exp(order^2 sigma^2 / 2)."""
        return float(self.median**order * math.exp(order**2 * self.sigma**2 / 2))

    @property
    def mean(self) -> float:
        """Tokens on average."""
        return self.moment(1)

    def quantile(self, share: float) -> float:
        """The length that `share` of the requests do not exceed."""
        return self.median * math.exp(_NORMAL.inv_cdf(share) * self.sigma)
