"""The tables of the documentation: each function returns rows of text, of which the first is the header."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.growth import EXPONENT
from benchmarks.growth import points as curve_points
from benchmarks.harness import format_ratio, format_value
from benchmarks.papers import FIGURES, points
from benchmarks.report.charts import peer_rows, stage_order, stage_rows
from benchmarks.results import Results

Rows = list[list[str]]

GROWTH_PARTS = tuple(f"{family}.growth" for family in "constrain inference monitor pattern relate sequence".split())

FIGURE_PARTS = tuple(figure.part for figure in FIGURES)

KINDS = ("PATTERN", "SEQUENCE", "RELATE", "MONITOR", "CONSTRAIN")

SPARK = "Spark, 2 cores"

INFERENCE = ("FILTER", "SMOOTH", "VITERBI")
"""The methods whose growth is shown; the report has all."""


def _shown(value: float | None) -> str:
    return "" if value is None else format_value(value)


# ------------------------------------------------------------ all kinds


def whole(results: Results) -> Rows:
    """Rows per second of each kind, and the seconds of a small file."""
    formats = ("Parquet", "CSV", "JSON lines")
    small = "1,000 rows of Parquet"
    rows = [["kind", "one process", *(f"Spark, {name}" for name in formats), f"{small}, s", "processor time, s"]]
    for kind in KINDS:
        found = results.of(f"whole.{kind.lower()}")
        by_spark = [f"{SPARK}, {name}" for name in (*formats, small)]
        names = ["one process, Parquet", *by_spark, "few.parquet: processor time"]
        values = [found.value(name) for name in names]
        rows.append([kind, *map(_shown, values)])
    return rows


def micro_batches(results: Results) -> Rows:
    """The seconds of a micro-batch of each size, and the rows per second of the larger sizes."""
    by_kind: dict[str, list[str]] = {}
    header = ["kind"]
    for workload, found in results.of("streaming.batches").by_workload().items():
        kind, _, size = workload.partition(": micro-batches of ")
        cells = {f"{size}, s": found.value(f"{SPARK}, one micro-batch")}
        if not size.startswith("1,000 rows"):
            cells["rows/s"] = found.value(f"{SPARK}, sustained")
        by_kind.setdefault(kind, []).extend(map(_shown, cells.values()))
        header += cells if kind == KINDS[0] else ()
    return [header, *([kind, *cells, *[""] * (len(header) - 1 - len(cells))] for kind, cells in by_kind.items())]


def operators(results: Results) -> Rows:
    """The processor time of the operators of a small micro-batch by the number of buckets, in milliseconds."""
    by_kind = results.of("streaming.operators").by_workload()
    kinds = [workload.partition(": ")[0] for workload in by_kind]
    counts = dict.fromkeys(record["metric"] for record in results.of("streaming.operators"))
    cells = {count: [_shown(found.value(count)) for found in by_kind.values()] for count in counts}
    return [["processor time, ms", *kinds], *([count, *values] for count, values in cells.items())]


def latencies(results: Results) -> Rows:
    """The median and the 99% quantile of the time from a row to its answers, by the rate of arrival."""
    by_kind: dict[str, dict[str, str]] = {}
    for workload, found in results.of("streaming.rates").by_workload().items():
        kind, _, rate = workload.partition(": ")
        values = [_shown(found.value(metric)) for metric in ("median latency", "99% of rows")]
        by_kind.setdefault(kind, {})[rate.rpartition(", ")[0]] = " / ".join(values)
    rates = list(dict.fromkeys(rate for cells in by_kind.values() for rate in cells))
    return [["kind, s", *rates], *([kind, *(cells.get(rate, "") for rate in rates)] for kind, cells in by_kind.items())]


def idle(results: Results) -> Rows:
    """A micro-batch with few and with many idle keys."""
    rows = [["", "value", "unit", "ratio"]]
    for record in results.of("whole.idle"):
        if "load average" not in record["metric"]:
            name = f"{record['workload']}, {record['metric']}"
            rows.append([name, format_value(record["value"]), record["unit"], format_ratio(record["ratio"])])
    return rows


def stages(results: Results) -> Rows:
    """Seconds per million rows of each stage."""
    by_kind: dict[str, list[str]] = {}
    for row in stage_rows(results.of("whole.stages")):
        by_kind.setdefault(row["kind"], []).append(format_value(row["seconds"]))
    return [["kind", *stage_order()], *([kind, *values] for kind, values in by_kind.items())]


def memory(results: Results) -> Rows:
    """The peak of the memory by the number of rows."""
    roles = ("JVM", "workers", "all processes")
    rows = [["", "rows", *(f"{role}, MB" for role in roles), "rows/s"]]
    for workload, found in results.of("whole.memory").by_workload().items():
        sizes = dict.fromkeys(record["metric"].partition(" rows")[0] for record in found)
        for size in sizes:
            values = [found.value(f"{size} rows: peak of {role}") for role in roles]
            rows.append(
                [workload.split(", ")[1], size, *map(_shown, values), _shown(found.value(f"{size} rows: rate"))]
            )
    return rows


def growth(results: Results) -> Rows:
    """The exponents of all curves; of inference, only three methods."""
    rows = [["", "dimension", "from", "to", "times as long", EXPONENT]]
    for part in GROWTH_PARTS:
        for workload, found in results.of(part).by_workload().items():
            family, method = part.partition(".")[0], workload.partition(",")[0]
            if family == "inference" and method not in INFERENCE:
                continue
            name = f"{family}, {method}" if family == "inference" else family
            seconds = {record["metric"]: record["value"] for record in found if record["unit"] == "s"}
            for dimension, curve in curve_points(seconds).items():
                least, most = min(curve), max(curve)
                exponent = found.value(f"{dimension}: {EXPONENT}") or 0.0
                ends = [f"{least:,g}" if least % 1 else f"{least:,.0f}", f"{most:,.0f}"]
                rows.append([name, dimension, *ends, format_value(curve[most] / curve[least]), f"{exponent:.2f}"])
    return rows


def peers(results: Results) -> Rows:
    """The contestants of each task, the fastest first."""
    rows = [["task", "", "seconds", "first run, s", "processor time, s", "peak memory, MB"]]
    for workload, found in results.of("peers").by_workload().items():
        for number, row in enumerate(peer_rows(found)):
            name = f"**{row['name']}**" if row["ours"] else row["name"]
            values = [_shown(row[field]) for field in ("seconds", "first", "processor", "memory")]
            rows.append([workload if number == 0 else "", name, *values])
    return rows


# ------------------------------------------------------------ kernels


def inference(results: Results) -> Rows:
    """Thousands of steps per second of each method."""
    methods = ("FILTER, prune 0.0001", "MLE", "SMOOTH, prune 0.0001", "VITERBI", "PARTICLE, prune 0.0001")
    rows = [["thousand steps/s", *(method.partition(",")[0] for method in methods), "VITERBI / hmmlearn"]]
    for workload, found in results.of("inference.kernel").by_workload().items():
        values = [found.value(method) for method in methods]
        ratio = found.ratio("VITERBI by hmmlearn")
        rows.append([workload, *(_shown(value and value / 1000) for value in values), _shown(ratio and 1 / ratio)])
    return rows


def pattern_kernel(results: Results) -> Rows:
    """Rows per second of the kernel."""
    rows = [["", "million rows/s", "million (key, t)/s"]]
    for workload, found in results.of("pattern.kernel").by_workload().items():
        values = [found.value("one core", unit) for unit in ("rows/s", "(key, t)/s")]
        rows.append([workload, *(_shown(value and value / 1e6) for value in values)])
    return rows


def objects(results: Results) -> Rows:
    """Exact answers, the most likely world and sampling for the most objects."""
    rows = [["", "exact, or safe plan", "most likely world", "sampling", "largest error of sampling"]]
    for part in ("realtime", "archived", "safe"):
        for workload, found in results.of(f"objects.{part}").by_workload().items():
            count = max(int(record["metric"].partition(" ")[0]) for record in found)
            thousands = partial(_thousands, found, f"{count} objects")
            exact = thousands("exact") or thousands("safe plan")
            error = found.value(f"{count} objects: largest error of sampling")
            name = f"{part}, {workload.partition(',')[0]}, {count} objects"
            rows.append([name, exact, thousands("most likely world"), thousands("sampling"), _shown(error)])
    return rows


def _thousands(results: Results, prefix: str, name: str) -> str:
    """Thousands of instants of objects per second, with the ratio to exact answers."""
    metric, unit = f"{prefix}: {name}", "(object, t)/s"
    value = results.value(metric, unit)
    ratio = next((r["ratio"] for r in results if (r["metric"], r["unit"]) == (metric, unit)), None)
    return "" if value is None else _shown(value / 1000) + (f" ({format_ratio(ratio)})" if ratio else "")


# ------------------------------------------------------------ figures of the papers


def figure(part: str) -> Callable[[Results], Rows]:
    """Return the function that makes the table of a figure: a row for each series, a column for each size."""
    (found,) = [figure for figure in FIGURES if figure.part == part]

    def rows(results: Results) -> Rows:
        all_points = points(found, results)
        sizes = sorted({point.x for point in all_points})
        values = {(point.workload, point.series, point.x): point.y for point in all_points}
        table = [[f"{found.unit or found.x_title}", found.x_title, *(f"{size:g}" for size in sizes)]]
        previous = ""
        for workload, series in dict.fromkeys((point.workload, point.series) for point in all_points):
            cells = [_shown(values.get((workload, series, size))) for size in sizes]
            table.append([workload if workload != previous else "", series, *cells])
            previous = workload
        return table

    return rows
