"""Infer the activities in the held-out trials, and compare them with the labels, by seconds and by events."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from prepare import ACTIVITIES, READINGS, WORKBOOK, Room, every_second, fit, options, read_rooms, write_room
from shared import quality_header, quality_line

import anabranch as ab
from anabranch.evaluation import Quality, qualities
from anabranch.inference.hmm import Hmm
from anabranch.inference.infer import Inference

METHODS = ("FILTER", "MLE", "MARGINALS", "VITERBI")
"""MARGINALS are the marginals of SMOOTH."""

QUERIES = ("got_up", "left_bed")
CERTAIN = ("viterbi", "mle")

WITHIN = 5.0
"""The tolerance between an answer and an event, in seconds."""

THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)

ON_BED = ("sitting on bed", "lying")


# ------------------------------------------------------------ seconds


def infer_all(rooms: Sequence[Room], models: Sequence[Hmm]) -> pd.DataFrame:
    """Return the held-out seconds with a reading: the label, and the activity by each method."""
    parts = []
    for room, hmm in zip(rooms, models, strict=True):
        for _, rows in room.test.groupby("trial"):
            inferred = {method: _activities(hmm, method, rows) for method in METHODS}
            parts.append(rows.assign(**{"reading alone": _reading_alone(hmm, rows)}, **inferred))
    return pd.concat(parts)


def _activities(hmm: Hmm, method: str, rows: pd.DataFrame) -> np.ndarray:
    """Return the most probable activity of each second with a reading, in one trial."""
    seconds = rows["t"].to_numpy() - rows["t"].min()
    starts = np.searchsorted(seconds, np.arange(seconds[-1] + 2))
    readings = rows["reading"].map(READINGS.index).to_numpy(np.int32)
    inference = Inference(hmm, method)
    inferred = inference.advance(inference.start(), starts, readings)
    p = np.zeros((len(starts) - 1, len(hmm.locations)))
    p[inferred.step, inferred.location] = inferred.p
    return np.array(hmm.locations)[p[seconds].argmax(axis=1)]


def _reading_alone(hmm: Hmm, rows: pd.DataFrame) -> np.ndarray:
    """Return the activity with the highest probability of each reading: inference without memory."""
    starts = hmm.reader_starts.tolist()
    likely = [hmm.reader_locations[a + hmm.reader_p[a:b].argmax()] for a, b in zip(starts, starts[1:], strict=False)]
    return np.array(hmm.locations)[np.array(likely)[rows["reading"].map(READINGS.index)]]


def report_accuracy(inferred: pd.DataFrame) -> Iterator[str]:
    """Yield the share of correct seconds, overall and by true activity."""
    names = list(ACTIVITIES.values())
    yield f"  {'share correct':<22}{'all':>8}{''.join(f'{name:>18}' for name in names)}"
    counts = inferred["activity"].value_counts()
    yield f"  {'seconds':<22}{len(inferred):>8,}{''.join(f'{counts[name]:>18,}' for name in names)}"
    for method in ("reading alone", *METHODS):
        right = inferred[method] == inferred["activity"]
        shares = right.groupby(inferred["activity"]).mean()
        yield f"  {method:<22}{right.mean():>8.3f}{''.join(f'{shares[name]:>18.3f}' for name in names)}"


# ------------------------------------------------------------ events


def true_events(room: Room) -> dict[str, pd.DataFrame]:
    """Return when each query was true in the held-out trials: trial and t."""
    labels = every_second(room.test)
    runs = labels[labels["activity"] != labels.groupby("trial")["activity"].shift()]
    before = runs.groupby("trial")["activity"].shift()
    first = runs.groupby("trial")["activity"].shift(2)
    got_up = (first == "lying") & (before == "sitting on bed") & (runs["activity"] == "ambulating")
    left_bed = before.isin(ON_BED) & ~runs["activity"].isin(ON_BED)
    return {name: runs.loc[true, ["trial", "t"]] for name, true in (("got_up", got_up), ("left_bed", left_bed))}


def ask(room: Room, hmm: Hmm, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the answers for the held-out trials by query, up to the last reading of each trial."""
    last = room.test.groupby("trial")["t"].max()
    with tempfile.TemporaryDirectory(prefix="anabranch-batteryless-") as folder:
        write_room(room, hmm, Path(folder))
        session = ab.Session()
        session.execute_file(str(Path(folder, WORKBOOK.name)))
        answers = {name: session.run(name).toPandas() for name in names}
    return {name: rows[rows["t"] <= rows["trial"].map(last)] for name, rows in answers.items()}


def ask_all(rooms: Sequence[Room], models: Sequence[Hmm]) -> dict[str, pd.DataFrame]:
    """Return the answers for all rooms."""
    names = [query + suffix for query in QUERIES for suffix in ("", *(f"_{method}" for method in CERTAIN))]
    by_room = [ask(room, hmm, names) for room, hmm in zip(rooms, models, strict=True)]
    return {name: pd.concat([answers[name] for answers in by_room]) for name in names}


def judge(answers: pd.DataFrame, truth: pd.DataFrame, thresholds: Sequence[float]) -> list[Quality]:
    """Return the quality of answers at each threshold."""
    return qualities(_arrow(answers), _arrow(truth), "trial", thresholds, WITHIN)


def _arrow(table: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(table, preserve_index=False)


def report_events(query: str, answers: dict[str, pd.DataFrame], truth: pd.DataFrame) -> Iterator[str]:
    """Yield the report on one query."""
    expected = answers[query]["probability"].sum()
    yield f"{query}: {len(truth):,} true, within {WITHIN:g} s; SMOOTH expects {expected:.1f}"
    yield quality_header()
    for method in CERTAIN:
        yield quality_line(method.upper(), *judge(answers[f"{query}_{method}"], truth, [0]))
    judged = judge(answers[query], truth, THRESHOLDS)
    best = max(judged, key=lambda quality: quality.f1)
    for quality in judged:
        yield quality_line(f"SMOOTH, probability > {quality.threshold:g}{', best' if quality is best else ''}", quality)


def main() -> None:
    """Print the report."""
    arguments = options("Compare the activities that batteryless.abq infers with the labels.").parse_args()
    rooms = read_rooms(arguments.data, arguments.third)
    models = [fit(room.history) for room in rooms]
    print("\n".join(report_accuracy(infer_all(rooms, models))), end="\n\n")
    truth = [true_events(room) for room in rooms]
    answers = ask_all(rooms, models)
    for query in QUERIES:
        print("\n".join(report_events(query, answers, pd.concat([events[query] for events in truth]))), end="\n\n")


if __name__ == "__main__":
    main()
