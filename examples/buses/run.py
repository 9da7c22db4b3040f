"""Run the queries of buses.abq, and one of them again without most reports, to evaluate its answers."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
from prepare import FOLDER, LINES, journeys_of, read_names, read_reports, read_stops, stream_of, visits_of
from shared import calibration_lines, options, quality_header, quality_line

import anabranch as ab
from anabranch.evaluation import Bin, Quality, calibration, qualities

WORKBOOK = Path(__file__).with_name("buses.abq")

OFTEN = 10
"""How many times as often buses run in the second comparison; on the real day few buses meet."""

WIDTH = 24

THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)

PAIR = ["stop", "first", "second"]


def ask(visits: pd.DataFrame, query: str = "together") -> pd.DataFrame:
    """Return the answers to a query about visits: stop, first and second journey, and probability."""
    answers = _answers(query, "visits", stream_of(visits))
    a, b = (name.split(".")[0] for name in answers.column_names[:3:2])
    return answers.to_pandas()[[f"{a}.stop", f"{a}.journey", f"{b}.journey", "probability"]].set_axis(
        [*PAIR, "probability"], axis="columns"
    )


def convoys(visits: pd.DataFrame) -> pd.DataFrame:
    """Return the journeys that meet at three or more stops: first, second, probability and expected number of stops."""
    answers = _answers("convoys", "journeys", journeys_of(visits)).to_pandas()
    columns = ["a.journey", "b.journey", "probability", "expected"]
    return answers[columns].set_axis([*PAIR[1:], *columns[2:]], axis="columns").sort_values(PAIR[1:], ignore_index=True)


def _answers(query: str, stream: str, rows: pd.DataFrame) -> pa.Table:
    """Return the answers to a query of the workbook over the rows of its stream."""
    session = ab.Session()
    session.execute_file(str(WORKBOOK))
    with tempfile.TemporaryDirectory(prefix="anabranch-buses-") as folder:
        path = Path(folder, f"{stream}.parquet")
        rows.to_parquet(path, index=False)
        session.bind(stream, path)
        return session.run(query).toArrow().flatten()


# ------------------------------------------------------------ the day


def report_day(visits: pd.DataFrame, names: pd.Series) -> Iterator[str]:
    """Yield which buses were together, where that is uncertain, which overtook which, and which were convoys."""
    together = ask(visits)
    yield from _by_buses(together, "together", "and")
    yield "  " + ", ".join(f"{name}: {len(meetings(visits, suffix))}" for name, suffix in METHODS.items())
    uncertain = together[together["probability"] < 1].sort_values("probability", ascending=False)
    yield from ("", f"uncertain: {len(uncertain)} of them")
    for row in uncertain.itertuples():
        yield f"  {row.probability:.3f}  {row.first} and {row.second} at {names[row.stop]}"
    yield ""
    yield from _by_buses(ask(visits, "overtook"), "overtook", "overtook")
    yield from ("", "three or more stops together")
    for row in convoys(visits).itertuples():
        yield f"  {row.probability:.3f}  {row.first} and {row.second}: {row.expected:.2f} stops expected"


def _by_buses(answers: pd.DataFrame, title: str, word: str) -> Iterator[str]:
    yield f"{title}: {len(answers)} answers, {answers['probability'].sum():.1f} expected"
    for (a, b), rows in answers.groupby(PAIR[1:]):
        yield f"  {a} {word} {b}: {rows['probability'].sum():.1f} of {len(rows)} stops"


# ------------------------------------------------------------ with fewer reports


def every(reports: pd.DataFrame, n: int, first: int) -> pd.DataFrame:
    """Return every n-th report of each journey."""
    return reports[reports.groupby("journey").cumcount() % n == first]


def more_often(visits: pd.DataFrame) -> pd.DataFrame:
    """Return the same visits, if all buses had started in a tenth of the time."""
    shift = visits["start"] * (1 - 1 / OFTEN)
    times = [name for name in visits if name.startswith(tuple(LINES))]
    return visits.assign(**{name: visits[name] - shift for name in times})


def meetings(visits: pd.DataFrame, suffix: str) -> pd.DataFrame:
    """Return the buses that were together if lost events were at the times of a column, or in mid-window."""
    spans = visits[["stop", "journey"]]
    for event in LINES:
        middle = (visits[f"{event}_lo"] + visits[f"{event}_hi"]) / 2
        spans = spans.assign(**{event: visits[event].fillna(visits[event + suffix] if suffix else middle)})
    pairs = spans.merge(spans, on="stop")
    meet = (pairs["arrival_x"] <= pairs["departure_y"]) & (pairs["arrival_y"] <= pairs["departure_x"])
    pairs = pairs[meet & (pairs["journey_x"] < pairs["journey_y"])]
    return pairs[["stop", "journey_x", "journey_y"]].set_axis(PAIR, axis="columns").assign(probability=1.0)


METHODS = {"reports at the stop": "_seen", "straight line": "_straight", "middle of the window": ""}
"""Estimates of the time of a lost event, and the columns that have them."""


def compare(full: pd.DataFrame, thinned: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Return the buses that were together by all reports, and by each method from fewer reports."""
    full = full.dropna(subset=list(LINES))
    known = pd.MultiIndex.from_frame(full[["stop", "journey"]])
    truth, answers = [], []
    for number, visits in enumerate(thinned):
        visited = pd.MultiIndex.from_frame(visits[["stop", "journey"]])
        visits = visits[visited.isin(known)]
        truth.append(meetings(full[known.isin(visited)], "").assign(part=number))
        by_method = {"probability": ask(visits)} | {name: meetings(visits, suffix) for name, suffix in METHODS.items()}
        answers.append({name: rows.assign(part=number) for name, rows in by_method.items()})
    return pd.concat(truth), {name: pd.concat([part[name] for part in answers]) for name in answers[0]}


