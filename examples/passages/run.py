"""Remove sightings on purpose, and compare the answers with those from all sightings."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from prepare import FOLDER, HALVES, WORKBOOK, half_of, read_reads, sightings_of, thinned
from shared import options

import anabranch as ab
from anabranch.binding.binder import bind
from anabranch.sequence.analysis import analyse
from anabranch.sequence.files import write_fits
from anabranch.sequence.fit import fit_delays
from anabranch.sequence.history import make_history
from anabranch.sequence.occurrence_fit import Stated

QUERIES = ("to_chair", "there_and_back")
LEARNED = ("to_chair", "to_bed")

RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
COPIES = 20

WORKBOOK_MISS = 0.2
"""The MISS of the workbook."""

CLOSE_LOOK = 0.3
"""The rate for the comparison of thresholds."""

THRESHOLDS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
LIKELY = 0.5

LEFT_BED, SOON = ("sitting on chair", "ambulating"), 20.0
"""Labels of a person off the bed; and the seconds after a read at the chair in which a person may still walk."""

REACHABLE, AS_READ, LIKELY_ONES, ALL = "the last was read", "as read", f"probability >= {LIKELY}", "all answers"
"""The methods; the first is the upper bound of the recall."""


# ------------------------------------------------------------ queries


def learn(history: pd.DataFrame, folder: Path) -> None:
    """Fit the delays, like `anabranch fit delays`."""
    session = ab.Session()
    session.execute_file(str(WORKBOOK))
    rows = {"sightings": pa.Table.from_pandas(history, preserve_index=False)}
    # Nobody gets from the bed to the chair, or back, without being upright.
    certain = Stated(occurs={"rose": (1.0, 0.0), "back": (1.0, 0.0)})
    for name in LEARNED:
        query = session.catalog.query(f"{name}_as_read")
        write_fits(fit_delays(make_history(analyse(bind(query, session.catalog)), rows, {}), certain), folder / name)


def ask(
    sightings: pd.DataFrame, folder: Path, queries: Sequence[str], replace: Mapping[str, str] | None = None
) -> dict[str, pd.DataFrame]:
    """Return the answers (name, trial, t_start, t, probability) by query; `replace` replaces texts in the workbook."""
    text = WORKBOOK.read_text(encoding="utf-8")
    for old, new in (replace or {}).items():
        text = text.replace(old, new)
    Path(folder, WORKBOOK.name).write_text(text, encoding="utf-8")
    sightings.to_parquet(folder / "sightings.parquet", index=False)
    session = ab.Session()
    session.execute_file(str(folder / WORKBOOK.name))
    return {name: _flat(answers.toPandas()) for name, answers in session.run_all(queries).items()}


def _flat(answers: pd.DataFrame) -> pd.DataFrame:
    """Return answers without structs; the name is that of the last event, the trial is the name without the copy."""
    names = pd.Series([event["trial"] for event in answers.iloc[:, -1]], answers.index, dtype=str)
    return answers[["t_start", "t", "probability"]].assign(name=names, trial=names.str.split("#").str[0])


@dataclass(frozen=True)
class Results:
    """The answers to each query, from all sightings and by the rate of lost ones.

    Attributes
    ----------
    truth : mapping
        Without MISS, from all sightings.
    kept : mapping
        The trial and time of the sightings that are not lost.
    as_read : mapping
        Without MISS.
    found : mapping
        With MISS, SCORING POSTERIOR.
    joint : mapping
        With MISS, SCORING JOINT, for the last query at one rate.
    whole : mapping
        With the MISS of the workbook, from all sightings.
    """

    truth: Mapping[str, pd.DataFrame]
    kept: Mapping[float, pd.DataFrame]
    as_read: Mapping[float, Mapping[str, pd.DataFrame]]
    found: Mapping[float, Mapping[str, pd.DataFrame]]
    joint: Mapping[str, pd.DataFrame]
    whole: Mapping[str, pd.DataFrame]


def ask_all(sightings: pd.DataFrame, rates: Sequence[float] = RATES, copies: int = COPIES) -> Results:
    """Query each half with the delays of the other half."""
    plain = [f"{name}_as_read" for name in QUERIES]
    kept = {rate: thinned(sightings, rate, copies) for rate in rates}
    with tempfile.TemporaryDirectory(prefix="anabranch-passages-") as name:
        folder = Path(name)
        truth = ask(sightings, folder, plain)
        all_rates = pd.concat([rows.assign(trial=rows["trial"] + f"#{rate}") for rate, rows in kept.items()])
        read = ask(all_rates, folder, plain)
        parts: dict[float | str, list[dict[str, pd.DataFrame]]] = {key: [] for key in ("whole", "joint", *rates)}
        for half in range(HALVES):
            learn(sightings[half_of(sightings["trial"]) != half], folder)
            parts["whole"].append(ask(sightings[half_of(sightings["trial"]) == half], folder, QUERIES))
            for rate, rows in kept.items():
                half_rows, replace = rows[half_of(rows["trial"]) == half], {f" {WORKBOOK_MISS}": f" {rate}"}
                parts[rate].append(ask(half_rows, folder, QUERIES, replace))
                if rate == CLOSE_LOOK:
                    parts["joint"].append(ask(half_rows, folder, QUERIES[-1:], replace | {"POSTERIOR": "JOINT"}))
    joined = {
        key: {name: pd.concat([half[name] for half in halves]) for name in halves[0]}
        for key, halves in parts.items()
        if halves
    }
    return Results(
        {name: truth[f"{name}_as_read"] for name in QUERIES},
        kept,
        {rate: {name: _at(rate, read[f"{name}_as_read"]) for name in QUERIES} for rate in rates},
        {rate: joined[rate] for rate in rates},
        joined.get("joint", {}),
        joined["whole"],
    )


def _at(rate: float, answers: pd.DataFrame) -> pd.DataFrame:
    return answers[answers["name"].str.endswith(f"#{rate}")]


# ------------------------------------------------------------ evaluation


def figures(results: Results, reads: pd.DataFrame, copies: int = COPIES) -> pd.DataFrame:
    """Return answers, recall, precision and the share with a person off the bed, by query, rate and method."""
    rows = []
    for rate, found in results.found.items():
        for query, truth in results.truth.items():
            kept = results.kept[rate].assign(trial=results.kept[rate]["trial"].str.split("#").str[0])
            by_method = {
                REACHABLE: judge(kept[is_true(kept, truth)], truth, copies),
                AS_READ: judge(results.as_read[rate][query], truth, copies, reads),
                LIKELY_ONES: judge(likely(found[query]), truth, copies, reads),
                ALL: judge(found[query], truth, copies, reads),
            }
            rows += [{"query": query, "lost": rate, "method": method, **values} for method, values in by_method.items()]
    return pd.DataFrame(rows)


def judge(
    answers: pd.DataFrame, truth: pd.DataFrame, copies: int = COPIES, reads: pd.DataFrame | None = None
) -> dict[str, float]:
    """Return recall and precision; an answer is true if, without losses, a passage ends at the same sighting."""
    right = is_true(answers, truth)
    values = {"answers": len(answers), "recall": right.sum() / (copies * len(truth))}
    values["precision"] = right.mean() if len(right) else np.nan
    return values if reads is None else values | {"off bed": left_bed(answers, reads).mean()}


def is_true(answers: pd.DataFrame, truth: pd.DataFrame) -> np.ndarray:
    """Return which rows have the trial and time of a true passage."""
    ends = pd.MultiIndex.from_frame(truth[["trial", "t"]])
    return pd.MultiIndex.from_frame(answers[["trial", "t"]]).isin(ends)


def likely(answers: pd.DataFrame, threshold: float = LIKELY) -> pd.DataFrame:
    """Return the answers that a THRESHOLD keeps."""
    return answers[answers["probability"] >= threshold]


def left_bed(answers: pd.DataFrame, reads: pd.DataFrame) -> np.ndarray:
    """Return whether a label is off the bed, from the first event of each answer to soon after the last."""
    off = reads[reads["activity"].isin(LEFT_BED)].groupby("trial")["t"].apply(np.asarray).to_dict()
    none = np.empty(0)
    return np.array(
        [
            np.searchsorted(off.get(row.trial, none), row.t_start)
            < np.searchsorted(off.get(row.trial, none), row.t + SOON)
            for row in answers.itertuples()
        ],
        bool,
    )


# ------------------------------------------------------------ report


def report_rates(query: str, results: Results, table: pd.DataFrame) -> Iterator[str]:
    """Yield the figures at each rate, by method."""
    yield f"{query}: {len(results.truth[query])} passages without losses; {COPIES} copies of each trial"
    yield f"  {'':<6}{'the last':>10}{AS_READ:>18}{LIKELY_ONES:>36}{ALL:>36}"
    columns = "".join(f"{name:>9}" for name in ("answers", "recall", "precis.", "off bed"))
    yield f"  {'lost':<6}{'was read':>10}{columns[9:18]}{columns[27:]}{columns}{columns}"
    for rate, rows in table[table["query"] == query].groupby("lost"):
        methods = rows.set_index("method")
        line = f"  {rate:<6.0%}{methods.loc[REACHABLE, 'recall']:>10.3f}"
        line += f"{methods.loc[AS_READ, 'recall']:>9.3f}{methods.loc[AS_READ, 'off bed']:>9.3f}"
        for row in (methods.loc[LIKELY_ONES], methods.loc[ALL]):
            line += f"{row['answers']:>9,}{row['recall']:>9.3f}{row['precision']:>9.3f}{row['off bed']:>9.3f}"
        yield line


def report_whole(query: str, results: Results, reads: pd.DataFrame) -> str:
    """Return a line about the additional answers without losses."""
    additional = results.whole[query][~is_true(results.whole[query], results.truth[query])]
    off = left_bed(additional, reads).sum()
    return f"nothing removed: {len(additional)} additional answers; in {off} of them the person was off the bed"


def report_thresholds(query: str, results: Results) -> Iterator[str]:
    """Yield the figures at each threshold, for both scorings."""
    yield f"{query}, {CLOSE_LOOK:.0%} lost: answers that a threshold keeps"
    yield f"  {'':<10}{'JOINT':>28}{'POSTERIOR':>28}"
    yield f"  {'':<10}" + 2 * f"{'answers':>10}{'recall':>8}{'precision':>10}"
    for threshold in THRESHOLDS:
        both = (results.joint[query], results.found[CLOSE_LOOK][query])
        judged = [judge(likely(answers, threshold), results.truth[query]) for answers in both]
        texts = (f"{row['answers']:>10,}{row['recall']:>8.3f}{row['precision']:>10.3f}" for row in judged)
        yield f"  {threshold:<10}{''.join(texts)}"


def main() -> None:
    """Print the report."""
    parser = options("Remove sightings, and compare the answers to passages.abq with those from all sightings.", FOLDER)
    parser.add_argument("--output", type=Path, help="a CSV file for the figures, which draw.py reads")
    arguments = parser.parse_args()
    reads = read_reads(arguments.data)
    results = ask_all(sightings_of(reads))
    table = figures(results, reads)
    if arguments.output is not None:
        table.to_csv(arguments.output, index=False)
    for query in QUERIES:
        print("\n".join([*report_rates(query, results, table), report_whole(query, results, reads)]), end="\n\n")
    print("\n".join(report_thresholds(QUERIES[-1], results)))


if __name__ == "__main__":
    main()
