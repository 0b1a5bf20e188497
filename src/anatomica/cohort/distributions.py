"""How one quantity is distributed: quantile functions of the few families that a cohort spec knows.

Every draw goes through `ppf`, so that random and quasi-random designs, grids and copulas share one path from
the unit interval to a quantity's unit.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator
from scipy import special

from anatomica.errors import AnatomicaError, shown
from anatomica.spec.strict import Real, Strict

Array = np.ndarray
Pair = tuple[Real, Real]
FAMILIES = ("normal", "lognormal", "uniform", "choice", "empirical")


class Distribution(Strict):
    """One family with its parameters, in the quantity's own unit; `truncate` cuts it to a range.

    normal, lognormal: mean and standard deviation of the quantity itself. uniform: both ends. choice: values,
    all equally likely, or values with their shares. empirical: observed values, or a CSV file with a column
    named like the quantity.

    >>> Distribution(normal=(42, 5), truncate=(34, 58)).support
    (34.0, 58.0)
    """

    normal: Pair | None = None
    lognormal: Pair | None = None
    uniform: Pair | None = None
    choice: Annotated[list[Real], Field(min_length=1)] | dict[Real, Real] | None = None
    empirical: Annotated[list[Real], Field(min_length=2)] | str | None = None
    truncate: Pair | None = None

    @model_validator(mode="before")
    @classmethod
    def _number(cls, given: Any) -> Any:
        """A plain number is a choice of one."""
        if isinstance(given, int | float) and not isinstance(given, bool):
            return {"choice": [given]}
        return given

    @model_validator(mode="after")
    def _sensible(self) -> Distribution:
        given = [name for name in FAMILIES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of {', '.join(FAMILIES)}, not {' and '.join(given) or 'none'}"
            )
        if self.normal is not None and self.normal[1] <= 0:
            raise ValueError(
                f"a normal distribution has a positive standard deviation, not {self.normal[1]:g}"
            )
        if self.lognormal is not None and min(self.lognormal) <= 0:
            raise ValueError("a lognormal distribution has a positive mean and standard deviation")
        if self.uniform is not None and not self.uniform[0] < self.uniform[1]:
            raise ValueError(f"a uniform distribution ends above its beginning, not {list(self.uniform)}")
        if isinstance(self.choice, dict) and (not self.choice or min(self.choice.values()) <= 0):
            raise ValueError("a choice has at least one value, each with a positive share")
        if self.truncate is not None and not self.truncate[0] < self.truncate[1]:
            raise ValueError(f"truncate: the range {list(self.truncate)} ends before it begins")
        numbers = [x for x in (self.normal, self.lognormal, self.uniform, self.truncate) if x is not None]
        listed = [x for x in (self.choice, self.empirical) if isinstance(x, list | dict)]
        if not all(math.isfinite(x) for row in (*numbers, *listed) for x in row):
            raise ValueError("every number of a distribution is finite")
        if not isinstance(self.empirical, str):
            low, high = self._kept
            if not high - low > 1e-9:
                raise ValueError(
                    f"truncate: nothing of the distribution lies within {list(self.truncate or ())}"
                )
        return self

    def read(self, key: str, folder: Path) -> Distribution:
        """The same distribution with its CSV file, if it has one, read: a column named `key`."""
        if not isinstance(self.empirical, str):
            return self
        from anatomica.cohort.patients_csv import read_columns

        values = read_columns(folder / self.empirical, [key])[:, 0].tolist()
        try:
            return Distribution(empirical=values, truncate=self.truncate)
        except ValueError as error:
            raise AnatomicaError(f"{self.empirical}, column {key}: {shown(error)}") from None

    @property
    def discrete(self) -> bool:
        return self.choice is not None

    @property
    def support(self) -> tuple[float, float]:
        """The least and the largest value that it can give."""
        if self.discrete:
            values, _ = self._choices()
            return float(values[0]), float(values[-1])
        # Not through `ppf`, which is rounded at the ends of a truncated range.
        low, high = np.clip(self._whole_ppf(np.array([0.0, 1.0])), *(self.truncate or (-math.inf, math.inf)))
        return float(low), float(high)

    def ppf(self, u: Float[Array, " m"]) -> Float[Array, " m"]:
        """The quantile function, of the truncated distribution if it is truncated."""
        low, high = self._kept
        with np.errstate(divide="ignore"):
            found = self._whole_ppf(low + np.asarray(u, dtype=float) * (high - low))
        return found if self.truncate is None else np.clip(found, *self.truncate)

    def cdf(self, x: Float[Array, " m"]) -> Float[Array, " m"]:
        """Share of the distribution at or below x."""
        low, high = self._kept
        return np.clip((self._whole_cdf(np.asarray(x, dtype=float)) - low) / (high - low), 0.0, 1.0)

    @property
    def _kept(self) -> tuple[float, float]:
        """The part of the unit interval that truncation leaves."""
        if self.discrete:  # only those within the range are choices
            return 0.0, float(len(self._choices()[0]) > 0)
        if self.truncate is None:
            return 0.0, 1.0
        low, high = self.truncate
        if self.empirical is not None:
            # A value at the lower end is kept: what lies below it is cut off.
            low = float(np.nextafter(low, -math.inf))
        below, above = self._whole_cdf(np.array([low, high], dtype=float))
        return float(below), float(above)

    def _choices(self) -> tuple[Array, Array]:
        """Values within the range, ascending, and the share at or below each."""
        given = self.choice if isinstance(self.choice, dict) else dict.fromkeys(self.choice or [], 1.0)
        low, high = self.truncate or (-math.inf, math.inf)
        values = np.array(sorted(x for x in given if low <= x <= high), dtype=float)
        shares = np.cumsum([given[x] for x in values.tolist()])
        return values, shares / shares[-1:]

    def _log(self) -> tuple[float, float]:
        """Mean and standard deviation of the logarithm."""
        mean, sd = self.lognormal or (1.0, 1.0)
        variance = math.log1p((sd / mean) ** 2)
        return math.log(mean) - variance / 2, math.sqrt(variance)

    def _whole_ppf(self, u: Array) -> Array:
        if self.normal is not None:
            return self.normal[0] + self.normal[1] * special.ndtri(u)
        if self.lognormal is not None:
            mu, sigma = self._log()
            return np.exp(mu + sigma * special.ndtri(u))
        if self.uniform is not None:
            return self.uniform[0] + (self.uniform[1] - self.uniform[0]) * u
        if self.discrete:
            values, upto = self._choices()
            return values[np.minimum(np.searchsorted(upto, u, "left"), len(values) - 1)]
        values = np.sort(np.array(self.empirical, dtype=float))
        return np.interp(u, _places(len(values)), values)

    def _whole_cdf(self, x: Array) -> Array:
        if self.normal is not None:
            return special.ndtr((x - self.normal[0]) / self.normal[1])
        if self.lognormal is not None:
            mu, sigma = self._log()
            with np.errstate(divide="ignore"):
                return special.ndtr((np.log(np.maximum(x, 0.0)) - mu) / sigma)
        if self.uniform is not None:
            return np.clip((x - self.uniform[0]) / (self.uniform[1] - self.uniform[0]), 0.0, 1.0)
        if self.discrete:
            values, upto = self._choices()
            return np.concatenate([[0.0], upto])[np.searchsorted(values, x, "right")]
        values = np.sort(np.array(self.empirical, dtype=float))
        # The largest place of equal values: the share at or below.
        last = np.searchsorted(values, x, "right") - 1
        exact = np.interp(x, values, _places(len(values)))
        tied = (last >= 0) & (values[np.maximum(last, 0)] == x)
        return np.where(tied, _places(len(values))[np.maximum(last, 0)], exact)


def _places(count: int) -> Array:
    """Where ordered observations lie in the unit interval: the first at 0, the last at 1, linear between."""
    return np.linspace(0.0, 1.0, count)