def judge(answers: pd.DataFrame, truth: pd.DataFrame, thresholds: Sequence[float]) -> list[Quality]:
    """Return the quality of answers at each threshold."""
    return qualities(_by_pair(answers), _by_pair(truth), "pair", thresholds, within=0)


def reliability(answers: pd.DataFrame, truth: pd.DataFrame) -> list[Bin]:
    """Return the calibration of the probabilities."""
    return calibration(_by_pair(answers), _by_pair(truth), "pair")


def _by_pair(rows: pd.DataFrame) -> pa.Table:
    pair = rows[["part", *PAIR]].astype(str).agg(", ".join, axis="columns").astype(str)
    return pa.table(
        {
            "pair": pa.array(pair, pa.string()),
            "t": pa.nulls(len(rows), pa.int64()).fill_null(0),
            "probability": pa.array(rows["probability"]),
        }
    )


def report_quality(truth: pd.DataFrame, answers: dict[str, pd.DataFrame]) -> Iterator[str]:
    """Yield the comparison of the methods."""
    expected = answers["probability"]["probability"].sum()
    yield f"  {len(truth):,} true; {expected:,.1f} expected"
    yield quality_header(WIDTH)
    for name in METHODS:
        yield quality_line(name, *judge(answers[name], truth, [0]), WIDTH)
    for quality in judge(answers["probability"], truth, THRESHOLDS):
        yield quality_line(f"probability > {quality.threshold:g}", quality, WIDTH)


def main() -> None:
    """Print the report."""
    parser = options("Run buses.abq, and compare its answers with those from more reports.", FOLDER)
    parser.add_argument("--every", type=int, default=3, help="keep every n-th report for the comparison")
    arguments = parser.parse_args()
    folder, n = arguments.data, arguments.every
    reports, stops = read_reports(folder), read_stops(folder)
    visits = visits_of(reports, stops)
    print("\n".join(report_day(visits, read_names(folder))), end="\n\n")
    thinned = [visits_of(every(reports, n, first), stops) for first in range(n)]
    print(f"one report in {n}, the real day")
    print("\n".join(report_quality(*compare(visits, thinned))), end="\n\n")
    truth, answers = compare(more_often(visits), [more_often(part) for part in thinned])
    print(f"one report in {n}, buses {OFTEN} times as often")
    print("\n".join(report_quality(truth, answers)), end="\n\n")
    print("\n".join(calibration_lines(reliability(answers["probability"], truth))))


if __name__ == "__main__":
    main()
