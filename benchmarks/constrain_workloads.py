"""The data and the queries of the CONSTRAIN benchmark: what buoys of the Pacific measured, and configurations of it.

The data are the El Nino data of the UCI archive, a row a buoy and day with five measurements. Every measurement that is
there is an event. Queries are drawn from a seed; how much a query answers, its *verbosity* (alerts / events), is set by
how rare the values are that it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.constrain.analysis import LOOSE, NOINDEX
from anabranch.constrain.events import numbers_of_events
from anabranch.constrain.functions import holds_of_events
from anabranch.constrain.job import ConstrainJob, make_job
from anabranch.constrain.kernel.run import Run
from anabranch.constrain.kernel.tables import Events
from anabranch.events.batch import Batch, EventTable
from anabranch.events.roles import roles_of
from anabranch.language.parser import parse
from anabranch.runtime.sources.schema import layouts_for
from anabranch.transport.job import JobContext

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "tao_elnino" / "tao-all2.dat.gz"

PROPERTIES = ("zonal wind", "meridional wind", "humidity", "air temperature", "water temperature")
_COLUMNS = ("number", "year", "month", "day", "date", "lat", "lon", *PROPERTIES)

JUMP_LAT, JUMP_LON = 1.5, 3.0
"""Degrees from one row to the next that no buoy drifts in a day: the next row is of another buoy."""

STREAM = """
    CREATE STREAM measured
      KEY (buoy INTEGER) VALUE (property STRING, value DOUBLE) TIME day INTEGER
      SPACE (lon, lat) GEODESIC;
    """

_FINGERPRINT = "00" * 32


# ------------------------------------------------------------ measurements


def read_measurements(path: Path | None = None) -> pa.Table:
    """An event a measurement, in order of time: buoy, property, value, day, lon, lat.

    Raises
    ------
    FileNotFoundError
        If the data are not there.
    """
    path = path or DATA
    if not path.exists():
        raise FileNotFoundError(
            f"the CONSTRAIN benchmark needs the El Nino data of the UCI archive as {path}, and there is no such file"
        )
    rows = csv.read_csv(
        path,
        csv.ReadOptions(column_names=_COLUMNS),
        csv.ParseOptions(delimiter=" "),
        csv.ConvertOptions(null_values=["."], column_types=dict.fromkeys(PROPERTIES, pa.float64())),
    )
    return measurements_of(rows)


def measurements_of(rows: pa.Table) -> pa.Table:
    """What is measured in rows of buoys and days; a value that is missing is no event."""
    year, month, day = (rows[name].to_numpy() for name in ("year", "month", "day"))
    months = (year - 70).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    days = (months.astype("datetime64[D]") + (day - 1)).astype(np.int64)
    lat, lon = rows["lat"].to_numpy(), rows["lon"].to_numpy()
    buoy = _buoys(days, lat, lon)
    values = np.stack([rows[name].to_numpy() for name in PROPERTIES], axis=1)
    row, kind = np.nonzero(~np.isnan(values))
    order = np.lexsort((kind, buoy[row], days[row]))
    row, kind = row[order], kind[order]
    return pa.table(
        {
            "buoy": buoy[row],
            "property": pa.array(PROPERTIES).take(pa.array(kind)),
            "value": values[row, kind],
            "day": days[row],
            "lon": lon[row],
            "lat": lat[row],
        }
    )


def _buoys(days: np.ndarray, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """The rows of one buoy follow each other: another begins where time goes back, or the place jumps."""
    around = np.abs(np.diff(lon))
    jumps = (np.abs(np.diff(lat)) > JUMP_LAT) | (np.minimum(around, 360 - around) > JUMP_LON)
    return np.cumsum(np.concatenate([[0], (np.diff(days) <= 0) | jumps]))


# ------------------------------------------------------------ queries


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a variable asks of its event: a property, and a value above, below or around a quantile."""

    property: str
    side: str
    middle: float

    def text(self, name: str, share: float, quantile: Callable[[str, float], float]) -> str:
        """The condition on a variable that such a share of the measurements of its property fulfil."""
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
    """How two variables lie to each other: days from the first to the second, and metres between them."""

    first: int
    second: int
    earliest: int
    latest: int
    metres: int


