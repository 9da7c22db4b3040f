"""Infer what people did in the trials held out, and hold it against the labels: second by second, and by events."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from prepare import ACTIVITIES, READINGS, WORKBOOK, Room, every_second, find_data, fit, options, read_rooms, write_room

import anabranch as ab
from anabranch.evaluation import Quality, qualities
from anabranch.inference.infer import Inference
from anabranch.inference.model import Hmm

METHODS = ("FILTER", "MLE", "MARGINALS", "VITERBI")
"""MARGINALS are those of SMOOTH."""

QUERIES = ("got_up", "left_bed")
CERTAIN = ("viterbi", "mle")

WITHIN = 5.0
"""Seconds between an answer and the event it is about."""

THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)

ON_BED = ("sitting on bed", "lying")


# ------------------------------------------------------------ second by second


def infer_all(rooms: Sequence[Room], models: Sequence[Hmm]) -> pd.DataFrame:
    """What each method takes for the activity of each second held out that has a reading, beside the label."""
    parts = []
    for room, hmm in zip(rooms, models, strict=True):
        for _, rows in room.test.groupby("trial"):
            inferred = {method: _activities(hmm, method, rows) for method in METHODS}
            parts.append(rows.assign(**{"reading alone": _reading_alone(hmm, rows)}, **inferred))
    return pd.concat(parts)


def _activities(hmm: Hmm, method: str, rows: pd.DataFrame) -> np.ndarray:
    """The most probable activity of each second that has a reading, in one trial."""
    seconds = rows["t"].to_numpy() - rows["t"].min()
    starts = np.searchsorted(seconds, np.arange(seconds[-1] + 2))
    readings = rows["reading"].map(READINGS.index).to_numpy(np.int32)
    inference = Inference(hmm, method)
    inferred = inference.advance(inference.start(), starts, readings)
    p = np.zeros((len(starts) - 1, len(hmm.locations)))
    p[inferred.step, inferred.location] = inferred.p
    return np.array(hmm.locations)[p[seconds].argmax(axis=1)]


def _reading_alone(hmm: Hmm, rows: pd.DataFrame) -> np.ndarray:
    """The activity that gives each reading most often: inference without memory."""
    starts = hmm.reader_starts.tolist()
    likely = [hmm.reader_locations[a + hmm.reader_p[a:b].argmax()] for a, b in zip(starts, starts[1:], strict=False)]
    return np.array(hmm.locations)[np.array(likely)[rows["reading"].map(READINGS.index)]]


def report_accuracy(inferred: pd.DataFrame) -> Iterator[str]:
    """The share of seconds that are right, overall and by what people really did."""
    names = list(ACTIVITIES.values())
    yield f"  {'share that is right':<22}{'all':>8}{''.join(f'{name:>18}' for name in names)}"
    counts = inferred["activity"].value_counts()
    yield f"  {'seconds':<22}{len(inferred):>8,}{''.join(f'{counts[name]:>18,}' for name in names)}"
    for method in ("reading alone", *METHODS):
        right = inferred[method] == inferred["activity"]
        of = right.groupby(inferred["activity"]).mean()
        yield f"  {method:<22}{right.mean():>8.3f}{''.join(f'{of[name]:>18.3f}' for name in names)}"


# ------------------------------------------------------------ events


def true_events(room: Room) -> dict[str, pd.DataFrame]:
    """When each query really held in the trials held out: trial and t."""
    labels = every_second(room.test)
    runs = labels[labels["activity"] != labels.groupby("trial")["activity"].shift()]
    before = runs.groupby("trial")["activity"].shift()
    first = runs.groupby("trial")["activity"].shift(2)
    got_up = (first == "lying") & (before == "sitting on bed") & (runs["activity"] == "ambulating")
    left_bed = before.isin(ON_BED) & ~runs["activity"].isin(ON_BED)
    return {name: runs.loc[held, ["trial", "t"]] for name, held in (("got_up", got_up), ("left_bed", left_bed))}


def ask(room: Room, hmm: Hmm, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The answers of the workbook about the trials held out, by query, up to the last reading of each trial."""
    last = room.test.groupby("trial")["t"].max()
    with tempfile.TemporaryDirectory(prefix="anabranch-batteryless-") as folder:
        write_room(room, hmm, Path(folder))
        session = ab.Session()
        session.execute_file(str(Path(folder, WORKBOOK.name)))
        found = {name: session.run(name).toPandas() for name in names}
    return {name: rows[rows["t"] <= rows["trial"].map(last)] for name, rows in found.items()}


def ask_all(rooms: Sequence[Room], models: Sequence[Hmm]) -> dict[str, pd.DataFrame]:
    """The answers about all rooms."""
    names = [query + method for query in QUERIES for method in ("", *(f"_{each}" for each in CERTAIN))]
    of_rooms = [ask(room, hmm, names) for room, hmm in zip(rooms, models, strict=True)]
    return {name: pd.concat([answers[name] for answers in of_rooms]) for name in names}


def judge(answers: pd.DataFrame, truth: pd.DataFrame, thresholds: Sequence[float]) -> list[Quality]:
    """How good answers are, at each threshold."""
    return qualities(_arrow(answers), _arrow(truth), "trial", thresholds, WITHIN)


def _arrow(table: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(table, preserve_index=False)


def report_events(query: str, answers: dict[str, pd.DataFrame], truth: pd.DataFrame) -> Iterator[str]:
    """The lines about one query."""
    expected = answers[query]["probability"].sum()
    yield f"{query}: {len(truth):,} true, within {WITHIN:g} s; SMOOTH expects {expected:.1f}"
    yield f"  {'':<32}{'answers':>9}{'precision':>11}{'recall':>9}{'F1':>8}"
    for method in CERTAIN:
        yield _line(method.upper(), *judge(answers[f"{query}_{method}"], truth, [0]))
    found = judge(answers[query], truth, THRESHOLDS)
    best = max(found, key=lambda each: each.f1)
    for each in found:
        yield _line(f"SMOOTH, probability > {each.threshold:g}{', best' if each is best else ''}", each)


def _line(which: str, quality: Quality) -> str:
    figures = f"{quality.answers:>9,}{quality.precision:>11.3f}{quality.recall:>9.3f}{quality.f1:>8.3f}"
    return f"  {which:<32}{figures}"


def main() -> None:
    """Print the report."""
    given = options("Hold what batteryless.abq infers against the labels.").parse_args()
    rooms = read_rooms(find_data(given.data), given.third)
    models = [fit(room.history) for room in rooms]
    print("\n".join(report_accuracy(infer_all(rooms, models))), end="\n\n")
    truth = [true_events(room) for room in rooms]
    answers = ask_all(rooms, models)
    for query in QUERIES:
        print("\n".join(report_events(query, answers, pd.concat([of[query] for of in truth]))), end="\n\n")


if __name__ == "__main__":
    main()
