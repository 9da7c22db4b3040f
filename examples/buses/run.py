"""Ask the queries of buses.abq, and one of them again with most reports left out, to see what answers are worth."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
from prepare import DATA, FOLDER, LINES, find_data, read_names, read_reports, read_stops, stream_of, visits_of

import anabranch as ab
from anabranch.evaluation import Bin, Quality, calibration, qualities

WORKBOOK = Path(__file__).with_name("buses.abq")

OFTEN = 10
"""How many times as often buses run, where the real day has too few that meet."""

THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)

PAIR = ["stop", "first", "second"]


def ask(visits: pd.DataFrame, query: str = "together") -> pd.DataFrame:
    """The answers to a query of the workbook: stop, first and second journey, and probability."""
    session = ab.Session()
    session.execute_file(str(WORKBOOK))
    with tempfile.TemporaryDirectory(prefix="anabranch-buses-") as folder:
        stream_of(visits).to_parquet(Path(folder, "visits.parquet"), index=False)
        session.bind("visits", Path(folder, "visits.parquet"))
        answers = session.run(query).toArrow().flatten()
    a, b = (name.split(".")[0] for name in answers.column_names[:3:2])
    return answers.to_pandas()[[f"{a}.stop", f"{a}.journey", f"{b}.journey", "probability"]].set_axis(
        [*PAIR, "probability"], axis="columns"
    )


# ------------------------------------------------------------ the day


def report_day(visits: pd.DataFrame, names: pd.Series) -> Iterator[str]:
    """Which buses were together, where that is unsure, and which overtook which."""
    together = ask(visits)
    yield from _by_buses(together, "together", "and")
    yield "  " + ", ".join(f"{name}: {len(meetings(visits, suffix))}" for name, suffix in METHODS.items())
    unsure = together[together["probability"] < 1].sort_values("probability", ascending=False)
    yield from ("", f"unsure: {len(unsure)} of them")
    for row in unsure.itertuples():
        yield f"  {row.probability:.3f}  {row.first} and {row.second} at {names[row.stop]}"
    yield ""
    yield from _by_buses(ask(visits, "overtook"), "overtook", "overtook")


def _by_buses(answers: pd.DataFrame, title: str, word: str) -> Iterator[str]:
    yield f"{title}: {len(answers)} answers, {answers['probability'].sum():.1f} expected"
    for (a, b), rows in answers.groupby(PAIR[1:]):
        yield f"  {a} {word} {b}: {rows['probability'].sum():.1f} of {len(rows)} stops"


# ------------------------------------------------------------ with fewer reports


def every(reports: pd.DataFrame, n: int, beginning: int) -> pd.DataFrame:
    """Every n-th report of each journey."""
    return reports[reports.groupby("journey").cumcount() % n == beginning]


def more_often(visits: pd.DataFrame) -> pd.DataFrame:
    """The same visits, if as many buses had set out in a tenth of the time."""
    sooner = visits["start"] * (1 - 1 / OFTEN)
    times = [name for name in visits if name.startswith(tuple(LINES))]
    return visits.assign(**{name: visits[name] - sooner for name in times})


def meetings(visits: pd.DataFrame, suffix: str) -> pd.DataFrame:
    """Who was together if a lost event was at the instant of this column, or at the middle of its window."""
    spans = visits[["stop", "journey"]]
    for event in LINES:
        middle = (visits[f"{event}_lo"] + visits[f"{event}_hi"]) / 2
        spans = spans.assign(**{event: visits[event].fillna(visits[event + suffix] if suffix else middle)})
    pairs = spans.merge(spans, on="stop")
    meet = (pairs["arrival_x"] <= pairs["departure_y"]) & (pairs["arrival_y"] <= pairs["departure_x"])
    pairs = pairs[meet & (pairs["journey_x"] < pairs["journey_y"])]
    return pairs[["stop", "journey_x", "journey_y"]].set_axis(PAIR, axis="columns").assign(probability=1.0)


METHODS = {"reports at the stop": "_seen", "straight line": "_straight", "middle of the window": ""}
"""What one may take for the instant of a lost event."""


def compare(full: pd.DataFrame, thinned: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Who was really together, and who was by each method, given visits by all reports and by some."""
    full = full.dropna(subset=list(LINES))
    known = pd.MultiIndex.from_frame(full[["stop", "journey"]])
    truth, answers = [], []
    for number, visits in enumerate(thinned):
        mine = pd.MultiIndex.from_frame(visits[["stop", "journey"]])
        visits = visits[mine.isin(known)]
        truth.append(meetings(full[known.isin(mine)], "").assign(part=number))
        of = {"probability": ask(visits)} | {name: meetings(visits, suffix) for name, suffix in METHODS.items()}
        answers.append({name: rows.assign(part=number) for name, rows in of.items()})
    return pd.concat(truth), {name: pd.concat([of[name] for of in answers]) for name in answers[0]}


