"""A shop whose antennas miss some of the tags: which items left without being paid for? For SEQUENCE.

An item is taken from a shelf (x), paid for at the checkout (y) and carried out through the exit (z). There is an
antenna at each of the three; it loses a reading with its own probability, independently of the others.

The distributions are such that `SCORING POSTERIOR` is exact where its assumptions hold in the simulation:

- The stay T, from the shelf to the exit, is drawn first, uniform between the shortest and the longest stay. So in a
  window that ends at the exit and is as long as the longest stay, an item is taken after a uniform delay: the
  distribution of x.
- A clock is drawn from the distribution of y. If the item is still inside when its clock rings, it is paid for at that
  moment; if it left before, it is stolen. So the share of stolen items follows from the distributions and is no option:
  an item with a stay T was not paid for with probability 1 - F(T), as the scores assume. The time from the checkout to
  the exit is the rest of the stay.
- Some items never leave, independently of stay and clock: they are put back when the stay is over, also if they were
  paid for by then. If only unpaid items were put back, there would be fewer stolen items than the distributions say.
- No item leaves before the shortest stay, so the clocks of all items run for that time: the window of `loitering`.

`simulate_trips` returns arrays; `simulate` and `write` make files and a workbook.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from anabranch.arrays import F64, I64, Bools
from anabranch.simulate.files import number_text, timestamps, write_files
from anabranch.simulate.options import choice, option

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0

SHELF, CHECKOUT, EXIT, AGAIN = range(4)
"""The events of an item, as columns of arrays; the last one is noise, a second reading at the shelf."""

READERS = ("shelf", "checkout", "exit", "shelf")
"""The antenna that reads each event."""

WORKBOOK = """\
-- A shop: items are read at their shelf (x), at the checkout (y) and at the exit (z), or missed. MISS and DELAY are
-- those that generated the data.

CREATE STREAM reads
  KEY (tag) VALUE (reader) TIME t
  FROM 'reads.parquet';

-- Which items left without being paid for? There is no reading at the checkout, but the antenna may have missed it.
CREATE QUERY shoplifting AS
  SEQUENCE (x, !y, z) FROM reads
  WHERE x.reader = 'shelf' AND y.reader = 'checkout' AND z.reader = 'exit' AND x.tag = y.tag AND y.tag = z.tag
  MISS x {miss_shelf}, y {miss_checkout}
  DELAY x UNIFORM(0, {spread} MINUTES), y {clock}
  WITHIN {longest} MINUTES
  SCORING POSTERIOR
  THRESHOLD 0.5;

-- Items that were taken, paid for and carried out; the first two readings may be missing.
CREATE QUERY purchase AS
  SEQUENCE (x, y, z) FROM reads
  WHERE x.reader = 'shelf' AND y.reader = 'checkout' AND z.reader = 'exit' AND x.tag = y.tag AND y.tag = z.tag
  MISS x {miss_shelf}, y {miss_checkout}
  DELAY x UNIFORM(0, {spread} MINUTES), y {clock}
  WITHIN {longest} MINUTES
  SCORING POSTERIOR
  THRESHOLD 0.5;

-- Items that were taken, and not paid for when the window closes, after the shortest stay. No reading ends a match.
CREATE QUERY loitering AS
  SEQUENCE (x, !y) FROM reads
  WHERE x.reader = 'shelf' AND y.reader = 'checkout' AND x.tag = y.tag
  MISS y {miss_checkout}
  DELAY y {clock}
  WITHIN {shortest} MINUTES
  ENDING OPEN
  THRESHOLD 0.5;
