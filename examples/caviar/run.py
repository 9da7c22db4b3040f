"""Run the queries of caviar.abq, and compare the answers with the labels of the videos."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
from prepare import CLEAN, FOLDER, NOISY, most_likely, read_activities, read_truth, streams_of, write_streams
from shared import options, quality_header, quality_line

import anabranch as ab
from anabranch.evaluation import Quality, qualities

WORKBOOK = Path(__file__).with_name("caviar.abq")

WITHIN = {"stopped": 1_000}
"""The tolerance between an answer and a frame, in milliseconds; 0 for the other queries."""

THRESHOLDS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95)

Answers = dict[str, pd.DataFrame]


def ask(streams: dict[str, pd.DataFrame], names: Collection[str], certain: bool) -> Answers:
    """Return the answers to the queries of the workbook over these streams, by name."""
    text = WORKBOOK.read_text(encoding="utf-8")
    session = ab.Session()
    session.execute(text.replace("MODEL INDEPENDENT", "MODEL CERTAIN") if certain else text)
    with tempfile.TemporaryDirectory(prefix="anabranch-caviar-") as folder:
        write_streams(streams, Path(folder))
        for name in streams:
            session.bind(name, Path(folder, f"{name}.parquet"))
        return {name: session.run(name).toPandas() for name in names}


def ask_all(folder: Path, truth: dict[str, pd.DataFrame], videos: Collection[str] | None = None) -> dict[str, Answers]:
    """Return the answers without noise, from the most probable activities, and from all with probabilities."""
    clean, noisy = (read_activities(folder, variant, videos) for variant in (CLEAN, NOISY))
    return {
        "without noise": ask(most_likely(clean), truth, certain=True),
        "most likely": ask(most_likely(noisy), truth, certain=True),
        "probabilities": ask(streams_of(noisy), truth, certain=False),
    }


def judge(name: str, answers: pd.DataFrame, truth: pd.DataFrame, thresholds: Collection[float]) -> list[Quality]:
    """Return the quality of the answers to a query at each threshold."""
    key = truth.columns[0]
    tables = (pa.Table.from_pandas(table, preserve_index=False) for table in (answers, truth))
    return qualities(*tables, key, thresholds, WITHIN.get(name, 0))


def best_elsewhere(name: str, answers: pd.DataFrame, truth: pd.DataFrame) -> Quality:
    """Return the quality over both halves of the videos, each at the best threshold of the other half."""
    key, parts = truth.columns[0], []
    # Keys begin with the number of their video.
    halves = [[table[table[key].str[:2].astype(int) % 2 == half] for table in (answers, truth)] for half in (0, 1)]
    for half, other in (halves, halves[::-1]):
        best = max(judge(name, *other, THRESHOLDS), key=lambda quality: quality.f1)
        parts += judge(name, *half, [best.threshold])
    counts = (sum(getattr(part, count) for part in parts) for count in ("answers", "right", "events", "found"))
    return Quality(float("nan"), *counts)


def report(name: str, answers: dict[str, Answers], truth: pd.DataFrame) -> Iterator[str]:
    """Yield the report on one query."""
    yield f"{name}: {len(truth):,} true{' within 1 s' if name in WITHIN else ''}"
    yield quality_header()
    for method in ("without noise", "most likely"):
        yield quality_line(method, *judge(name, answers[method][name], truth, [0]))
    judged = judge(name, answers["probabilities"][name], truth, THRESHOLDS)
    best = max(judged, key=lambda quality: quality.f1)
    for quality in judged:
        yield quality_line(f"probability > {quality.threshold:g}{', the best' if quality is best else ''}", quality)
    yield quality_line("best of other half of videos", best_elsewhere(name, answers["probabilities"][name], truth))


def main() -> None:
    """Print the report."""
    folder = options("Compare the answers to caviar.abq with the labels.", FOLDER).parse_args().data
    truth = read_truth(folder)
    answers = ask_all(folder, truth)
    for name, events in truth.items():
        print("\n".join(report(name, answers, events)), end="\n\n")


if __name__ == "__main__":
    main()
