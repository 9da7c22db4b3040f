"""Ask the queries of aircraft.abq, and hold the answers against all positions."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from prepare import DATA, FOLDER, STEP, find_data, read_positions

import anabranch as ab
from anabranch.evaluation import Bin, calibration

WORKBOOK = Path(__file__).with_name("aircraft.abq")

PAIR = ["a", "b"]
NEAR = {"x": 10_000, "y": 10_000}
ALTITUDE = {"near": 300, "over": 450, "surely_over": 450}
"""How close two aircraft are to be, in metres: as in the workbook."""

LEVELS = (0, 250, 300, 350, 450, 550)
ERRORS = (200, 500, 1000, 2000)
METHODS = ("LINEAR", "KALMAN")


def ask(
    positions: pd.DataFrame, *queries: str, instead: Mapping[str, str] | None = None
) -> tuple[list[pd.DataFrame], int]:
    """The answers to queries of the workbook, with other words in the place of some, and how many positions were sent.

    An answer: a and b (icao24), valid_from, valid_to, sample (when it is most probable) and probability.
    """
    text = WORKBOOK.read_text(encoding="utf-8")
    for words, others in (instead or {}).items():
        text = text.replace(words, others)
    session = ab.Session()
    session.execute(text)
    found = []
    with tempfile.TemporaryDirectory(prefix="anabranch-aircraft-") as folder:
        positions.to_parquet(Path(folder, "positions.parquet"), index=False)
        session.bind("positions", Path(folder, "positions.parquet"))
        for query in queries:
            found.append(told(session.run(query).toArrow()))
    return found, session.report(queries[-1]).reported


def told(answers: pa.Table) -> pd.DataFrame:
    """The answers as a flat table, in order."""
    flat = answers.select(["a", "b", "valid_from", "valid_to", "sample", "probability"]).flatten()
    names = {"a.icao24": "a", "b.icao24": "b", "sample.ta": "sample"}
    columns = ["a", "b", "valid_from", "valid_to", "sample", "probability"]
    return flat.to_pandas().rename(columns=names)[columns].sort_values(columns, ignore_index=True)


# ------------------------------------------------------------ what is true


def together(positions: pd.DataFrame, altitude: float) -> pd.DataFrame:
    """Which aircraft were so close, by all positions: a, b, t, and by how much their altitudes differ (apart)."""
    places = positions.rename(columns={"icao24": "who"})
    pairs = places.merge(places, on="t", suffixes=("_a", "_b"))
    pairs = pairs[pairs["who_a"] < pairs["who_b"]]
    close = np.ones(len(pairs), np.bool_)
    for name, bound in (NEAR | {"altitude": altitude}).items():
        close &= (pairs[f"{name}_a"] - pairs[f"{name}_b"]).abs() <= bound
    apart = (pairs["altitude_a"] - pairs["altitude_b"]).abs()
    return pairs.assign(apart=apart)[close].rename(columns={"who_a": "a", "who_b": "b"})[[*PAIR, "t", "apart"]]


def at_steps(answers: pd.DataFrame) -> pd.DataFrame:
    """The instants with positions that answers are about: a, b, t and probability."""
    first = answers["valid_from"].dt.ceil(STEP)
    # At its end an answer is no longer true: there another one begins.
    steps = np.maximum(((answers["valid_to"].dt.ceil(STEP) - first) // STEP).to_numpy(), 0)
    rows = answers.loc[answers.index.repeat(steps), [*PAIR, "probability"]]
    number = np.arange(len(rows)) - np.repeat(np.cumsum(steps) - steps, steps)
    return rows.assign(t=first.repeat(steps) + number * STEP).reset_index(drop=True)


def measured(rows: pd.DataFrame, positions: pd.DataFrame) -> np.ndarray:
    """Whether both aircraft of a row sent a position at that time: those that have gone did not."""
    known = pd.MultiIndex.from_frame(positions[["icao24", "t"]])
    return np.all([pd.MultiIndex.from_frame(rows[[who, "t"]]).isin(known) for who in PAIR], axis=0)


@dataclass(frozen=True)
class Quality:
    """How answers compare with the truth, by pairs of aircraft and instants.

    Attributes
    ----------
    answers, gone : how many instants they are about, and those more of them at which an aircraft has left
    true, right : how many there really are, and how many of them are among the answers
    """

    answers: int
    gone: int
    true: int
    right: int

    @property
    def precision(self) -> float:
        """The share of the answers that is right."""
        return self.right / self.answers if self.answers else float("nan")

    @property
    def recall(self) -> float:
        """The share of what is true that is answered."""
        return self.right / self.true if self.true else float("nan")


def judge(answers: pd.DataFrame, truth: pd.DataFrame, positions: pd.DataFrame) -> Quality:
    """Hold answers against what is true."""
    rows = at_steps(answers)
    here = measured(rows, positions)
    found = pd.MultiIndex.from_frame(rows.loc[here, [*PAIR, "t"]]).unique()
    right = found.isin(pd.MultiIndex.from_frame(truth[[*PAIR, "t"]])).sum()
    return Quality(len(found), int((~here).sum()), len(truth), int(right))


def reliability(answers: pd.DataFrame, positions: pd.DataFrame, altitude: float) -> list[Bin]:
    """What the probabilities say, and what was so then, if aircraft fly straight from one position to the next."""
    places = [between(positions, answers[who], answers["sample"]) for who in PAIR]
    known = ~(places[0].isna() | places[1].isna()).any(axis="columns")
    apart = (places[0] - places[1]).abs()
    close = (apart <= pd.Series(NEAR | {"altitude": altitude})).all(axis="columns")
    number = pa.array(np.arange(len(answers)))
    table = pa.table({"n": number, "t": number, "probability": pa.array(answers["probability"])})
    return calibration(table.filter(pa.array(known)), table.filter(pa.array(known & close)), "n")


def between(positions: pd.DataFrame, who: pd.Series, when: pd.Series) -> pd.DataFrame:
    """Where aircraft were at some instants: straight from the position before to the next; NaN where there is none."""
    columns = ["x", "y", "altitude"]
    indexed = positions.set_index(["icao24", "t"])[columns]
    before = when.dt.floor(STEP)
    one, two = (
        indexed.reindex(pd.MultiIndex.from_arrays([who, t])).to_numpy()
        for t in (before, np.where(before == when, before, before + STEP))
    )
    share = ((when - before) / STEP).to_numpy()[:, None]
    return pd.DataFrame(one + (two - one) * share, columns=columns)


# ------------------------------------------------------------ what is told


def report_day(positions: pd.DataFrame) -> Iterator[str]:
    """The queries as they are in the workbook."""
    (near, over, surely), sent = ask(positions, "near", "over", "surely_over")
    (expected,), _ = ask(positions, "over", instead={"SEMANTICS MAY": "SEMANTICS EXPECTED"})
    yield f"sent: {sent:,} of {len(positions):,} positions, {1 - sent / len(positions):.1%} saved"
    yield ""
    yield f"  {'':<28}{'answers':>8}{'pairs':>7}{'instants':>10}{'true':>7}{'precision':>11}{'recall':>8}{'gone':>7}"
    asked = {
        "near, MAY": ("near", near),
        "near, MAY, THRESHOLD 0.5": ("near", near[near["probability"] >= 0.5]),
        "over, MAY": ("over", over),
        "over, MAY, THRESHOLD 0.5": ("over", over[over["probability"] >= 0.5]),
        "over, EXPECTED": ("over", expected),
        "surely_over, MUST": ("surely_over", surely),
    }
    close = together(positions, LEVELS[-1])
    for name, (query, answers) in asked.items():
        quality = judge(answers, close[close["apart"] <= ALTITUDE[query]], positions)
        numbers = f"{len(answers):>8,}{answers.groupby(PAIR).ngroups:>7,}{quality.answers:>10,}{quality.true:>7,}"
        yield f"  {name:<28}{numbers}{quality.precision:>11.3f}{quality.recall:>8.3f}{quality.gone:>7,}"
    yield ""
    yield "how far apart in altitude those are who are within 10 km to the east and north"
    for low, high in pairwise(LEVELS):
        yield f"  {low:>3} to {high:>3} m{((close['apart'] >= low) & (close['apart'] < high)).sum():>8,}"
    for query, answers in {"near": near, "over": over}.items():
        yield ""
        yield f"{query}: what probabilities say, and what was so"
        yield f"  {'probability':<18}{'answers':>9}{'said':>8}{'so':>8}"
        for each in reliability(answers, positions, ALTITUDE[query]):
            yield f"  {each.low:.1f} to {each.high:<11.1f}{each.answers:>9,}{each.predicted:>8.3f}{each.observed:>8.3f}"


def report_errors(positions: pd.DataFrame) -> Iterator[str]:
    """The same with other errors, and with another way to find the rates."""
    truth = together(positions, ALTITUDE["over"])
    yield f"  {'':<18}{'':>8}{'':>8}{'over, MAY':>20}{'surely_over, MUST':>20}"
    yield f"  {'error':>7}{'':<11}{'sent':>8}{'saved':>8}" + f"{'precision':>12}{'recall':>8}" * 2
    for error, method in product(ERRORS, METHODS):
        instead = {"x = 500, y = 500": f"x = {error}, y = {error}", "USING LINEAR": f"USING {method}"}
        found, sent = ask(positions, "over", "surely_over", instead=instead)
        each = [judge(answers, truth, positions) for answers in found]
        numbers = "".join(f"{quality.precision:>12.3f}{quality.recall:>8.3f}" for quality in each)
        yield f"  {error:>5} m  {method:<9}{sent:>8,}{1 - sent / len(positions):>8.1%}{numbers}"


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Ask aircraft.abq, and hold the answers against all positions.")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder that has {FOLDER}")
    parser.add_argument("--hours", type=float, help="take the first hours alone")
    parser.add_argument("--errors", action="store_true", help="only compare errors, and ways to find rates")
    given = parser.parse_args()
    positions = read_positions(find_data(given.data), given.hours)
    print("\n".join(report_errors(positions) if given.errors else report_day(positions)))


if __name__ == "__main__":
    main()