@dataclass(frozen=True, slots=True)
class Configuration:
    """A query but for how rare the values are that it asks for."""

    wanted: tuple[Wanted, ...]
    links: tuple[Link, ...]

    def lasting(self, length: int) -> Configuration:
        """The same with another longest time between two variables."""
        links = [
            replace(link, earliest=-length if link.earliest < 0 else link.earliest, latest=length)
            for link in self.links
        ]
        return replace(self, links=tuple(links))

    def text(self, name: str, share: float, quantile: Callable[[str, float], float], strategy: str) -> str:
        """The query in the language."""
        names = [f"v{number + 1}" for number in range(len(self.wanted))]
        conditions = [each.text(own, share, quantile) for own, each in zip(names, self.wanted, strict=True)]
        for link in self.links:
            one, other = names[link.first], names[link.second]
            conditions.append(f"{other}.day - {one}.day IN [{link.earliest}, {link.latest}]")
            conditions.append(f"DISTANCE({one}, {other}) <= {link.metres}")
        where = "\n        AND ".join(conditions)
        return (
            f"CREATE QUERY {name} AS\n      CONSTRAIN {', '.join(names)} FROM measured\n"
            f"      WHERE {where}\n      STRATEGY {strategy};"
        )


LENGTH = 10
"""The longest time, in days, from a variable to one that is linked to it, where it does not change."""

METRES = (300_000, 500_000, 800_000, 1_200_000)
"""Buoys are some 250 km apart from north to south, and 1,000 to 1,700 km from west to east."""


def draw_configurations(count: int, seed: int, length: int = LENGTH) -> list[Configuration]:
    """Configurations of two to four variables; the first of more are those of fewer, whatever the length."""
    return [draw(number, seed, length) for number in range(count)]


def draw(number: int, seed: int, length: int = LENGTH) -> Configuration:
    """The configuration of a number and a seed."""
    return _draw(np.random.default_rng((seed, number)), 2 + number % 3, length)


def _draw(rng: np.random.Generator, variables: int, length: int) -> Configuration:
    sides = ("above", "below", "around")
    wanted = [Wanted(str(rng.choice(PROPERTIES)), str(rng.choice(sides)), rng.random()) for _ in range(variables)]
    links = []
    for second in range(1, variables):
        first = int(rng.integers(second))
        # At the same time or later, only later, or in any order.
        earliest = (0, 1, -length)[rng.integers(3)]
        links.append(Link(first, second, earliest, length, int(rng.choice(METRES))))
    return Configuration(tuple(wanted), tuple(links))


# ------------------------------------------------------------ runs in this process


@dataclass(frozen=True, slots=True)
class Query:
    """A configuration, and how rare the values are that it asks for."""

    configuration: Configuration
    share: float


class Measured:
    """Events in order of time, and what is asked of them."""

    def __init__(self, events: pa.Table) -> None:
        self.events = events
        names, values = events["property"].to_numpy(), events["value"].to_numpy()
        self._values = {name: np.sort(values[names == name]) for name in PROPERTIES}

    def __len__(self) -> int:
        return self.events.num_rows

    def quantile(self, name: str, share: float) -> float:
        """A value of a property that is above such a share of its values."""
        values = self._values[name]
        return float(values[min(int(share * len(values)), len(values) - 1)])

    def workbook(self, queries: Sequence[Query], strategy: str) -> str:
        """The queries in the language, named q1, q2 and so on."""
        texts = [
            query.configuration.text(f"q{number}", query.share, self.quantile, strategy)
            for number, query in enumerate(queries, 1)
        ]
        return "\n\n".join([STREAM.strip(), *texts])

    def job(self, queries: Sequence[Query], strategy: str) -> ConstrainJob:
        """One job of all queries."""
        catalog = Catalog()
        findings = declare(parse(self.workbook(queries, strategy)), catalog)
        if findings:
            raise ValueError(findings)
        bound = [bind(catalog.query(f"q{number}"), catalog) for number in range(1, len(queries) + 1)]
        return make_job(bound, JobContext(layouts_for(bound[0].streams), {}, _FINGERPRINT))


class InProcess:
    """A job over events, its stages one by one: which variables each event can be, and what the kernel makes of it."""

    def __init__(self, job: ConstrainJob, events: pa.Table) -> None:
        self.job = job
        self._table = EventTable.from_rows(events, job.layouts[0])
        self._columns = self._table.columns
        self._demands = list(enumerate(demand for analysis in job.analyses for demand in analysis.unary))
        self._stream = job.analyses[0].query.variables[0].stream

    def roles(self) -> tuple[np.ndarray, np.ndarray]:
        """The variables that each event can be (see `roles_of`)."""
        streams = {"": self._stream}
        return roles_of(self._columns, self._demands, lambda part, own, n: holds_of_events(part, own, streams, {}, n))

    def numbers(self, first: np.ndarray, variable: np.ndarray) -> Events:
        """What the kernel sees."""
        n, count = len(self._table), len(variable)
        roles = {"variable": variable, "home": np.ones(count, np.bool_)}
        batch = Batch([self._table], np.zeros(n, np.int64), np.ones(n, np.bool_), first, roles)
        return numbers_of_events(batch, self.job.lowered.columns)

    def run(self, events: Events) -> Run:
        """A kernel made ready."""
        lowered, strategy = self.job.lowered, self.job.strategy
        return Run(lowered.graph, events, strategy != NOINDEX, strategy != LOOSE)

    def alerts(self) -> np.ndarray:
        """How many alerts each query has."""
        counts = np.zeros(len(self.job.analyses), np.int64)
        for query, found in self.run(self.numbers(*self.roles())).solutions():
            counts[query] += len(found)
        return counts


