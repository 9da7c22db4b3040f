"""Run the queries of buoys.abq, and count the answers by year."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import pandas as pd
import pyarrow as pa
from prepare import FOLDER, read_readings, weeks_of, write_weeks
from shared import options

import anabranch as ab

WORKBOOK = Path(__file__).with_name("buoys.abq")


def ask(weeks: pd.DataFrame, *queries: str) -> list[pa.Table]:
    """Return the answers to queries of the workbook."""
    (answers,) = ask_variants(weeks, queries, [{}])
    return answers


def ask_variants(
    weeks: pd.DataFrame, queries: Sequence[str], variants: Sequence[Mapping[str, str]]
) -> list[list[pa.Table]]:
    """Return the answers to queries of the workbook for each variant, which replaces texts in the workbook.

    All variants run in one pass over the weeks.
    """
    session = ab.Session()
    for number, variant in enumerate(variants):
        text = WORKBOOK.read_text(encoding="utf-8")
        names = {f"QUERY {query} AS": f"QUERY {query}_{number} AS" for query in queries}
        for old, new in {**variant, **names}.items():
            text = text.replace(old, new)
        session.execute(text.replace("CREATE ", "CREATE OR REPLACE "))
    with tempfile.TemporaryDirectory(prefix="anabranch-buoys-") as folder:
        write_weeks(weeks, Path(folder, "weeks.parquet"))
        session.bind("weeks", Path(folder, "weeks.parquet"))
        names = [f"{query}_{number}" for number, query in product(range(len(variants)), queries)]
        tables = [answers.toArrow() for answers in session.run_all(names).values()]
    session.release()
    return [tables[first : first + len(queries)] for first in range(0, len(tables), len(queries))]


def warmest(answers: pa.Table) -> pa.Table:
    """Return the answer with the warmest five buoys of each week, sorted by time, with their mean as `anomaly`."""
    means = [sum(event["anomaly"] for event in five) / len(five) for five in answers["v"].to_pylist()]
    table = answers.append_column("anomaly", pa.array(means, pa.float64()))
    order = table.select(["t", "anomaly"]).to_pandas().reset_index().sort_values(["t", "anomaly"])
    return table.take(pa.array(order.groupby("t")["index"].last()))


# ------------------------------------------------------------ report


def report_warm(weeks: pd.DataFrame, answers: pa.Table) -> Iterator[str]:
    """Yield the report on warm buoys by year, and the warmest weeks."""
    known = weeks.dropna(subset=["anomaly"])
    by_year = known.groupby(known["t"].dt.year)
    times = answers["t"].to_pandas()
    table = pd.DataFrame(
        {
            "buoys": by_year["buoy"].nunique(),
            "warm": (known["anomaly"] >= 1.5).groupby(known["t"].dt.year).sum(),
            "answers": times.groupby(times.dt.year).size(),
            "in weeks": times.groupby(times.dt.year).nunique(),
        }
    )
    yield f"warm: {len(times):,} answers in {times.nunique()} weeks"
    yield from _lines(table)
    yield ""
    yield "the warmest five of a week, every eighth week"
    for row in warmest(answers).to_pylist()[::8]:
        yield f"  {row['t']:%Y-%m-%d}  {row['anomaly']:.1f}  {', '.join(sorted(event['buoy'] for event in row['v']))}"


def report_waves(wave: pa.Table, back: pa.Table) -> Iterator[str]:
    """Yield how often warmth travelled to the east after wind, and how often to the west, by year."""
    times = {"wave": wave["t"].to_pandas(), "back": back["t"].to_pandas()}
    yield "; ".join(f"{name}: {len(t):,} answers" for name, t in times.items())
    yield from _lines(pd.DataFrame({name: t.groupby(t.dt.year).size() for name, t in times.items()}))
    yield ""
    yield "the first wave of 1997"
    of_year = sorted((row for row in wave.to_pylist() if row["t"].year == 1997), key=_order)
    for name in ("burst", "one", "two", "three") if of_year else ():
        event = of_year[0][name]
        value = f"wind {event['wind']:.1f} m/s" if name == "burst" else f"{event['rise']:+.1f} degrees in four weeks"
        yield f"  {name:<6} {event['t']:%Y-%m-%d}  {event['buoy']:<8} {value}"


def report_bounds(weeks: pd.DataFrame) -> Iterator[str]:
    """Yield the counts of both queries with other bounds: wind, rise, and days to the first and to each next buoy."""
    yield "  wind   rise  first   next      wave      back   in 1997: wave      back"
    bounds = list(product((4, 5, 6), (1, 1.25), (42, 56), (21, 35)))
    variants = [
        {
            "wind >= 5": f"wind >= {wind}", "rise >= 1": f"rise >= {rise}",
            "56 DAYS": f"{first} DAYS", "21 DAYS": f"{after} DAYS",
        }
        for wind, rise, first, after in bounds
    ]  # fmt: skip
    by_variant = ask_variants(weeks, ("wave", "back"), variants)
    for (wind, rise, first, after), answers in zip(bounds, by_variant, strict=True):
        times = [table["t"].to_pandas() for table in answers]
        counts = [len(t) for t in times] + [(t.dt.year == 1997).sum() for t in times]
        numbers = "".join(f"{count:>{width},}" for count, width in zip(counts, (10, 10, 16, 10), strict=True))
        yield f"  {wind:>4}{rise:>7}{first:>7}{after:>7}{numbers}"


def _order(row: dict[str, dict[str, object]]) -> tuple[object, ...]:
    events = [row[name] for name in ("burst", "one", "two", "three")]
    return *(event["t"] for event in events), *(event["buoy"] for event in events)


def _lines(table: pd.DataFrame) -> Iterator[str]:
    """Yield a line per year."""
    yield "  year" + "".join(f"{name:>10}" for name in table)
    for year, row in table.fillna(0).astype(int).iterrows():
        yield f"  {year}" + "".join(f"{number:>10,}" for number in row)


def main() -> None:
    """Print the report."""
    parser = options("Run the queries of buoys.abq.", FOLDER)
    parser.add_argument("--bounds", action="store_true", help="only count the waves, with other bounds")
    arguments = parser.parse_args()
    weeks = weeks_of(read_readings(arguments.data))
    if arguments.bounds:
        print("\n".join(report_bounds(weeks)))
        return
    warm, wave, back = ask(weeks, "warm", "wave", "back")
    print("\n".join([*report_warm(weeks, warm), "", *report_waves(wave, back)]))


if __name__ == "__main__":
    main()