"""


@dataclass(frozen=True, slots=True)
class Law:
    """The distribution of a delay, by its name in the language.

    Attributes
    ----------
    name : str
        GAMMA, EXPONENTIAL, LOGNORMAL or UNIFORM.
    parameters : tuple of float
        The parameters in the language, with durations in minutes; those of LOGNORMAL are for seconds.

    Examples
    --------
    >>> str(Law("GAMMA", (4.0, 2.5)))
    'GAMMA(4, 2.5 MINUTES)'
    """

    name: str
    parameters: tuple[float, ...]

    def __str__(self) -> str:
        plain = {"GAMMA": 1, "LOGNORMAL": 2}.get(self.name, 0)
        numbers = [number_text(parameter) for parameter in self.parameters]
        return f"{self.name}({', '.join(numbers[:plain] + [f'{number} MINUTES' for number in numbers[plain:]])})"

    def draw(self, count: int, rng: np.random.Generator) -> F64:
        """Draw delays in seconds; a larger count does not change the first ones."""
        if self.name == "GAMMA":
            shape, scale = self.parameters
            return scale * MINUTE * rng.standard_gamma(shape, count)
        if self.name == "LOGNORMAL":
            mu, sigma = self.parameters
            return np.exp(mu + sigma * rng.standard_normal(count))
        if self.name == "UNIFORM":
            low, high = self.parameters
            return MINUTE * (low + (high - low) * rng.random(count))
        (mean,) = self.parameters
        return mean * MINUTE * rng.standard_exponential(count)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    items: int = option(5_000, "number of tags", most=1_000_000)
    trips: int = option(1, "how often each item is taken, more than a day apart", most=1_000)
    items_per_hour: float = option(500.0, "items that are taken per hour", least=0.01, most=1e9)
    shortest: float = option(20.0, "shortest time from the shelf to the exit, in minutes", least=0.1, most=10_000)
    longest: float = option(90.0, "longest time from the shelf to the exit, in minutes", least=0.1, most=10_000)
    checkout_law: str = choice(
        "gamma", "exponential", "lognormal", "uniform",
        help="distribution of the time from the shelf to the checkout: gamma, exponential, lognormal or uniform",
    )  # fmt: skip
    checkout_mean: float = option(16.0, "mean time from the shelf to the checkout, in minutes", least=0.01, most=10_000)
    checkout_sd: float = option(8.0, "standard deviation of that time; not for exponential", least=0.01, most=10_000)
    put_back: float = option(0.1, "probability that an item never leaves", least=0, most=1)
    miss: float = option(0.1, "probability that a reading is lost", least=0, most=1)
    miss_shelf: float = option(-1.0, "the same at shelves; below 0: --miss", least=-1, most=1)
    miss_checkout: float = option(-1.0, "the same at the checkout; below 0: --miss", least=-1, most=1)
    miss_exit: float = option(-1.0, "the same at the exit; below 0: --miss", least=-1, most=1)
    noise: float = option(0.0, "probability that an item passes its shelf again", least=0, most=1)

    def __post_init__(self) -> None:
        if self.shortest >= self.longest:
            shortest, longest = number_text(self.shortest), number_text(self.longest)
            raise ValueError(f"--shortest must be below --longest, not {shortest} with {longest}")
        if self.checkout_law == "uniform" and self.clock.parameters[0] < 0:
            mean, sd = number_text(self.checkout_mean), number_text(self.checkout_sd)
            raise ValueError(f"uniform times with --checkout-mean {mean} and --checkout-sd {sd} would begin below 0")

    @property
    def clock(self) -> Law:
        """The distribution of the time from the shelf to the checkout."""
        mean, sd = self.checkout_mean, self.checkout_sd
        if self.checkout_law == "gamma":
            return Law("GAMMA", ((mean / sd) ** 2, sd**2 / mean))
        if self.checkout_law == "lognormal":
            variance = math.log1p((sd / mean) ** 2)
            return Law("LOGNORMAL", (math.log(mean * MINUTE) - variance / 2, math.sqrt(variance)))
        if self.checkout_law == "uniform":
            return Law("UNIFORM", (mean - math.sqrt(3) * sd, mean + math.sqrt(3) * sd))
        return Law("EXPONENTIAL", (mean,))

    @property
    def miss_rates(self) -> tuple[float, float, float]:
        """The probabilities of loss at the shelves, the checkout and the exit."""
        shelf, checkout, exit = (
            self.miss if rate < 0 else rate for rate in (self.miss_shelf, self.miss_checkout, self.miss_exit)
        )
        return shelf, checkout, exit


@dataclass(frozen=True, slots=True)
class Trips:
    """The trips of items, a row per trip; arrays have the columns SHELF, CHECKOUT, EXIT and AGAIN.

    Attributes
    ----------
    item, trip : (n,) int64
        Both counted from 1.
    times : (n, 4) int64
        In microseconds since the beginning; meaningless if the event did not happen.
    happened, read : (n, 4) bool
        Whether each event happened, and whether it was read.
    """

    item: I64
    trip: I64
    times: I64
    happened: Bools
    read: Bools

    @property
    def stolen(self) -> Bools:
        """Which items left without being paid for."""
        return self.happened[:, EXIT] & ~self.happened[:, CHECKOUT]


@dataclass(frozen=True, slots=True)
class Shop:
    """The readings and the ground truth.

    Attributes
    ----------
    reads : pa.Table
        A CERTAIN stream: tag, reader, t.
    truth : pa.Table
        A row per trip: tag, trip, the times shelf, checkout and exit (NULL if it did not happen), stolen, and whether
        each of them was read: shelf_read, checkout_read, exit_read.
    workbook : str
        With queries for stolen items.
    """

    reads: pa.Table
    truth: pa.Table
    workbook: str


def simulate(options: Options | None = None, seed: int = 0) -> Shop:
    """Simulate items that are taken, paid for and carried out.

    Parameters
    ----------
    options : Options, optional
        More items or trips do not change the data of the others.
    seed : int
        The same seed gives the same data.

    Examples
    --------
    >>> shop = simulate(Options(items=3), seed=0)
    >>> shop.truth["stolen"].to_pylist(), shop.reads.column_names
    ([False, False, False], ['tag', 'reader', 't'])
    """
    options = options or Options()
    trips = simulate_trips(options, np.random.default_rng(seed))
    return Shop(_read_rows(trips), _truth_rows(trips), _workbook(options))


def write(shop: Shop, folder: Path) -> Path:
    """Write the files and a workbook with queries for stolen items; return the path of the workbook."""
    return write_files(folder, "shop", shop.workbook, {"reads": shop.reads, "true_trips": shop.truth})


def remark(folder: Path) -> str:
    """Return how many items were stolen and how many readings were lost, from the written files."""
    truth = pyarrow.parquet.read_table(folder / "true_trips.parquet")
    stolen = pc.sum(truth["stolen"]).as_py()
    happened = sum(truth.num_rows - truth[reader].null_count for reader in READERS[:AGAIN])
    lost = happened - sum(pc.sum(truth[f"{reader}_read"]).as_py() for reader in READERS[:AGAIN])
    return (
        f"{stolen:,} of {truth.num_rows:,} items taken were stolen ({stolen / truth.num_rows:.1%}), "
        f"and {lost:,} of {happened:,} readings were lost ({lost / happened:.1%})"
    )


# ---------------------------------------------------------------- trips


def simulate_trips(options: Options, rng: np.random.Generator) -> Trips:
    """Return the first trips of all items, then the second ones, and so on.

    Examples
    --------
    >>> trips = simulate_trips(Options(items=2, trips=2), np.random.default_rng(0))
    >>> trips.item, trips.trip
    (array([1, 2, 1, 2]), array([1, 1, 2, 2]))
    """
    arrival_rng, *trip_rngs = rng.spawn(1 + options.trips)
    taken = _microseconds(HOUR / options.items_per_hour * np.cumsum(arrival_rng.standard_exponential(options.items)))
    parts = []
    for number, trip_rng in enumerate(trip_rngs, start=1):
        trips, over = _one_trip(number, taken, options, trip_rng)
        parts.append(trips)
        # Long enough that no window contains two trips of a tag.
        pause = options.longest * MINUTE + DAY * (1 + trip_rng.standard_exponential(options.items))
        taken = over + _microseconds(pause)
    return Trips(*(np.concatenate([getattr(part, name) for part in parts]) for name in Trips.__slots__))


def _one_trip(number: int, taken: I64, options: Options, rng: np.random.Generator) -> tuple[Trips, I64]:
    """Return one trip of every item, and when it was over."""
    # A generator for each quantity, in the order of items, so that more items do not change the others.
    stay_rng, clock_rng, put_back_rng, noise_rng, loss_rng = rng.spawn(5)
    count = len(taken)
    stay = _microseconds(Law("UNIFORM", (options.shortest, options.longest)).draw(count, stay_rng))
    # An item is paid for later than it is taken, even if its clock rings at once.
    ring = np.maximum(_microseconds(options.clock.draw(count, clock_rng)), 1)
    leaves = put_back_rng.random(count) >= options.put_back
    again, past = noise_rng.random((count, 2)).T
    times = taken[:, None] + np.stack([np.zeros_like(stay), ring, stay, _floor(past * stay)], axis=1)
    happened = np.stack([np.full(count, True), ring < stay, leaves, again < options.noise], axis=1)
    shelf, checkout, exit = options.miss_rates
    lost = loss_rng.random((count, 4)) < (shelf, checkout, exit, shelf)
    item = np.arange(1, count + 1)
    return Trips(item, np.full_like(item, number), times, happened, happened & ~lost), taken + stay


def _microseconds(seconds: F64) -> I64:
    return _floor(1e6 * seconds)


def _floor(numbers: F64) -> I64:
    return np.floor(numbers).astype(np.int64)


# ---------------------------------------------------------------- rows


def _read_rows(trips: Trips) -> pa.Table:
    """Return the readings, sorted by time and tag."""
    trip, event = np.nonzero(trips.read)
    times = trips.times[trip, event]
    order = np.lexsort((trips.item[trip], times))
    readers = pa.DictionaryArray.from_arrays(pa.array(np.array([0, 1, 2, 0])[event[order]]), list(READERS[:AGAIN]))
    return pa.table(
        {
            "tag": _tags(trips.item[trip[order]]),
            "reader": readers.cast(pa.string()),
            "t": _timestamps(times[order], np.full(len(order), True)),
        }
    )


def _truth_rows(trips: Trips) -> pa.Table:
    """Return the trips, sorted by the time at which items were taken, and by tag."""
    order = np.lexsort((trips.item, trips.times[:, SHELF]))
    times, happened, read = trips.times[order], trips.happened[order], trips.read[order]
    readers = list(enumerate(READERS[:AGAIN]))
    return pa.table(
        {
            "tag": _tags(trips.item[order]),
            "trip": pa.array(trips.trip[order], pa.int32()),
            **{reader: _timestamps(times[:, event], happened[:, event]) for event, reader in readers},
            "stolen": pa.array(trips.stolen[order]),
            **{f"{reader}_read": pa.array(read[:, event]) for event, reader in readers},
        }
    )


def _tags(items: I64) -> pa.Array:
    """Return names of equal length, which sort like the numbers: tag-0000001."""
    digits = pc.utf8_lpad(pa.array(items).cast(pa.string()), 7, "0")
    return pc.binary_join_element_wise(pa.scalar("tag"), digits, "-")


def _timestamps(microseconds: I64, known: Bools) -> pa.Array:
    return timestamps(START, microseconds, np.timedelta64(1, "us"), known)


# ---------------------------------------------------------------- workbook


def _workbook(options: Options) -> str:
    shelf, checkout, _ = options.miss_rates
    numbers = {
        "miss_shelf": shelf,
        "miss_checkout": checkout,
        "shortest": options.shortest,
        "longest": options.longest,
        "spread": options.longest - options.shortest,
    }
    return WORKBOOK.format(clock=options.clock, **{name: number_text(number) for name, number in numbers.items()})
