"""The parts of the CONSTRAIN benchmark: the figures of the paper, and comparisons with other implementations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from anabranch.constrain.analysis import LOOSE, NOINDEX, TIGHT
from benchmarks.constrain import charts, index, joins
from benchmarks.constrain.data import Measurements, part_of, read_measurements
from benchmarks.constrain.queries import Query, Shape, draw_configurations
from benchmarks.constrain.strategies import Outcome, compare_strategies
from benchmarks.constrain.tuning import MAX_SHARE, RULE, selective, tune
from benchmarks.harness import Options, Record, Recorder, load_records, recorder

VERBOSITIES = (0.001, 0.005, 0.01, 0.02, 0.05)
QUERIES = (5, 10, 25, 50, 100)
LENGTHS = (5, 10, 20, 40)
VARIABLES = (2, 3, 4, 5)
LINKS = (3, 4, 5, 6)
"""Of four variables: three links connect them, and six link every pair. A link is a condition on the time between two
events, and one on their distance."""

FEW, VERBOSITY = 5, 0.01
"""The number of queries, and the alerts per event of each, where they do not vary."""

SHARED, SPARK_PART = 12, 0.25
"""The number of queries that Spark runs together, and the share of the events, in whole days, that it reads."""


# ------------------------------------------------------------ data and queries, made once


@cache
def measurements(options: Options) -> Measurements:
    """Return the events; with --quick a tenth of them."""
    events = read_measurements()
    return Measurements(part_of(events, 0.1) if options.quick else events)


@cache
def first_queries(options: Options) -> list[Query]:
    """Return the first hundred random queries, selective or not."""
    return tune(measurements(options), draw_configurations(QUERIES[-1], options.seed), VERBOSITY)


@cache
def many_queries(options: Options) -> list[Query]:
    """Return a hundred selective queries."""
    return selective(measurements(options), QUERIES[-1], options.seed, VERBOSITY, first=first_queries(options))


@cache
def queries_by_verbosity(options: Options) -> dict[float, list[Query]]:
    """Return the same configurations for all verbosities; they are selective at the highest, so at all."""
    data = measurements(options)
    queries = selective(data, FEW, options.seed, max(VERBOSITIES))
    configurations = [query.configuration for query in queries]
    return {value: tune(data, configurations, value, MAX_SHARE) for value in VERBOSITIES}


@cache
def queries_by_length(options: Options) -> dict[int, list[Query]]:
    """Return the same configurations for all lengths; they are selective at the shortest, so at all."""
    data = measurements(options)
    queries = selective(data, FEW, options.seed, VERBOSITY, Shape(min(LENGTHS)))
    return {
        days: tune(data, [query.configuration.with_length(days) for query in queries], VERBOSITY, MAX_SHARE)
        for days in LENGTHS
    }


@cache
def queries_by_variables(options: Options) -> dict[int, list[Query]]:
    """Return queries for each number of variables."""
    data = measurements(options)
    return {count: selective(data, FEW, options.seed, VERBOSITY, Shape(variables=count)) for count in VARIABLES}


@cache
def queries_by_links(options: Options) -> dict[int, list[Query]]:
    """Return the same configurations for all numbers of links; they are selective with the most, so with all."""
    data = measurements(options)
    queries = selective(data, FEW, options.seed, VERBOSITY, Shape(variables=min(LINKS) + 1, links=max(LINKS)))
    return {
        count: tune(data, [query.configuration.with_links(count) for query in queries], VERBOSITY, MAX_SHARE)
        for count in LINKS
    }


# ------------------------------------------------------------ figures 5 to 7, and what the paper says next to them


def verbosity(options: Options) -> Iterator[Record]:
    """Rates and events kept by verbosity (figure 5)."""
    data = measurements(options)
    compared = {
        value: compare_strategies(data, queries, one_by_one=True)
        for value, queries in queries_by_verbosity(options).items()
    }
    record = _recorder("verbosity", f"{FEW} queries", options)
    for value, outcomes in compared.items():
        yield from _records(record, f"{value:.1%}", outcomes, len(data))
    yield from load_records(record)
    _draw(options, "verbosity", {100 * value: outcomes for value, outcomes in compared.items()})


def queries_by_count(options: Options) -> Iterator[Record]:
    """Rates and events kept by the number of queries (figure 6)."""
    data, queries = measurements(options), many_queries(options)
    compared = {count: compare_strategies(data, queries[:count]) for count in QUERIES}
    record = _recorder("queries", f"verbosity {VERBOSITY:.0%}", options)
    for count, outcomes in compared.items():
        yield from _records(record, f"{count} queries", outcomes, len(data))
    outcomes = compare_strategies(data, first_queries(options))
    yield from _records(record, f"the first {QUERIES[-1]} queries, none drawn again", outcomes, len(data))
    yield from load_records(record)
    _draw(options, "queries", compared)


def length(options: Options) -> Iterator[Record]:
    """Rates and events kept by the maximum time between two events (figure 7)."""
    data = measurements(options)
    compared = {days: compare_strategies(data, queries) for days, queries in queries_by_length(options).items()}
    record = _recorder("length", f"{FEW} queries, verbosity {VERBOSITY:.0%}", options)
    for days, outcomes in compared.items():
        yield from _records(record, f"{days} days", outcomes, len(data))
    yield from load_records(record)
    _draw(options, "length", compared)


def variables(options: Options) -> Iterator[Record]:
    """Rates and events kept by the number of variables; the paper reports that rates do not depend on it."""
    yield from _by_size("variables", "variables", queries_by_variables(options), options)


def constraints(options: Options) -> Iterator[Record]:
    """Rates and events kept by the number of linked pairs of four variables; the paper reports that rates stay."""
    unit = f"linked pairs of {min(LINKS) + 1} variables"
    yield from _by_size("constraints", unit, queries_by_links(options), options)


def _by_size(part: str, unit: str, queries: Mapping[int, list[Query]], options: Options) -> Iterator[Record]:
    data = measurements(options)
    record = _recorder(part, f"{FEW} queries, verbosity {VERBOSITY:.0%}", options)
    for count, of_size in queries.items():
        yield from _records(record, f"{count} {unit}", compare_strategies(data, of_size, one_by_one=True), len(data))
    yield from load_records(record)


def _recorder(part: str, workload: str, options: Options) -> Recorder:
    return recorder(f"constrain.{part}", f"{len(measurements(options)):,} events, {workload}; {RULE}", options)


def _records(record: Recorder, prefix: str, outcomes: Mapping[str, Outcome], events: int) -> Iterator[Record]:
    """Yield rates with their ratio to NOINDEX, and the events kept with their ratio to LOOSE."""
    for name, outcome in outcomes.items():
        ratio = outcome.rate / outcomes[NOINDEX].rate
        yield record(f"{prefix}: {name}", outcome.rate, "events/s", NOINDEX, ratio)
    for name, outcome in outcomes.items():
        ratio = outcome.peak / outcomes[LOOSE].peak if outcomes[LOOSE].peak else None
        yield record(f"{prefix}: {name} keeps at most", 100 * outcome.peak / events, "% of events", LOOSE, ratio)
    yield record(f"{prefix}: alerts, the same for all", outcomes[TIGHT].alerts, "alerts")


def _draw(options: Options, name: str, compared: Mapping[float, Mapping[str, Outcome]]) -> None:
    if not options.quick:
        charts.draw(name, compared, len(measurements(options)))


# ------------------------------------------------------------ other implementations


def index_search(options: Options) -> Iterator[Record]:
    """The search for matching events, in microseconds per probe: lists, and trees that are rebuilt regularly."""
    for days in (LENGTHS[1], LENGTHS[-1]):
        kept = index.KeptEvents.of(measurements(options), queries_by_length(options)[days])
        results = dict(index.search_all(kept))
        base = results[index.GRID]
        probes = f"{base.probes:,} probes, {base.hits / base.probes:.1f} hits per probe"
        workload = f"{FEW} queries of {days} days, {probes}, {kept.most():,} roles kept at most"
        record = _recorder("index", workload, options)
        for name, result in results.items():
            ratio = result.microseconds / base.microseconds
            rebuilt = f", rebuilt every {result.interval:,} events" if result.interval else ""
            yield record(name + rebuilt, result.microseconds, "us/probe", index.GRID, ratio)
        yield from load_records(record)


def spark_joins(options: Options) -> Iterator[Record]:
    """From a file to counted alerts by Spark on two cores: CONSTRAIN, and joins of Spark SQL."""
    # A plain join compares all pairs of events that pass the filters, so its time is quadratic in their number.
    part = Measurements(part_of(measurements(options).events, 1.0 if options.quick else SPARK_PART))
    record = recorder("constrain.spark", f"{len(part):,} events, verbosity {VERBOSITY:.0%}; {RULE}", options)
    queries = selective(part, SHARED, options.seed, VERBOSITY)
    yield from joins.compare(part, queries, min(options.rounds, 3), record)
