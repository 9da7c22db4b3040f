"""The figures of the five papers: what each paper reports, and the records that reproduce it.

A record belongs to a figure by a regular expression over its metric, with the groups `x` and `series`. Published
numbers are those in the text of the papers; values that a paper only draws are not read off its pictures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.results import Results


@dataclass(frozen=True, slots=True)
class Published:
    """A number that a paper states: the workloads that it is about, as a part of their names, and its coordinates."""

    workload: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a paper.

    Attributes
    ----------
    paper, number : where the figure is
    title : what it shows
    reports : what the paper reports
    part : the benchmark that reproduces it
    metric : a regular expression with the groups x and series
    unit : of the records
    algorithms : series that are the algorithms of the paper, or what it compares with; the others are Anabranch
    """

    paper: str
    number: str
    title: str
    reports: str
    part: str
    metric: str
    unit: str
    x_title: str
    algorithms: Sequence[str] = ()
    published: Sequence[Published] = field(default=())
    logarithmic: bool = True


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a figure; `source` is Anabranch, the algorithm of the paper, or the paper itself."""

    workload: str
    series: str
    x: float
    y: float
    source: str


OURS, ALGORITHM, PAPER = "Anabranch", "algorithm of the paper", "paper, other machine"

LAHAR = "Lahar: Event Queries on Correlated Probabilistic Streams"
SIMPMATCH = "SimpMatch: Interval-based Queries over Lossy IoT Event Streams"
PREDICTION = "A Query Processor for Prediction-Based Monitoring of Data Streams"
CCQ = "Continuous Constraint Query Evaluation for Spatiotemporal Streams"

_OBJECTS = r"(?P<x>\d+) objects: (?P<series>exact|most likely world|sampling|safe plan)"
_STRATEGY = r"(?P<series>LOOSE|TIGHT|NOINDEX)"

FIGURES = (
    Figure(
        LAHAR, "Figure 12", "Real time, by the number of objects",
        "Exact answers cost less than twice the most likely world, and orders of magnitude less than sampling.",
        "objects.realtime", _OBJECTS, "(object, t)/s", "objects", ("most likely world", "sampling"),
    ),
    Figure(
        LAHAR, "Figure 13", "Archived, by the number of objects",
        "In tuples, the most likely path and exact answers are equally fast. In objects, exact answers are 9 to 10 "
        "times slower. Sampling is orders of magnitude slower.",
        "objects.archived", _OBJECTS, "(object, t)/s", "objects", ("most likely world", "sampling"),
    ),
    Figure(
        LAHAR, "Figure 14a", "A safe plan, by the number of objects",
        "Even with many objects, a safe plan is much more efficient than sampling.",
        "objects.safe", _OBJECTS, "(object, t)/s", "objects", ("sampling",),
    ),
    Figure(
        LAHAR, "Figure 14b", "A safe plan, by the length of the archive",
        "The time is much better than the cubic bound of the analysis.",
        "classes.safe", r"(?P<x>[\d,]+) (?P<series>instants)", "s", "instants",
    ),
    Figure(
        SIMPMATCH, "Figures 8a and 11a", "Throughput, by the share of lost events",
        "Without losses 2,000,000 events/s (road) and 650,000 (synthetic); at 25% between 5,000 and 33,000. SASE+ is "
        "up to two orders of magnitude slower. Where a tree was too large, its speed is estimated from its nodes.",
        "relate.throughput",
        r"(?P<x>\d+)% lost: (?P<series>Anabranch|tree|early-stop tree|SASE\+ \(\d+\)|Baseline\w+)(, estimated)?$",
        "events/s", "events lost, %",
        ("tree", "early-stop tree", "SASE+ (30)", "SASE+ (60)", "BaselineStatic", "BaselineIgnore"),
        (Published("segments", 0, 650_000), Published("road", 0, 2_000_000)),
    ),
    Figure(
        SIMPMATCH, "Figure 9a", "Throughput, by k",
        "Fewer matches leave less to prune, so the throughput falls; the baselines do not depend on k.",
        "relate.selectivity",
        r"k = (?P<x>\d+): (?P<series>Anabranch|tree|early-stop tree|Baseline\w+)(, estimated)?$",
        "events/s", "k", ("tree", "early-stop tree", "BaselineStatic", "BaselineIgnore"),
    ),
    Figure(
        SIMPMATCH, "Figures 8b and 11b", "Accuracy, by the share of lost events",
        "About 90% of the decisions are correct if 10% of the events are lost (synthetic data).",
        "relate.accuracy",
        r"(?P<x>\d+)% lost: (?P<series>Anabranch|SASE\+ \(\d+\)|Baseline\w+)",
        "share", "events lost, %", ("SASE+ (30)", "SASE+ (60)", "BaselineStatic", "BaselineIgnore"),
        (Published("segments", 10, 0.9),), logarithmic=False,
    ),
    Figure(
        SIMPMATCH, "Figure 13", "Time of a pair of journeys, by its lost events",
        "The time of the tree grows exponentially; more lost events leave more to prune.",
        "relate.lost", r"(?P<x>\d+) lost: (?P<series>Anabranch|tree|early-stop tree)", "us/pair", "lost events",
        ("tree", "early-stop tree"),
    ),
    Figure(
        PREDICTION, "Figure 5", "Accuracy, by the number of vehicles",
        "The accuracy falls slightly with more vehicles, the recall most, because the processor is late.",
        "monitor.objects", r"(?P<x>\d+) vehicles: (?P<series>precision|recall|f)$", "", "vehicles", logarithmic=False,
    ),
    Figure(
        PREDICTION, "Figure 6", "F-measure with and without predictions",
        "Predictions are more accurate from 150 vehicles on, because plain values overload the processor.",
        "monitor.functions", r"(?P<x>\d+) vehicles, (?P<series>[\w, ]+): f$", "", "vehicles",
        ("values", "values, same tuple rate"), logarithmic=False,
    ),
    Figure(
        PREDICTION, "Figure 7", "Recall, by the policy of a full buffer",
        "The order is least contribution, oldest, random, newest; the best is within 1% of an unlimited buffer.",
        "monitor.policies", r"(?P<x>[\d.]+) s, (?P<series>[\w ]+): recall$", "", "window, s", logarithmic=False,
    ),
    Figure(
        PREDICTION, "Section 6.1", "A value constraint beside the join",
        "For 1,000 vehicles, a constraint reduces the processing time from 70 to 20 seconds: a ratio of 0.29.",
        "monitor.values", r"(?P<series>[\w, %]+): processor time", "CPU s per s", "vehicles",
    ),
    Figure(
        CCQ, "Figure 5", "Rate, by verbosity",
        "More alerts make all strategies slower. LOOSE is the slowest, NOINDEX the fastest.",
        "constrain.verbosity", rf"(?P<x>[\d.]+)%: {_STRATEGY}$", "events/s", "alerts of a query, % of events",
    ),
    Figure(
        CCQ, "Figure 6", "Rate, by the number of queries",
        "NOINDEX sustains 15,000 events/s for 100 queries, on a Xeon with 3.2 GHz of 2005.",
        "constrain.queries", rf"(?P<x>\d+) queries: {_STRATEGY}$", "events/s", "queries", (),
        (Published("", 100, 15_000),),
    ),
    Figure(
        CCQ, "Figure 7", "Rate, by the time between two events",
        "A longer time needs more memory and does not change the rate.",
        "constrain.length", rf"(?P<x>\d+) days: {_STRATEGY}$", "events/s", "days",
    ),
)  # fmt: skip


def points(figure: Figure, results: Results) -> list[Point]:
    """Return the points of a figure: measured ones, and those that the paper states for the measured workloads."""
    pattern = re.compile(figure.metric)
    found: dict[tuple[str, str, float], Point] = {}
    for record in results.of(figure.part):
        match = pattern.match(record["metric"])
        if match is None or record["unit"] != figure.unit:
            continue
        # Where the size is not part of the metric, it begins the name of the workload.
        groups = match.groupdict()
        x = _number(groups["x"] if groups.get("x") else record["workload"].partition(" ")[0])
        workload = record["workload"] if groups.get("x") else record["workload"].partition(" ")[2]
        source = ALGORITHM if groups["series"] in figure.algorithms else OURS
        found[workload, groups["series"], x] = Point(workload, groups["series"], x, record["value"], source)
    workloads = dict.fromkeys(point.workload for point in found.values())
    stated = [
        Point(workload, "stated in the paper", published.x, published.y, PAPER)
        for published in figure.published
        for workload in workloads
        if published.workload in workload
    ]
    return [*found.values(), *stated]


def _number(text: str) -> float:
    return float(text.replace(",", ""))
