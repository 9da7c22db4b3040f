"""A shop whose antennas miss some of the tags: who left without paying? For SEQUENCE.

An item is taken from a shelf (x), paid for at the checkout (y) and carried out through the exit (z). There is an
antenna at each, and each loses a reading with a chance of its own, whatever becomes of the others.

The laws are such that `SCORING POSTERIOR` is exact where it supposes no more than what happens here:

- A stay T, from the shelf to the exit, is drawn first, uniform between the shortest and the longest. In a window that
  ends at the exit and is as long as the longest stay, an item is then taken after a uniform delay: the law of x.
- A clock is drawn besides, from the law of y. Who is still inside when it rings pays at that moment; who left before is
  a thief. So the share of thieves follows from the laws, and cannot be asked for: an item with a stay of T was not paid
  for with the chance 1 - F(T), as scores have it. The time from the checkout to the exit is what remains of the stay.
- Some items never leave, whatever their stay and clock: they are put back when the stay is over, and brought back
  where they were paid for by then. Were it the unpaid ones alone, there would be fewer thieves than the laws say.
- Nobody leaves before the shortest stay, so the clocks of all items run that long: the window of `loitering`.

`simulate_trips` works in memory, with arrays; `simulate` and `write` make files and a workbook of it.
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

from anabranch.simulate.files import timestamps, write_files
from anabranch.simulate.options import choice, option
from anabranch.simulate.segmented import Floats, Integers, Mask

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0

SHELF, CHECKOUT, EXIT, AGAIN = range(4)
"""What happens to an item, as columns of arrays; the last one is noise, a tag carried past its shelf again."""

READERS = ("shelf", "checkout", "exit", "shelf")
"""The antenna that reads each."""

WORKBOOK = """\
-- A shop: items are read at their shelf (x), at the checkout (y) and at the exit (z), or missed. MISS and DELAY are
-- those by which the data were made.

CREATE STREAM reads
  KEY (tag) VALUE (reader) TIME t
  FROM 'reads.parquet';

-- Left without paying? A reading at the checkout would rule it out; that there is none may also be the antenna's fault.
CREATE QUERY shoplifting AS
  SEQUENCE (x, !y, z) FROM reads
  WHERE x.reader = 'shelf' AND y.reader = 'checkout' AND z.reader = 'exit' AND x.tag = y.tag AND y.tag = z.tag
  MISS x {miss_shelf}, y {miss_checkout}
  DELAY x UNIFORM(0, {spread} MINUTES), y {clock}
  WITHIN {longest} MINUTES
  SCORING POSTERIOR
  THRESHOLD 0.5;

-- Taken, paid for and carried out, whether or not each of it was read.
CREATE QUERY purchase AS
  SEQUENCE (x, y, z) FROM reads
  WHERE x.reader = 'shelf' AND y.reader = 'checkout' AND z.reader = 'exit' AND x.tag = y.tag AND y.tag = z.tag
  MISS x {miss_shelf}, y {miss_checkout}
  DELAY x UNIFORM(0, {spread} MINUTES), y {clock}
  WITHIN {longest} MINUTES
  SCORING POSTERIOR
  THRESHOLD 0.5;

