"""Evaluates the answers of a query of any kind against ground truth: `anabranch evaluate` and `Session.evaluate`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch import markup
from anabranch.arrays import F64, I64, Bools
from anabranch.columns.calibration import write_map
from anabranch.columns.statuses import FINAL
from anabranch.errors import DataError
from anabranch.evaluation import columns
from anabranch.evaluation.learning import LEAST_ANSWERS, held_out, learn_map
from anabranch.evaluation.matching import Spans, episodes, group_codes, have_near
from anabranch.evaluation.quality import Quality, episode_qualities
from anabranch.evaluation.reliability import Bin, bin_numbers, bins_of
from anabranch.evaluation.scores import Scores, scores
from anabranch.text import probability_text, short, value_text

THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)

MOST_CANDIDATES = 50
"""The best threshold is sought among this many, spread over the answers."""

WORST_BINS, EXAMPLES = 3, 3


@dataclass(frozen=True, slots=True)
class WorstBin:
    """A bin that contributes much to the calibration error, with answers that show why."""

    bin: Bin
    examples: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How good answers are.

    Attributes
    ----------
    matched_by : tuple of str
        The columns that an answer and a true event have in common.
    timed : bool
        Whether their times were compared, too.
    tolerance, gap : float
        The largest distance in time between an answer and its event, and between answers of one episode.
    events, unanswered : int
        The number of true events, and of those without any answer nearby.
    left_out : int
        Answers without a probability or a time, or that were not final.
    scores : Scores
    bins : tuple of Bin
        The reliability: the mean probability and the share of true answers, by probability.
    qualities : tuple of Quality
        Precision, recall and F1 of episodes at each threshold.
    best : Quality
        At the threshold with the highest F1.
    worst : tuple of WorstBin
        The bins that contribute most to the calibration error.
    probabilities, true, clusters : arrays
        Of each answer: its probability, whether it is true, and the number of its episode.
    """

    matched_by: tuple[str, ...]
    timed: bool
    tolerance: float
    gap: float
    events: int
    unanswered: int
    left_out: int
    scores: Scores
    bins: tuple[Bin, ...]
    qualities: tuple[Quality, ...]
    best: Quality
    worst: tuple[WorstBin, ...]
    probabilities: F64 = field(repr=False)
    true: Bools = field(repr=False)
    clusters: I64 = field(repr=False)

    def learn(self, path: str | Path) -> Scores:
        """Learn a calibration map from the answers and write it to a file, for CALIBRATED BY.

        Returns
        -------
        Scores
            Of the calibrated probabilities of answers that were held out, in five folds of episodes.
        """
        if self.scores.count < LEAST_ANSWERS:
            reason = f"a calibration map is learned from at least {LEAST_ANSWERS} answers, not {self.scores.count}"
            raise DataError(f"{reason}; lower THRESHOLD, or use more data")
        write_map(learn_map(self.probabilities, self.true), Path(path))
        calibrated = held_out(self.probabilities, self.true, self.clusters)
        return scores(calibrated, self.true, clusters=self.clusters)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, for JSON; a figure that is not defined is None."""
        qualities = [_quality(quality) for quality in self.qualities]
        return {
            "matched_by": list(self.matched_by), "timed": self.timed, "tolerance": self.tolerance, "gap": self.gap,
            "events": self.events, "unanswered": self.unanswered, "left_out": self.left_out,
            "scores": {name: _known(value) for name, value in asdict(self.scores).items()},
            "best": _quality(self.best), "thresholds": qualities, "bins": [asdict(bin) for bin in self.bins],
            "worst": [{**asdict(worst.bin), "examples": list(worst.examples)} for worst in self.worst],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(f"{name:<18} {text}" for name, text in self.facts())

    def _repr_html_(self) -> str:
        shown = self.distinct_qualities()
        qualities = markup.table(
            ("threshold", "episodes", "right", "found", "precision", "recall", "F1"),
            [(f"{it.threshold:g}", *(f"{n:,}" for n in (it.answers, it.right, it.found)),
              *(_share_bar(share) for share in (it.precision, it.recall, it.f1))) for it in shown],
            numeric=range(4),
            best=shown.index(self.best) if self.best in shown else None,
        )  # fmt: skip
        bins = markup.table(
            ("probability", "answers", "mean probability", "share of true answers"),
            [(f"{it.low:g} to {it.high:g}", f"{it.answers:,}", probability_text(it.predicted),
              _share_bar(it.observed, it.predicted)) for it in self.bins],
            numeric=(1, 2),
        )  # fmt: skip
        legend = markup.remark("A bar is the share of true answers, the line across it their mean probability.")
        return markup.output("Evaluation", markup.facts(self.facts()), qualities, bins, legend)

    def distinct_qualities(self) -> list[Quality]:
        """The qualities by threshold where they change, and the best."""
        shown: dict[tuple[int, int, int], Quality] = {}
        for quality in (self.best, *self.qualities):
            if quality.answers:
                shown.setdefault((quality.answers, quality.right, quality.found), quality)
        return sorted(shown.values(), key=lambda quality: quality.threshold)

    def facts(self) -> list[tuple[str, str]]:
        """Return the main figures as names and texts."""
        found, best = self.scores, self.best
        matched = [*self.matched_by, *([f"time, within {self.tolerance:g}"] if self.timed else [])]
        unanswered = f", {self.unanswered:,} of them without an answer nearby" if self.unanswered else ""
        return [
            ("answers", f"{found.count:,}, {int(self.true.sum()):,} of them true; matched by {' and '.join(matched)}"),
            ("true events", f"{self.events:,}{unanswered}"),
            ("Brier score", f"{found.brier:.4f}; the best constant has {found.constant:.4f}"),
            ("calibration error", f"{found.calibration_error:.4f} ± {found.standard_error:.4f}"),
            ("resolution", f"{found.resolution:.4f}"),
            (
                "best threshold",
                f"{best.threshold:g}: precision {best.precision:.3f}, recall {best.recall:.3f}, F1 {best.f1:.3f}",
            ),
        ]


def evaluate(
    answers: pa.Table,
    truth: pa.Table,
    *,
    tolerance: float = 0.0,
    gap: float | None = None,
    by: Sequence[str] | None = None,
    time: str | None = None,
    probability: str = "probability",
    label: str | None = None,
    where: Sequence[str] = (),
    bins: int = 10,
    thresholds: Sequence[float] = THRESHOLDS,
) -> Evaluation:
    """Compare answers of any kind of query with the events that really happened.

    An answer is true if an event of its keys overlaps it or is at most `tolerance` away; without times in both tables,
    if an event has its keys. Precision and recall count *episodes*: answers with the same keys that overlap, or follow
    within `gap`, are one, so that several answers about one event count once. Each event counts once in recall.

    Parameters
    ----------
    answers : pa.Table
        The answers of a query. Those that are not final are left out.
    truth : pa.Table
        The events that happened, with their keys and times.
    tolerance, gap : float
        In the unit of the times; seconds for timestamps. The default of `gap` is the tolerance.
    by : sequence of str, optional
        The columns that are compared, as `ANSWER` or `ANSWER=TRUTH`; see `columns.key_columns`.
    time : str, optional
        The time columns, as `ANSWER` or `ANSWER=TRUTH`, each a column or two with a comma between them. By default
        `t`, or `valid_from,valid_to`, or `t_from,t_to`.
    probability : str
        The column that is evaluated, such as `calibrated`.
    label : str, optional
        The column of the truth that says which of its rows are true; by default `true`. Without it, all are.
    where : sequence of str
        `COLUMN=VALUE` or `COLUMN!=VALUE`: only answers for which all of these hold. An empty value is NULL, so `y.tag=`
        selects the matches in which y is missing.
    bins : int
        The number of bins of equal width from 0 to 1.
    thresholds : sequence of float
        Where precision and recall are computed.

    Raises
    ------
    DataError
        One line, if the tables cannot be compared.

    Examples
    --------
    >>> answers = pa.table({"x": ["ana", "ana", "ben"], "t": [10, 11, 99], "probability": [0.8, 0.7, 0.2]})
    >>> print(evaluate(answers, pa.table({"x": ["ana", "ben"], "t": [12, 50]}), tolerance=5).best.f1)
    0.6666666666666666
    """
    answers = columns.satisfying(columns.flat(answers), where)
    pairs = _Pairs.between(answers, columns.true_rows(truth, label), by, time, probability)
    gap = tolerance if gap is None else gap
    true = have_near(pairs.answers, pairs.events, tolerance)
    clusters = episodes(pairs.answers, gap)
    judged = (pairs.answers, pairs.probabilities, pairs.events)
    candidates = episode_qualities(*judged, _candidates(pairs.probabilities), tolerance, gap)
    return Evaluation(
        matched_by=pairs.keys,
        timed=pairs.timed,
        tolerance=tolerance,
        gap=gap,
        events=len(pairs.events.groups),
        unanswered=int((~have_near(pairs.events, pairs.answers, tolerance)).sum()),
        left_out=answers.num_rows - len(true),
        scores=scores(pairs.probabilities, true, bins, clusters),
        bins=tuple(bins_of(pairs.probabilities, true, bins)),
        qualities=tuple(episode_qualities(*judged, thresholds, tolerance, gap)),
        best=max(candidates, key=lambda quality: quality.f1),
        worst=tuple(_worst(pairs, true, bins)),
        probabilities=pairs.probabilities,
        true=true,
        clusters=clusters,
    )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Answers and true events in the same terms.

    `rows` are the indices of the answers in the columns of `shown`, which are their keys and times, for examples.
    """

    keys: tuple[str, ...]
    timed: bool
    probabilities: F64
    answers: Spans
    events: Spans
    rows: I64
    shown: Mapping[str, pa.ChunkedArray]

    @classmethod
    def between(
        cls, answers: pa.Table, truth: pa.Table, by: Sequence[str] | None, time: str | None, probability: str
    ) -> _Pairs:
        answers, truth = _final(answers), columns.flat(truth)
        times = _times(answers, truth, time)
        keys, true_keys = columns.key_columns(answers, truth, by)
        if times is None and not keys:
            raise DataError("answers and truth have neither a key nor a time in common; use --by or --time")
        values = columns.numbers(columns.require(answers, probability, "answers"), probability)
        ours, theirs = times or ((np.zeros(answers.num_rows),) * 2, (np.zeros(truth.num_rows),) * 2)
        used, known = columns.finite(values, *ours), columns.finite(*theirs)
        if not used.any():
            raise DataError(f"there are no answers with a {probability}" + ("" if times is None else " and a time"))
        groups, true_groups = group_codes(keys, true_keys, answers.num_rows, truth.num_rows)
        spans, events = Spans(groups, *ours).take(used), Spans(true_groups, *theirs).take(known)
        if len(events.groups) and not np.isin(spans.groups, events.groups).any():
            first, other = (_first_keys(side) for side in (keys, true_keys))
            raise DataError(f"no answer has the keys of a true event: an answer has {first}, an event has {other}")
        shown = {name: answers[name] for names in columns.TIMES for name in names if name in answers.column_names}
        return cls(tuple(keys), times is not None, values[used], spans, events, np.flatnonzero(used), {**keys, **shown})


