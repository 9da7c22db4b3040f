"""The queries of the CONSTRAIN benchmark: random configurations of measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from benchmarks.constrain.data import PROPERTIES, Measurements

STREAM = """
    CREATE STREAM measured
      KEY (buoy INTEGER) VALUE (property STRING, value DOUBLE) TIME day INTEGER
      SPACE (lon, lat) GEODESIC;
    """

LENGTH = 10
"""The maximum time in days between two linked variables, where it does not vary."""

METRES = (300_000, 500_000, 800_000, 1_200_000)
"""Buoys are about 250 km apart from north to south, and 1,000 to 1,700 km from west to east."""

Quantile = Callable[[str, float], float]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The condition on one variable: a property, and a value above, below or around a quantile."""

    property: str
    side: str
    middle: float

    def text(self, name: str, share: float, quantile: Quantile) -> str:
        """Return the condition that this share of the measurements of the property satisfies."""
        low, high = {
            "above": (1 - share, 1.0),
            "below": (0.0, share),
            "around": (self.middle * (1 - share), self.middle * (1 - share) + share),
        }[self.side]
        bounds = [f"{name}.property = '{self.property}'"]
        bounds += [f"{name}.value >= {quantile(self.property, low)!r}"] if low > 0.0 else []
        bounds += [f"{name}.value <= {quantile(self.property, high)!r}"] if high < 1.0 else []
        return " AND ".join(bounds)


@dataclass(frozen=True, slots=True)
class Link:
    """The conditions on two variables: days from the first to the second, and metres between them."""

    first: int
    second: int
    earliest: int
    latest: int
    metres: int


@dataclass(frozen=True, slots=True)
class Configuration:
    """A query without the selectivity of its conditions."""

    ranges: tuple[ValueRange, ...]
    links: tuple[Link, ...]

    def with_length(self, length: int) -> Configuration:
        """Return the configuration with another maximum time between two variables."""
        links = [
            replace(link, earliest=-length if link.earliest < 0 else link.earliest, latest=length)
            for link in self.links
        ]
        return replace(self, links=tuple(links))

    def with_links(self, count: int) -> Configuration:
        """Return the configuration with its first links only; the first ones connect all variables."""
        return replace(self, links=self.links[:count])

    def text(self, name: str, share: float, quantile: Quantile, strategy: str) -> str:
        """Return the CREATE QUERY statement."""
        names = [f"v{number + 1}" for number in range(len(self.ranges))]
        pairs = zip(names, self.ranges, strict=True)
        conditions = [value_range.text(variable, share, quantile) for variable, value_range in pairs]
        for link in self.links:
            one, other = names[link.first], names[link.second]
            conditions.append(f"{other}.day - {one}.day IN [{link.earliest}, {link.latest}]")
            conditions.append(f"DISTANCE({one}, {other}) <= {link.metres}")
        where = "\n        AND ".join(conditions)
        return (
            f"CREATE QUERY {name} AS\n      CONSTRAIN {', '.join(names)} FROM measured\n"
            f"      WHERE {where}\n      STRATEGY {strategy};"
        )


@dataclass(frozen=True, slots=True)
class Query:
    """A configuration, and the share of the values of a property that each variable accepts."""

    configuration: Configuration
    share: float


def workbook(measurements: Measurements, queries: Sequence[Query], strategy: str) -> str:
    """Return a workbook with the queries, named q1, q2 and so on."""
    texts = [
        query.configuration.text(name, query.share, measurements.quantile, strategy)
        for name, query in zip(query_names(queries), queries, strict=True)
    ]
    return "\n\n".join([STREAM.strip(), *texts])


def query_names(queries: Sequence[Query]) -> list[str]:
    """Return the names of the queries in a workbook."""
    return [f"q{number}" for number in range(1, len(queries) + 1)]


# ------------------------------------------------------------ random configurations


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of random configurations.

    Attributes
    ----------
    length : the maximum time in days between two linked variables
    variables : two to four in turn if it is 0
    links : at least one less than variables, which connects them
    """

    length: int = LENGTH
    variables: int = 0
    links: int = 0


ANY_SHAPE = Shape()


def draw_configurations(count: int, seed: int, shape: Shape = ANY_SHAPE) -> list[Configuration]:
    """Return random configurations; the first ones do not depend on the count or the length."""
    return [draw_configuration(number, seed, shape) for number in range(count)]


def draw_configuration(number: int, seed: int, shape: Shape = ANY_SHAPE) -> Configuration:
    """Return the configuration of a number and a seed."""
    return _draw(np.random.default_rng((seed, number)), shape.variables or 2 + number % 3, shape)


def _draw(rng: np.random.Generator, variables: int, shape: Shape) -> Configuration:
    length = shape.length
    sides = ("above", "below", "around")
    ranges = [ValueRange(str(rng.choice(PROPERTIES)), str(rng.choice(sides)), rng.random()) for _ in range(variables)]
    links = []
    for second in range(1, variables):
        first = int(rng.integers(second))
        # At the same time or later, only later, or in any order.
        earliest = (0, 1, -length)[rng.integers(3)]
        links.append(Link(first, second, earliest, length, int(rng.choice(METRES))))
    linked = {(link.first, link.second) for link in links}
    others = [pair for pair in combinations(range(variables), 2) if pair not in linked]
    for first, second in others[: max(0, shape.links - len(links))]:
        links.append(Link(first, second, -length, length, int(rng.choice(METRES))))
    return Configuration(tuple(ranges), tuple(links))