def judge(answers: pd.DataFrame, truth: pd.DataFrame, thresholds: Sequence[float]) -> list[Quality]:
    """How good answers are, at each threshold."""
    return qualities(_about_pairs(answers), _about_pairs(truth), "pair", thresholds, within=0)


def reliability(answers: pd.DataFrame, truth: pd.DataFrame) -> list[Bin]:
    """What the probabilities say, and what was true."""
    return calibration(_about_pairs(answers), _about_pairs(truth), "pair")


def _about_pairs(rows: pd.DataFrame) -> pa.Table:
    pair = rows[["part", *PAIR]].astype(str).agg(", ".join, axis="columns").astype(str)
    return pa.table(
        {
            "pair": pa.array(pair, pa.string()),
            "t": pa.nulls(len(rows), pa.int64()).fill_null(0),
            "probability": pa.array(rows["probability"]),
        }
    )


def report_quality(truth: pd.DataFrame, answers: dict[str, pd.DataFrame]) -> Iterator[str]:
    """The lines that compare the methods."""
    expected = answers["probability"]["probability"].sum()
    yield f"  {len(truth):,} true; {expected:,.1f} expected"
    yield f"  {'':<24}{'answers':>9}{'precision':>11}{'recall':>9}{'F1':>8}"
    for name in METHODS:
        yield _line(name, *judge(answers[name], truth, [0]))
    for each in judge(answers["probability"], truth, THRESHOLDS):
        yield _line(f"probability > {each.threshold:g}", each)


def _line(which: str, quality: Quality) -> str:
    figures = f"{quality.answers:>9,}{quality.precision:>11.3f}{quality.recall:>9.3f}{quality.f1:>8.3f}"
    return f"  {which:<24}{figures}"


def report_reliability(bins: Sequence[Bin]) -> Iterator[str]:
    """The lines that hold probabilities against the shares that are true."""
    yield f"  {'probability':<18}{'answers':>9}{'said':>8}{'true':>8}"
    for each in bins:
        yield f"  {each.low:.1f} to {each.high:<11.1f}{each.answers:>9,}{each.predicted:>8.3f}{each.observed:>8.3f}"


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Ask buses.abq, and hold the answers against what more reports say.")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder that has {FOLDER}")
    parser.add_argument("--every", type=int, default=3, help="which reports are kept for the comparison: every n-th")
    given = parser.parse_args()
    folder = find_data(given.data)
    reports, stops = read_reports(folder), read_stops(folder)
    visits = visits_of(reports, stops)
    print("\n".join(report_day(visits, read_names(folder))), end="\n\n")
    some = [visits_of(every(reports, given.every, beginning), stops) for beginning in range(given.every)]
    print(f"one report in {given.every}, the real day")
    print("\n".join(report_quality(*compare(visits, some))), end="\n\n")
    truth, answers = compare(more_often(visits), [more_often(each) for each in some])
    print(f"one report in {given.every}, buses {OFTEN} times as often")
    print("\n".join(report_quality(truth, answers)), end="\n\n")
    print("\n".join(report_reliability(reliability(answers["probability"], truth))))


if __name__ == "__main__":
    main()
