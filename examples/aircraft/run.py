"""Run the queries of aircraft.abq, and compare the answers with all positions."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from prepare import FOLDER, STEP, read_positions
from shared import calibration_lines, options

import anabranch as ab
from anabranch.evaluation import Bin, calibration

WORKBOOK = Path(__file__).with_name("aircraft.abq")

PAIR = ["a", "b"]
NEAR = {"x": 10_000, "y": 10_000}
ALTITUDE = {"near": 300, "over": 450, "surely_over": 450}
"""The distances of the queries in metres, as in the workbook."""

LEVELS = (0, 250, 300, 350, 450, 550)
ERRORS = (200, 500, 1000, 2000)
METHODS = ("LINEAR", "KALMAN")


def ask(
    positions: pd.DataFrame, *queries: str, replace: Mapping[str, str] | None = None
) -> tuple[list[pd.DataFrame], int]:
    """Return the answers to queries of the workbook, and how many positions were sent.

    An answer has a and b (icao24), valid_from, valid_to, sample (when it is most probable) and probability. `replace`
    replaces texts in the workbook.
    """
    text = WORKBOOK.read_text(encoding="utf-8")
    for old, new in (replace or {}).items():
        text = text.replace(old, new)
    session = ab.Session()
    session.execute(text)
    answers = []
    with tempfile.TemporaryDirectory(prefix="anabranch-aircraft-") as folder:
        positions.to_parquet(Path(folder, "positions.parquet"), index=False)
        session.bind("positions", Path(folder, "positions.parquet"))
        for query in queries:
            answers.append(flat(session.run(query).toArrow()))
    return answers, session.counts(queries[-1]).reported


def flat(answers: pa.Table) -> pd.DataFrame:
    """Return the answers as a sorted table without structs."""
    columns = ["a", "b", "valid_from", "valid_to", "sample", "probability"]
    names = {"a.icao24": "a", "b.icao24": "b", "sample.ta": "sample"}
    rows = answers.select(columns).flatten().to_pandas().rename(columns=names)
    return rows[columns].sort_values(columns, ignore_index=True)


# ------------------------------------------------------------ ground truth


def together(positions: pd.DataFrame, altitude: float) -> pd.DataFrame:
    """Return which aircraft were near each other, by all positions: a, b, t, and the difference in altitude (apart)."""
    renamed = positions.rename(columns={"icao24": "aircraft"})
    pairs = renamed.merge(renamed, on="t", suffixes=("_a", "_b"))
    pairs = pairs[pairs["aircraft_a"] < pairs["aircraft_b"]]
    close = np.ones(len(pairs), np.bool_)
    for name, bound in (NEAR | {"altitude": altitude}).items():
        close &= (pairs[f"{name}_a"] - pairs[f"{name}_b"]).abs() <= bound
    apart = (pairs["altitude_a"] - pairs["altitude_b"]).abs()
    pairs = pairs.assign(apart=apart).rename(columns={"aircraft_a": "a", "aircraft_b": "b"})
    return pairs.loc[close, [*PAIR, "t", "apart"]]


def at_steps(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the instants with positions in the intervals of answers: a, b, t and probability."""
    first = answers["valid_from"].dt.ceil(STEP)
    # The end of an interval is excluded: the next answer begins there.
    steps = np.maximum(((answers["valid_to"].dt.ceil(STEP) - first) // STEP).to_numpy(), 0)
    rows = answers.loc[answers.index.repeat(steps), [*PAIR, "probability"]]
    number = np.arange(len(rows)) - np.repeat(np.cumsum(steps) - steps, steps)
    return rows.assign(t=first.repeat(steps) + number * STEP).reset_index(drop=True)


def measured(rows: pd.DataFrame, positions: pd.DataFrame) -> np.ndarray:
    """Return whether both aircraft of a row have a position at that time; aircraft that have left have none."""
    known = pd.MultiIndex.from_frame(positions[["icao24", "t"]])
    return np.all([pd.MultiIndex.from_frame(rows[[aircraft, "t"]]).isin(known) for aircraft in PAIR], axis=0)


@dataclass(frozen=True)
class Quality:
    """How answers compare with the truth, counted by pairs of aircraft and instants.

    Attributes
    ----------
    answers, gone : int
        Instants in answers, and further ones at which an aircraft has left.
    true, right : int
        True instants, and those that are in answers.
    """

    answers: int
    gone: int
    true: int
    right: int

    @property
    def precision(self) -> float:
        """The share of the answers that are right."""
        return self.right / self.answers if self.answers else float("nan")

    @property
    def recall(self) -> float:
        """The share of the true instants that are in answers."""
        return self.right / self.true if self.true else float("nan")


def judge(answers: pd.DataFrame, truth: pd.DataFrame, positions: pd.DataFrame) -> Quality:
    """Compare answers with the truth."""
    rows = at_steps(answers)
    here = measured(rows, positions)
    answered = pd.MultiIndex.from_frame(rows.loc[here, [*PAIR, "t"]]).unique()
    right = answered.isin(pd.MultiIndex.from_frame(truth[[*PAIR, "t"]])).sum()
    return Quality(len(answered), int((~here).sum()), len(truth), int(right))


def reliability(answers: pd.DataFrame, positions: pd.DataFrame, altitude: float) -> list[Bin]:
    """Return the calibration of the probabilities, if aircraft fly straight from one position to the next."""
    located = [between(positions, answers[aircraft], answers["sample"]) for aircraft in PAIR]
    known = ~(located[0].isna() | located[1].isna()).any(axis="columns")
    apart = (located[0] - located[1]).abs()
    close = (apart <= pd.Series(NEAR | {"altitude": altitude})).all(axis="columns")
    number = pa.array(np.arange(len(answers)))
    table = pa.table({"n": number, "t": number, "probability": pa.array(answers["probability"])})
    return calibration(table.filter(pa.array(known)), table.filter(pa.array(known & close)), "n")


def between(positions: pd.DataFrame, aircraft: pd.Series, when: pd.Series) -> pd.DataFrame:
    """Return positions at instants, interpolated between the one before and the next; NaN if there is none."""
    columns = ["x", "y", "altitude"]
    indexed = positions.set_index(["icao24", "t"])[columns]
    before = when.dt.floor(STEP)
    one, two = (
        indexed.reindex(pd.MultiIndex.from_arrays([aircraft, t])).to_numpy()
        for t in (before, np.where(before == when, before, before + STEP))
    )
    share = ((when - before) / STEP).to_numpy()[:, None]
    return pd.DataFrame(one + (two - one) * share, columns=columns)


# ------------------------------------------------------------ report


def report_day(positions: pd.DataFrame) -> Iterator[str]:
    """Yield the report on the queries of the workbook."""
    (near, over, surely), sent = ask(positions, "near", "over", "surely_over")
    (expected,), _ = ask(positions, "over", replace={"SEMANTICS MAY": "SEMANTICS EXPECTED"})
    yield f"sent: {sent:,} of {len(positions):,} positions, {1 - sent / len(positions):.1%} saved"
    yield ""
    yield f"  {'':<28}{'answers':>8}{'pairs':>7}{'instants':>10}{'true':>7}{'precision':>11}{'recall':>8}{'gone':>7}"
    methods = {
        "near, MAY": ("near", near),
        "near, MAY, THRESHOLD 0.5": ("near", near[near["probability"] >= 0.5]),
        "over, MAY": ("over", over),
        "over, MAY, THRESHOLD 0.5": ("over", over[over["probability"] >= 0.5]),
        "over, EXPECTED": ("over", expected),
        "surely_over, MUST": ("surely_over", surely),
    }
    close = together(positions, LEVELS[-1])
    for name, (query, answers) in methods.items():
        quality = judge(answers, close[close["apart"] <= ALTITUDE[query]], positions)
        numbers = f"{len(answers):>8,}{answers.groupby(PAIR).ngroups:>7,}{quality.answers:>10,}{quality.true:>7,}"
        yield f"  {name:<28}{numbers}{quality.precision:>11.3f}{quality.recall:>8.3f}{quality.gone:>7,}"
    yield ""
    yield "difference in altitude of aircraft within 10 km to the east and north"
    for low, high in pairwise(LEVELS):
        yield f"  {low:>3} to {high:>3} m{((close['apart'] >= low) & (close['apart'] < high)).sum():>8,}"
    for query, answers in {"near": near, "over": over}.items():
        yield ""
        yield f"{query}: mean probability, and share of true answers"
        yield from calibration_lines(reliability(answers, positions, ALTITUDE[query]))


def report_errors(positions: pd.DataFrame) -> Iterator[str]:
    """Yield the report on other errors and another estimate of the rates."""
    truth = together(positions, ALTITUDE["over"])
    yield f"  {'':<18}{'':>8}{'':>8}{'over, MAY':>20}{'surely_over, MUST':>20}"
    yield f"  {'error':>7}{'':<11}{'sent':>8}{'saved':>8}" + f"{'precision':>12}{'recall':>8}" * 2
    for error, method in product(ERRORS, METHODS):
        replace = {"x = 500, y = 500": f"x = {error}, y = {error}", "USING LINEAR": f"USING {method}"}
        both, sent = ask(positions, "over", "surely_over", replace=replace)
        judged = [judge(answers, truth, positions) for answers in both]
        numbers = "".join(f"{quality.precision:>12.3f}{quality.recall:>8.3f}" for quality in judged)
        yield f"  {error:>5} m  {method:<9}{sent:>8,}{1 - sent / len(positions):>8.1%}{numbers}"


def main() -> None:
    """Print the report."""
    parser = options("Run aircraft.abq, and compare the answers with all positions.", FOLDER)
    parser.add_argument("--hours", type=float, help="read only the first hours")
    parser.add_argument("--errors", action="store_true", help="only compare errors and estimates of the rates")
    arguments = parser.parse_args()
    positions = read_positions(arguments.data, arguments.hours)
    print("\n".join(report_errors(positions) if arguments.errors else report_day(positions)))


if __name__ == "__main__":
    main()
