"""Lose sightings on purpose, and hold what is still found against what all sightings say."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from prepare import HALVES, WORKBOOK, find_data, half_of, options, read_reads, sightings_of, thinned

import anabranch as ab
from anabranch.binding.binder import bind
from anabranch.sequence.analysis import analyse
from anabranch.sequence.files import write_fits
from anabranch.sequence.fit import fit_delays
from anabranch.sequence.history import make_history

QUERIES = ("to_chair", "there_and_back")
LEARNED = ("to_chair", "to_bed")

RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
COPIES = 20

WRITTEN = 0.2
"""The MISS of the workbook."""

CLOSE_LOOK = 0.3
"""The rate at which thresholds are compared."""

THRESHOLDS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
LIKELY = 0.5

LEFT_BED, SOON = ("sitting on chair", "ambulating"), 20.0
"""Labels of somebody off the bed; and the seconds in which somebody walks who was just read at the chair."""

REACHABLE, AS_READ, LIKELY_ONES, ALL = "the last was read", "as read", f"probability >= {LIKELY}", "all answers"
"""What is told of each rate; the first is the most that can be found."""


# ------------------------------------------------------------ asking


def learn(history: pd.DataFrame, folder: Path) -> None:
    """Learn the delays, as `anabranch fit delays` does."""
    session = ab.Session()
    session.execute_file(str(WORKBOOK))
    rows = {"sightings": pa.Table.from_pandas(history, preserve_index=False)}
    for name in LEARNED:
        query = session.catalog.query(f"{name}_as_read")
        write_fits(fit_delays(make_history(analyse(bind(query, session.catalog)), rows, {})), folder / name)


def ask(
    sightings: pd.DataFrame, folder: Path, queries: Sequence[str], instead: Mapping[str, str] | None = None
) -> dict[str, pd.DataFrame]:
    """The answers of the workbook (name, trial, t_start, t, probability), with other words for some of its own."""
    text = WORKBOOK.read_text(encoding="utf-8")
    for words, others in (instead or {}).items():
        text = text.replace(words, others)
    Path(folder, WORKBOOK.name).write_text(text, encoding="utf-8")
    sightings.to_parquet(folder / "sightings.parquet", index=False)
    session = ab.Session()
    session.execute_file(str(folder / WORKBOOK.name))
    return {name: _flat(answers.toPandas()) for name, answers in session.run_all(queries).items()}


def _flat(answers: pd.DataFrame) -> pd.DataFrame:
    """The name of each answer is that of its last event, and its trial what stands before the number of a copy."""
    names = pd.Series([event["trial"] for event in answers.iloc[:, -1]], answers.index, dtype=str)
    return answers[["t_start", "t", "probability"]].assign(name=names, trial=names.str.split("#").str[0])


@dataclass(frozen=True)
class Asked:
    """The answers to each query: of all sightings, and by the rate of those that are lost.

    Attributes
    ----------
    truth : what is read of all sightings
    kept : the trial and time of the sightings that are not lost
    as_read : without MISS
    found : with it, SCORING POSTERIOR
    joint : with it, SCORING JOINT, of the last query at one rate
    whole : of all sightings, with the MISS of the workbook
    """

    truth: Mapping[str, pd.DataFrame]
    kept: Mapping[float, pd.DataFrame]
    as_read: Mapping[float, Mapping[str, pd.DataFrame]]
    found: Mapping[float, Mapping[str, pd.DataFrame]]
    joint: Mapping[str, pd.DataFrame]
    whole: Mapping[str, pd.DataFrame]


def ask_all(sightings: pd.DataFrame, rates: Sequence[float] = RATES, copies: int = COPIES) -> Asked:
    """Ask about each half with the delays of the other."""
    plain = [f"{name}_as_read" for name in QUERIES]
    kept = {rate: thinned(sightings, rate, copies) for rate in rates}
    with tempfile.TemporaryDirectory(prefix="anabranch-passages-") as name:
        folder = Path(name)
        truth = ask(sightings, folder, plain)
        every = pd.concat([rows.assign(trial=rows["trial"] + f"#{rate}") for rate, rows in kept.items()])
        read = ask(every, folder, plain)
        parts: dict[float | str, list[dict[str, pd.DataFrame]]] = {key: [] for key in ("whole", "joint", *rates)}
        for half in range(HALVES):
            learn(sightings[half_of(sightings["trial"]) != half], folder)
            parts["whole"].append(ask(sightings[half_of(sightings["trial"]) == half], folder, QUERIES))
            for rate, rows in kept.items():
                own, instead = rows[half_of(rows["trial"]) == half], {f" {WRITTEN}": f" {rate}"}
                parts[rate].append(ask(own, folder, QUERIES, instead))
                if rate == CLOSE_LOOK:
                    parts["joint"].append(ask(own, folder, QUERIES[-1:], instead | {"POSTERIOR": "JOINT"}))
    joined = {key: {name: pd.concat([part[name] for part in of]) for name in of[0]} for key, of in parts.items() if of}
    return Asked(
        {name: truth[f"{name}_as_read"] for name in QUERIES},
        kept,
        {rate: {name: _at(rate, read[f"{name}_as_read"]) for name in QUERIES} for rate in rates},
        {rate: joined[rate] for rate in rates},
        joined.get("joint", {}),
        joined["whole"],
    )


def _at(rate: float, answers: pd.DataFrame) -> pd.DataFrame:
    return answers[answers["name"].str.endswith(f"#{rate}")]


# ------------------------------------------------------------ judging


def figures(asked: Asked, reads: pd.DataFrame, copies: int = COPIES) -> pd.DataFrame:
    """Of each query, rate and way to ask: answers, recall, precision, and the share with somebody off the bed."""
    rows = []
    for rate, found in asked.found.items():
        for query, truth in asked.truth.items():
            kept = asked.kept[rate].assign(trial=asked.kept[rate]["trial"].str.split("#").str[0])
            told = {
                REACHABLE: judge(kept[is_true(kept, truth)], truth, copies),
                AS_READ: judge(asked.as_read[rate][query], truth, copies, reads),
                LIKELY_ONES: judge(likely(found[query]), truth, copies, reads),
                ALL: judge(found[query], truth, copies, reads),
            }
            rows += [{"query": query, "lost": rate, "asked": which, **each} for which, each in told.items()]
    return pd.DataFrame(rows)


def judge(
    answers: pd.DataFrame, truth: pd.DataFrame, copies: int = COPIES, reads: pd.DataFrame | None = None
) -> dict[str, float]:
    """How good answers are: each is true if a passage ends at the same sighting where nothing is lost."""
    right = is_true(answers, truth)
    found = {"answers": len(answers), "recall": right.sum() / (copies * len(truth))}
    found["precision"] = right.mean() if len(right) else np.nan
    return found if reads is None else found | {"off bed": left_bed(answers, reads).mean()}


def is_true(answers: pd.DataFrame, truth: pd.DataFrame) -> np.ndarray:
    """Which rows have the trial and time of a true passage."""
    ends = pd.MultiIndex.from_frame(truth[["trial", "t"]])
    return pd.MultiIndex.from_frame(answers[["trial", "t"]]).isin(ends)


def likely(answers: pd.DataFrame, threshold: float = LIKELY) -> pd.DataFrame:
    """Those that a THRESHOLD leaves."""
    return answers[answers["probability"] >= threshold]


def left_bed(answers: pd.DataFrame, reads: pd.DataFrame) -> np.ndarray:
    """Whether, from the first event of each answer to soon after the last, a label says off the bed."""
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


# ------------------------------------------------------------ telling


def report_rates(query: str, asked: Asked, told: pd.DataFrame) -> Iterator[str]:
    """What is found at each rate: as it is read, and with what may be missing."""
    yield f"{query}: {len(asked.truth[query])} where nothing is lost; {COPIES} times each, less what is lost"
    yield f"  {'':<6}{'the last':>10}{AS_READ:>18}{LIKELY_ONES:>36}{ALL:>36}"
    columns = "".join(f"{name:>9}" for name in ("answers", "recall", "precis.", "off bed"))
    yield f"  {'lost':<6}{'was read':>10}{columns[9:18]}{columns[27:]}{columns}{columns}"
    for rate, of_rate in told[told["query"] == query].groupby("lost"):
        by = of_rate.set_index("asked")
        line = f"  {rate:<6.0%}{by.loc[REACHABLE, 'recall']:>10.3f}"
        line += f"{by.loc[AS_READ, 'recall']:>9.3f}{by.loc[AS_READ, 'off bed']:>9.3f}"
        for row in (by.loc[LIKELY_ONES], by.loc[ALL]):
            line += f"{row['answers']:>9,}{row['recall']:>9.3f}{row['precision']:>9.3f}{row['off bed']:>9.3f}"
        yield line


def report_whole(query: str, asked: Asked, reads: pd.DataFrame) -> str:
    """What is found besides where nothing is lost on purpose."""
    more = asked.whole[query][~is_true(asked.whole[query], asked.truth[query])]
    off = left_bed(more, reads).sum()
    return f"nothing lost on purpose: {len(more)} answers besides, and in {off} of them somebody was off the bed"


def report_thresholds(query: str, asked: Asked) -> Iterator[str]:
    """What a threshold costs and brings, by both ways to score."""
    yield f"{query}, {CLOSE_LOOK:.0%} lost: what a threshold leaves"
    yield f"  {'':<10}{'JOINT':>28}{'POSTERIOR':>28}"
    yield f"  {'':<10}" + 2 * f"{'answers':>10}{'recall':>8}{'precision':>10}"
    for threshold in THRESHOLDS:
        both = (asked.joint[query], asked.found[CLOSE_LOOK][query])
        found = [judge(likely(answers, threshold), asked.truth[query]) for answers in both]
        texts = (f"{each['answers']:>10,}{each['recall']:>8.3f}{each['precision']:>10.3f}" for each in found)
        yield f"  {threshold:<10}{''.join(texts)}"


def main() -> None:
    """Print the report."""
    parser = options("Lose sightings, and hold what passages.abq finds against all of them.")
    parser.add_argument("--output", type=Path, help="a CSV file for the figures, which draw.py takes")
    given = parser.parse_args()
    reads = read_reads(find_data(given.data))
    asked = ask_all(sightings_of(reads))
    told = figures(asked, reads)
    if given.output is not None:
        told.to_csv(given.output, index=False)
    for query in QUERIES:
        print("\n".join([*report_rates(query, asked, told), report_whole(query, asked, reads)]), end="\n\n")
    print("\n".join(report_thresholds(QUERIES[-1], asked)))


if __name__ == "__main__":
    main()
