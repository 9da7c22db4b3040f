"""Constants of a first query, from the sample: so that it has answers, if the data have any."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pandas as pd

from anabranch.drafting.roles import Roles
from anabranch.drafting.sample import Column
from anabranch.errors import AnabranchError
from anabranch.language.names import quoted
from anabranch.language.types import Type
from anabranch.language.unparse import string

_UNITS = ((86_400, "DAY"), (3600, "HOUR"), (60, "MINUTE"), (1, "SECOND"))

#: Metres per degree of latitude.
_METRES = 111_195


class Constants:
    """Frequent values, typical times and distances of a sample."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        columns = {f"k{number}": column.values for number, column in enumerate(roles.keys)}
        self._frame = pd.DataFrame({**columns, "t": roles.time.values}).dropna()
        self._keys = list(columns)

    def frequent_change(self, column: Column) -> tuple[str, str]:
        """The most frequent change of a value from one row of a key to the next, as constants."""
        first, then = self._frequent(column, 2)
        return _constant(first, column), _constant(then, column)

    def frequent_triple(self, column: Column) -> tuple[str, str, str]:
        """The most frequent three values that follow each other, as constants."""
        x, y, z = self._frequent(column, 3)
        return _constant(x, column), _constant(y, column), _constant(z, column)

    def changes(self, column: Column, length: int = 2) -> Counter[tuple[Any, ...]]:
        """How often different values of a key follow each other; `length` says how many."""
        counts: Counter[tuple[Any, ...]] = Counter()
        rows = self._frame.assign(value=column.values).dropna().sort_values("t", kind="stable")
        for _, group in rows.groupby(self._keys):
            values = [a for a, b in pairwise([*group["value"], None]) if a != b]
            counts.update(zip(*(values[start:] for start in range(length)), strict=False))
        return counts

    def _frequent(self, column: Column, length: int) -> tuple[Any, ...]:
        counts = self.changes(column, length)
        if counts:
            return counts.most_common(1)[0][0]
        common = list(column.values.dropna().value_counts().index)
        return tuple(common[number % len(common)] for number in range(length))

    def typical_gap(self, times: float = 1) -> str:
        """A multiple of the median time between two rows of a key, as a duration."""
        rows = self._frame.sort_values("t", kind="stable")
        gaps = rows.groupby(self._keys)["t"].diff()
        positive = gaps[gaps > 0]
        median = float(positive.median()) if len(positive) else 1.0
        return self.duration(median * times)

    def duration(self, amount: float) -> str:
        """A duration, rounded to one or two digits."""
        if self._roles.time.type is not Type.TIMESTAMP:
            whole = self._roles.time.type is Type.INTEGER
            return str(max(1, round(amount))) if whole else _rounded(amount)
        size, unit = next(((size, unit) for size, unit in _UNITS if amount >= size), _UNITS[-1])
        number = max(1, round(amount / size))
        return f"{number} {unit}{'' if number == 1 else 'S'}"

    def horizon(self) -> str:
        """The time range of the rows, as the two ends of a HORIZON."""
        times = pd.concat([column.values for column in (self._roles.time, self._roles.end) if column is not None])
        low, high = times.min(), times.max()
        if self._roles.time.type is Type.TIMESTAMP:
            days = [
                pd.Timestamp(low, unit="s").floor("D"),
                pd.Timestamp(high, unit="s").floor("D") + pd.Timedelta("1D"),
            ]
            return f"['{days[0]:%Y-%m-%d}', '{days[1]:%Y-%m-%d}']"
        return f"[{_number(low)}, {_number(high)}]"

    def state(self) -> tuple[Column, str]:
        """A value and a condition that is true at some of the rows."""
        named = [column for column in self._roles.categories if column.type is not Type.INTEGER]
        if named:
            common = named[0].values.dropna().value_counts().index
            return named[0], f"{quoted(named[0].name)} = {_constant(common[0], named[0])}"
        if self._roles.numbers:
            column = self._roles.numbers[0]
            return column, f"{quoted(column.name)} > {self.high(column)}"
        raise AnabranchError(
            "RELATE needs a beginning and an end, a column seq, or a value that says when something is on"
        )

    def high(self, column: Column) -> str:
        """A value that a tenth of the rows exceed."""
        return _rounded(float(column.values.quantile(0.9)))

    def spread(self, column: Column, times: float = 1) -> str:
        """A multiple of the typical change of a value from one row of a key to the next."""
        rows = self._frame.assign(value=column.values).sort_values("t", kind="stable")
        changes = rows.groupby(self._keys)["value"].diff().abs()
        positive = changes[changes > 0]
        return _rounded((float(positive.median()) if len(positive) else 1.0) * times)

    def near(self, space: tuple[Column, Column]) -> str:
        """A tenth of the extent of the locations, in their unit, or in metres on the globe."""
        extent = max(float(column.values.max() - column.values.min()) for column in space)
        return _rounded(max(extent, 1e-6) / 10 * (_METRES if self._roles.geodesic else 1))


def _constant(value: Any, column: Column) -> str:
    if column.type is Type.STRING:
        return string(str(value))
    if column.type is Type.BOOLEAN:
        return str(value).upper()
    return _number(value)


def _rounded(value: float) -> str:
    """A number with two significant digits."""
    return _number(float(f"{value:.2g}"))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