-- Taken, and not paid for when the window closes, as long after as the shortest stay. No reading ends this: time does.
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
    """A law of delay, by its name in the language.

    Attributes
    ----------
    name : str
        GAMMA, EXPONENTIAL, LOGNORMAL or UNIFORM.
    parameters : tuple of float
        As the language takes them, with durations in minutes; LOGNORMAL is of seconds.

    Examples
    --------
    >>> str(Law("GAMMA", (4.0, 2.5)))
    'GAMMA(4, 2.5 MINUTES)'
    """

    name: str
    parameters: tuple[float, ...]

    def __str__(self) -> str:
        plain = {"GAMMA": 1, "LOGNORMAL": 2}.get(self.name, 0)
        numbers = [_number(parameter) for parameter in self.parameters]
        return f"{self.name}({', '.join(numbers[:plain] + [f'{each} MINUTES' for each in numbers[plain:]])})"

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Delays in seconds; more of them begin with the same ones."""
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
    """What the command line can ask for."""

    items: int = option(5_000, "how many tags", most=1_000_000)
    trips: int = option(1, "how often each is taken; days lie between", most=1_000)
    items_per_hour: float = option(500.0, "how many are taken for the first time", least=0.01, most=1e9)
    shortest: float = option(20.0, "minutes from the shelf to the exit, at least", least=0.1, most=10_000)
    longest: float = option(90.0, "minutes from the shelf to the exit, at most", least=0.1, most=10_000)
    checkout_law: str = choice(
        "gamma", "exponential", "lognormal", "uniform",
        help="of the time from the shelf to the checkout: gamma, exponential, lognormal or uniform",
    )  # fmt: skip
    checkout_mean: float = option(16.0, "minutes from the shelf to the checkout", least=0.01, most=10_000)
    checkout_sd: float = option(8.0, "their standard deviation; exponential has none", least=0.01, most=10_000)
    put_back: float = option(0.1, "the chance that an item never leaves", least=0, most=1)
    miss: float = option(0.1, "the chance that a reading is lost", least=0, most=1)
    miss_shelf: float = option(-1.0, "the same at shelves; below 0: as --miss says", least=-1, most=1)
    miss_checkout: float = option(-1.0, "the same at the checkout; below 0: as --miss says", least=-1, most=1)
    miss_exit: float = option(-1.0, "the same at the exit; below 0: as --miss says", least=-1, most=1)
    noise: float = option(0.0, "the chance that an item comes past its shelf again", least=0, most=1)

    def __post_init__(self) -> None:
        if self.shortest >= self.longest:
            raise ValueError(
                f"--shortest is below --longest, not {_number(self.shortest)} with {_number(self.longest)}"
            )
        if self.checkout_law == "uniform" and self.clock.parameters[0] < 0:
            mean, sd = _number(self.checkout_mean), _number(self.checkout_sd)
            raise ValueError(f"uniform times with --checkout-mean {mean} and --checkout-sd {sd} would begin below 0")

    @property
    def clock(self) -> Law:
        """The law of the time from the shelf to the checkout."""
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
        """The chances of loss at the shelves, the checkout and the exit."""
        shelf, checkout, exit = (
            self.miss if own < 0 else own for own in (self.miss_shelf, self.miss_checkout, self.miss_exit)
        )
        return shelf, checkout, exit


@dataclass(frozen=True, slots=True)
class Trips:
    """What became of items, a trip each; arrays have the columns SHELF, CHECKOUT, EXIT and AGAIN.

    Attributes
    ----------
    item, trip : (n,) int64
        Both counted from 1.
    times : (n, 4) int64
        In microseconds since the beginning; without a meaning where it did not happen.
    happened, read : (n, 4) bool
        What is read has happened.
    """

    item: Integers
    trip: Integers
    times: Integers
    happened: Mask
    read: Mask

    @property
    def stolen(self) -> Mask:
        """Which items left and were not paid for."""
        return self.happened[:, EXIT] & ~self.happened[:, CHECKOUT]


@dataclass(frozen=True, slots=True)
class Shop:
    """What was read, and what really happened.

    Attributes
    ----------
    reads : pa.Table
        A CERTAIN stream: tag, reader, t.
    truth : pa.Table
        A row a trip: tag, trip, the times shelf, checkout and exit (NULL where it did not happen), stolen, and whether
        each of them was read: shelf_read, checkout_read, exit_read.
    workbook : str
        Asks who left without paying.
    """

    reads: pa.Table
    truth: pa.Table
    workbook: str


def simulate(options: Options | None = None, seed: int = 0) -> Shop:
    """Let items be taken, paid for, and carried out.

    Parameters
    ----------
    options : Options, optional
        How many, how long, and what is lost. More items or trips leave what was there before as it was.
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
    """Write what was simulated as files, with a workbook that asks for thieves; return the workbook's path."""
    return write_files(folder, "shop", shop.workbook, {"reads": shop.reads, "true_trips": shop.truth})


def remark(folder: Path) -> str:
    """How many items were stolen, and how many readings lost, of a folder that was written."""
    truth = pyarrow.parquet.read_table(folder / "true_trips.parquet")
    stolen = pc.sum(truth["stolen"]).as_py()
    happened = sum(truth.num_rows - truth[reader].null_count for reader in READERS[:AGAIN])
    lost = happened - sum(pc.sum(truth[f"{reader}_read"]).as_py() for reader in READERS[:AGAIN])
    return (
        f"{stolen:,} of {truth.num_rows:,} items taken were stolen ({stolen / truth.num_rows:.1%}), "
        f"and {lost:,} of {happened:,} readings lost ({lost / happened:.1%})"
    )


# ---------------------------------------------------------------- shopping