# ------------------------------------------------------------ verbosity

NEAR = 0.03
"""How far a verbosity may be from the one that is wanted, as a share of it."""

_ROUNDS = 20


def tune(
    measured: Measured, configurations: Sequence[Configuration], verbosity: float, most: float = 1.0
) -> list[Query]:
    """For each configuration, how rare its values must be that it has so many alerts an event.

    No share above `most` is tried: where that would be needed, it is the one that is found.

    The more values fit the more alerts there are, so it is bracketed; between the ends of a bracket the number is taken
    to be a power of the share. Values have few digits, so it cannot always be met: the nearest is taken then.
    """
    target = verbosity * len(measured)
    searches = [_Search(target, len(each.wanted), most) for each in configurations]
    for _ in range(_ROUNDS):
        open_ones = [number for number, search in enumerate(searches) if not search.done]
        if not open_ones:
            break
        asked = [Query(configurations[number], searches[number].share) for number in open_ones]
        counts = InProcess(measured.job(asked, NOINDEX), measured.events).alerts()
        for number, count in zip(open_ones, counts, strict=True):
            searches[number].note(int(count))
    return [Query(each, search.best) for each, search in zip(configurations, searches, strict=True)]


class _Search:
    """The search for the share that gives a number of alerts."""

    def __init__(self, target: float, variables: int, most: float) -> None:
        self._target, self._power, self._most = target, variables, most
        self._low, self._high = (0.0, 0), (1.0, 0)
        self._nearest = np.inf
        # So rare that there are few alerts at first: too many would take long.
        self.share = self.best = 0.005
        self.done = False

    def note(self, count: int) -> None:
        """Learn how many alerts the share has, and choose the next."""
        apart = abs(np.log(max(count, 0.5) / self._target))
        # Of shares that have no alerts at all, the last: it says how far the search went.
        if apart <= self._nearest:
            self._nearest, self.best = apart, self.share
        if count < self._target:
            self._low = (self.share, count)
        else:
            self._high = (self.share, count)
        following = self._next()
        self.done = apart < NEAR or np.isclose(following, self.share, rtol=1e-5)
        self.share = following

    def _next(self) -> float:
        (low, below), (high, above) = self._low, self._high
        if above == 0:
            return min(low * min(2.0, (self._target / max(below, 0.5)) ** (1 / self._power)), self._most)
        if below == 0:
            return (low + high) / 2 if low else high * max(0.5, (self._target / above) ** (1 / self._power))
        power = np.log(above / below) / np.log(high / low)
        guess = low * (self._target / below) ** (1 / power)
        # Away from the ends, so that both of them move.
        margin = 0.05 * (high - low)
        return float(np.clip(guess, low + margin, high - margin))


# ------------------------------------------------------------ queries that select

MOST = 0.1
"""A variable that accepts more of the values of its property than this selects nothing worth the name."""

TRIES = 40
"""How often a configuration is drawn again at most."""

RULE = f"drawn again where more than {MOST:.0%} of a property's values would have to be accepted"


def selective(
    measured: Measured, count: int, seed: int, verbosity: float, length: int = LENGTH, plain: Sequence[Query] = ()
) -> list[Query]:
    """Tuned queries none of which accepts more than MOST: a configuration that would is drawn from the next seed.

    Parameters
    ----------
    plain : queries of the first seed that are tuned already

    Raises
    ------
    ValueError
        If TRIES seeds were not enough: the data have not so many events that fit each other.
    """
    last = seed + TRIES
    queries = list(plain) or tune(measured, draw_configurations(count, seed, length), verbosity, MOST)
    while again := [number for number, query in enumerate(queries) if query.share >= MOST]:
        seed += 1
        if seed == last:
            raise ValueError(f"{len(again)} of {count} configurations cannot have a verbosity of {verbosity:.1%}")
        drawn = [draw(number, seed, length) for number in again]
        for number, query in zip(again, tune(measured, drawn, verbosity, MOST), strict=True):
            queries[number] = query
    return queries


def part_of(events: pa.Table, share: float) -> pa.Table:
    """Whole days from the middle, with about such a share of the events."""
    day = events["day"].to_numpy()
    wanted = max(int(share * len(day)), 1)
    start = (len(day) - wanted) // 2
    first, last = np.searchsorted(day, day[[start, start + wanted - 1]], side="left")
    return events.slice(first, last - first) if last > first else events