def _final(answers: pa.Table) -> pa.Table:
    """The final answers, where a stream also gave provisional ones."""
    if "status" not in answers.column_names:
        return answers
    return answers.filter(pc.is_in(answers["status"], value_set=pa.array(FINAL)))


def _times(answers: pa.Table, truth: pa.Table, time: str | None) -> tuple[tuple[F64, F64], tuple[F64, F64]] | None:
    """The first and last instants of the answers and of the events; None if one of the tables has no times."""
    names, _, true_names = (time or "").partition("=")
    ours = columns.time_columns(answers, _split(names), "answers")
    theirs = columns.time_columns(truth, _split(true_names or names), "true events")
    if ours is None or theirs is None:
        return None
    if ours.clock != theirs.clock:
        kinds = ["timestamps" if times.clock else "numbers" for times in (ours, theirs)]
        raise DataError(f"the times of the answers are {kinds[0]}, those of the truth {kinds[1]}; use one of both")
    return (ours.starts, ours.ends), (theirs.starts, theirs.ends)


def _split(names: str) -> list[str] | None:
    return [name.strip() for name in names.split(",")] if names else None


def _first_keys(keys: Mapping[str, pa.ChunkedArray]) -> str:
    return ", ".join(f"{name} = {short(value_text(column[0]), 30)}" for name, column in keys.items())