def simulate_trips(options: Options, rng: np.random.Generator) -> Trips:
    """What became of every item: the first trips of all, then the second ones, and so on.

    Examples
    --------
    >>> trips = simulate_trips(Options(items=2, trips=2), np.random.default_rng(0))
    >>> trips.item, trips.trip
    (array([1, 2, 1, 2]), array([1, 1, 2, 2]))
    """
    arrivals, *of_trips = rng.spawn(1 + options.trips)
    taken = _microseconds(HOUR / options.items_per_hour * np.cumsum(arrivals.standard_exponential(options.items)))
    made = []
    for number, own in enumerate(of_trips, start=1):
        trips, over = _one_trip(number, taken, options, own)
        made.append(trips)
        # No window holds two trips of a tag.
        restocked = options.longest * MINUTE + DAY * (1 + own.standard_exponential(options.items))
        taken = over + _microseconds(restocked)
    return Trips(*(np.concatenate([getattr(each, name) for each in made]) for name in Trips.__slots__))


def _one_trip(number: int, taken: Integers, options: Options, rng: np.random.Generator) -> tuple[Trips, Integers]:
    """A trip of every item, and when it was over."""
    # A generator for each thing that is drawn, and an item after the other: more items leave the others as they were.
    stays, clocks, returns, staff, losses = rng.spawn(5)
    count = len(taken)
    stay = _microseconds(Law("UNIFORM", (options.shortest, options.longest)).draw(count, stays))
    # Paid for later than taken, even where a clock rings at once.
    ring = np.maximum(_microseconds(options.clock.draw(count, clocks)), 1)
    leaves = returns.random(count) >= options.put_back
    again, past = staff.random((count, 2)).T
    times = taken[:, None] + np.stack([np.zeros_like(stay), ring, stay, _floor(past * stay)], axis=1)
    happened = np.stack([np.full(count, True), ring < stay, leaves, again < options.noise], axis=1)
    shelf, checkout, exit = options.miss_rates
    lost = losses.random((count, 4)) < (shelf, checkout, exit, shelf)
    item = np.arange(1, count + 1)
    return Trips(item, np.full_like(item, number), times, happened, happened & ~lost), taken + stay


def _microseconds(seconds: Floats) -> Integers:
    return _floor(1e6 * seconds)


def _floor(numbers: Floats) -> Integers:
    return np.floor(numbers).astype(np.int64)


# ---------------------------------------------------------------- rows


def _read_rows(trips: Trips) -> pa.Table:
    """In the order of time, then of tags."""
    trip, what = np.nonzero(trips.read)
    times = trips.times[trip, what]
    order = np.lexsort((trips.item[trip], times))
    readers = pa.DictionaryArray.from_arrays(pa.array(np.array([0, 1, 2, 0])[what[order]]), list(READERS[:AGAIN]))
    return pa.table(
        {
            "tag": _tags(trips.item[trip[order]]),
            "reader": readers.cast(pa.string()),
            "t": _timestamps(times[order], np.full(len(order), True)),
        }
    )


def _truth_rows(trips: Trips) -> pa.Table:
    """In the order in which items were taken, then of tags."""
    order = np.lexsort((trips.item, trips.times[:, SHELF]))
    times, happened, read = trips.times[order], trips.happened[order], trips.read[order]
    named = list(enumerate(READERS[:AGAIN]))
    return pa.table(
        {
            "tag": _tags(trips.item[order]),
            "trip": pa.array(trips.trip[order], pa.int32()),
            **{reader: _timestamps(times[:, what], happened[:, what]) for what, reader in named},
            "stolen": pa.array(trips.stolen[order]),
            **{f"{reader}_read": pa.array(read[:, what]) for what, reader in named},
        }
    )


def _tags(items: Integers) -> pa.Array:
    """Names of one length, so that they are in the order of the numbers: tag-0000001."""
    digits = pc.utf8_lpad(pa.array(items).cast(pa.string()), 7, "0")
    return pc.binary_join_element_wise(pa.scalar("tag"), digits, "-")


def _timestamps(microseconds: Integers, known: Mask) -> pa.Array:
    return timestamps(START, microseconds, np.timedelta64(1, "us"), known)


# ---------------------------------------------------------------- the workbook


def _workbook(options: Options) -> str:
    shelf, checkout, _ = options.miss_rates
    numbers = {
        "miss_shelf": shelf,
        "miss_checkout": checkout,
        "shortest": options.shortest,
        "longest": options.longest,
        "spread": options.longest - options.shortest,
    }
    return WORKBOOK.format(clock=options.clock, **{name: _number(number) for name, number in numbers.items()})


def _number(number: float) -> str:
    return f"{number:.12g}"
