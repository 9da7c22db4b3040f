"""The targets of speed, each as a ratio or a rate within one run, before the work on them and now.

`python -m benchmarks targets` measures what they need. `results/before` has the same measurements of an earlier commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean

from benchmarks.constrain.joins import JOIN, SLOTS
from benchmarks.engines import SPARK
from benchmarks.harness import CPU_PER_SECOND, format_value
from benchmarks.results import RESULTS, Results

BEFORE = RESULTS / "before"

KINDS = ("pattern", "sequence", "relate", "monitor", "constrain")


@dataclass(frozen=True, slots=True)
class Target:
    """A number that measurements give, and its goal.

    Attributes
    ----------
    goal : the least number, or the most if `at_most`; a share of the number before if `of_before`
    """

    name: str
    measured: Callable[[Results], float | None]
    goal: float
    at_most: bool = False
    of_before: bool = False

    def row(self, before: Results, now: Results) -> list[str]:
        """Return the name, the goal, both numbers, and whether the goal is met."""
        was, found = self.measured(before), self.measured(now)
        goal = self._goal(was)
        bound = "" if goal is None else f"{'at most' if self.at_most else 'at least'} {format_value(goal)}"
        return [self.name, bound, _shown(was), _shown(found), self._met(found, goal)]

    def _goal(self, was: float | None) -> float | None:
        if not self.of_before:
            return self.goal
        return None if was is None else self.goal * was

    def _met(self, found: float | None, goal: float | None) -> str:
        if found is None or goal is None:
            return ""
        return "yes" if (found <= goal if self.at_most else found >= goal) else "no"


def _shown(number: float | None) -> str:
    return "" if number is None else format_value(number)


def table(now: Results) -> list[list[str]]:
    """Return a row for each target, with a header."""
    before = Results.read([BEFORE] if BEFORE.exists() else [])
    return [["target", "goal", "before", "now", "met"], *(target.row(before, now) for target in TARGETS)]


# ------------------------------------------------------------ numbers of measurements


def _beside_one_thread(kind: str) -> Callable[[Results], float | None]:
    return lambda results: results.of("whole.large", f"{kind}:").ratio(f"{SPARK}, rows")


def _by_key(results: Results) -> float | None:
    rate = results.of("whole.clustered").value(f"{SPARK}, by key")
    return None if rate is None else rate / 1e6


def _beside_parquet(source: str) -> Callable[[Results], float | None]:
    """The rate of a format by that of Parquet, of the kind where it is lowest."""

    def lowest(results: Results) -> float | None:
        found = [results.of(f"whole.{kind}") for kind in KINDS]
        rates = [(of_kind.value(f"{SPARK}, {source}"), of_kind.value(f"{SPARK}, Parquet")) for of_kind in found]
        return min((one / other for one, other in rates if one and other), default=None)

    return lowest


def _lost_events(results: Results) -> float | None:
    """The time of an event with 40% lost by that without, of the data where it is highest."""
    times = [
        [of_data.value(f"marks, tables and kernel, {lost}% lost", "ns/event") for lost in (40, 0)]
        for of_data in results.of("relate.kernel").by_workload().values()
    ]
    return max((one / other for one, other in times if one and other), default=None)


def _vehicles(results: Results) -> float | None:
    return results.of("monitor.throughput", "100,000 vehicles").value("processor time", CPU_PER_SECOND)


def _chains(results: Results) -> float | None:
    """How many times as fast as nested integrals, of the chain where it is least."""
    found = results.of("monitor.chains").by_workload().values()
    return min((ratio for of_chain in found if (ratio := of_chain.ratio("value by value"))), default=None)


def _queries(prefix: str) -> Callable[[Results], float | None]:
    """Million events per second with the default strategy."""

    def rate(results: Results) -> float | None:
        found = results.of("constrain.queries").value(f"{prefix}: TIGHT")
        return None if found is None else found / 1e6

    return rate


def _joins(results: Results) -> float | None:
    """The time of the faster join by that of CONSTRAIN, of the query where it is least."""
    found = results.of("constrain.spark")
    ratios = [found.ratio(f"{count} variables: {join}") for count in (2, 3, 4) for join in (JOIN, SLOTS)]
    return min((ratio for ratio in ratios if ratio), default=None)


def _small_job(results: Results) -> float | None:
    """Seconds, the mean of the kinds."""
    times = [results.of(f"whole.{kind}").value(f"{SPARK}, 1,000 rows of Parquet") for kind in KINDS]
    known = [time for time in times if time is not None]
    return mean(known) if known else None


TARGETS = (
    *(
        Target(f"{kind}, 20 million rows of Parquet: Spark by one thread", _beside_one_thread(kind), 1.5)
        for kind in ("PATTERN", "SEQUENCE", "CONSTRAIN")
    ),
    Target("PATTERN, 20 million rows in order of the key: million rows/s", _by_key, 8.0),
    Target("CSV by Parquet, the slowest kind", _beside_parquet("CSV"), 0.5),
    Target("JSON lines by Parquet, the slowest kind", _beside_parquet("JSON lines"), 0.5),
    Target("RELATE: time with 40% lost by that without losses", _lost_events, 3.0, at_most=True),
    Target("RELATE, 20,000 pairs: Spark by one thread", lambda found: found.of("relate.pairs").ratio(SPARK), 0.7),
    Target("MONITOR, 100,000 vehicles: CPU s per second of stream", _vehicles, 0.7, at_most=True),
    Target("MONITOR, chains of three and four names: nested integrals by value by value", _chains, 20.0),
    Target("CONSTRAIN, 100 queries: million events/s", _queries("100 queries"), 1.0),
    Target(
        "CONSTRAIN, 100 queries, also unselective ones: million events/s",
        _queries("the first 100 queries, none drawn again"),
        1.0,
    ),
    Target("CONSTRAIN, one query: join of Spark SQL by CONSTRAIN", _joins, 1.0),
    Target("a job over 1,000 rows, s, mean of the kinds", _small_job, 0.5, at_most=True, of_before=True),
)

MEASURED = (
    "whole.clustered whole.large whole.pattern whole.sequence whole.relate whole.monitor whole.constrain relate.pairs "
    "relate.kernel monitor.throughput monitor.chains constrain.spark constrain.queries"
)
"""The parts that the targets need."""