def _candidates(probabilities: F64) -> list[float]:
    """Thresholds in thousandths, spread over the answers, so that one can be written into a query."""
    thresholds = np.unique(np.floor(probabilities * 1000) / 1000)
    if len(thresholds) <= MOST_CANDIDATES:
        return thresholds.tolist()
    return thresholds[np.linspace(0, len(thresholds) - 1, MOST_CANDIDATES).astype(np.int64)].tolist()


# ---------------------------------------------------------------- worst bins


def _worst(pairs: _Pairs, true: Bools, bins: int) -> list[WorstBin]:
    """The bins with the largest part of the calibration error, each with answers that it is wrong about."""
    bin_of = bin_numbers(pairs.probabilities, bins)
    ranked = sorted(bins_of(pairs.probabilities, true, bins), key=lambda bin: -bin.answers * abs(bin.error))
    worst = []
    for bin in ranked[:WORST_BINS]:
        # Too high: answers that are not true; too low: answers that are.
        wrong = np.flatnonzero((bin_of == round(bin.low * bins)) & (true == (bin.error < 0)))
        extreme = wrong[np.argsort(-abs(pairs.probabilities[wrong] - (bin.error < 0)), kind="stable")]
        worst.append(WorstBin(bin, tuple(_example(pairs, int(row), bool(true[row])) for row in extreme[:EXAMPLES])))
    return worst


def _example(pairs: _Pairs, row: int, true: bool) -> dict[str, Any]:
    """An answer: its keys, its times, its probability, whether it is true, and how far the nearest event is."""
    shown = {name: column[int(pairs.rows[row])] for name, column in pairs.shown.items()}
    example: dict[str, Any] = {name: value_text(value) for name, value in shown.items()}
    example |= {"probability": float(pairs.probabilities[row]), "true": true}
    if pairs.timed:
        events = pairs.events.take(pairs.events.groups == pairs.answers.groups[row])
        after, before = events.starts - pairs.answers.ends[row], pairs.answers.starts[row] - events.ends
        example["nearest_event"] = float(np.maximum(np.maximum(after, before), 0).min()) if len(after) else None
    return example


# ---------------------------------------------------------------- plain values


def _quality(quality: Quality) -> dict[str, Any]:
    figures = {name: _known(getattr(quality, name)) for name in ("precision", "recall", "f1")}
    return {**asdict(quality), **figures}


def _share_bar(share: float, mark: float | None = None) -> str:
    return "" if math.isnan(share) else markup.share_bar(probability_text(share), share, mark)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
