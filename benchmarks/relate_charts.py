"""The pictures of the RELATE benchmark, in docs/images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from anabranch.show.svg import FAINT
from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, Panels, curves_svg
from benchmarks.relate_contest import DELTAS, IGNORE, OURS, SASE, STATIC, SURE, TREE

PICTURES = Path(__file__).parents[1] / "docs" / "images"

COLOURS = {
    OURS: FIRST,
    SURE: "#f2a36e",
    TREE: BASELINE,
    SASE[DELTAS[0]]: SECOND,
    SASE[DELTAS[1]]: "#d3b5df",
    STATIC: "#b59a2c",
    IGNORE: FAINT,
}

NOISE = Axis(0.0, 40.0, marks=(0, 10, 20, 30, 40), name="events lost, %")
K = Axis(1.0, 20.0, marks=(1, 5, 10, 15, 20), name="k")
SPEED = Axis(1e-4, 3e8, marks=(1e-4, 1.0, 1e4, 1e8), name="", logarithmic=True)
SPEED_OVER_K = Axis(1.0, 3e8, marks=(1.0, 1e4, 1e8), name="", logarithmic=True)
ACCURACY = Axis(0.4, 1.0, marks=(0.4, 0.6, 0.8, 1.0), name="")
ALL_ACCURACY = Axis(0.0, 1.0, marks=(0.0, 0.5, 1.0), name="")

Speeds = Mapping[float, Mapping[str, tuple[float, bool]]]
"""By place on the axis and contestant: events a second, and whether that is an estimate."""


class Answers(Protocol):
    """What `relate.Asked` is to a picture."""

    truth: np.ndarray
    answers: Mapping[str, np.ndarray]

    def accuracy(self, name: str, threshold: float = 0.5) -> float:
        """The share of pairs that are decided rightly."""
        ...


# ------------------------------------------------------------ throughput


def draw_throughput(by_noise: Mapping[str, Speeds]) -> None:
    """Events a second over noise, a column a contest."""
    columns = {
        name: _speed_curves({100 * noise: of for noise, of in speeds.items()}) for name, speeds in by_noise.items()
    }
    _save("relate-throughput", "Throughput over noise (dashed: estimated)", {"events/s": columns}, NOISE, SPEED, 200)


def draw_selectivity(by_k: Mapping[str, Speeds]) -> None:
    """Events a second over k, a column for each number of segments."""
    columns = {name: _speed_curves(speeds) for name, speeds in by_k.items()}
    title = "Throughput over k, 20% lost (dashed: estimated)"
    _save("relate-selectivity", title, {"events/s": columns}, K, SPEED_OVER_K, 150)


def _speed_curves(speeds: Speeds) -> list[Curve]:
    """Two curves a contestant: what was measured, and from there on what is estimated."""
    curves = []
    for name, colour in COLOURS.items():
        points = [(x, *of[name]) for x, of in speeds.items() if name in of]
        for before, (x, speed, estimated) in zip([None, *points], points, strict=False):
            start = before[:2] if before else (x, speed)
            curves.append(Curve(colour, [start, (x, speed)], dashed=estimated))
    return curves


# ------------------------------------------------------------ accuracy


def draw_noise(by_noise: Mapping[str, Mapping[float, Answers]]) -> None:
    """Accuracy over noise, a column a contest."""
    columns = {
        name: _accuracy_curves({100 * noise: of for noise, of in asked.items()}) for name, asked in by_noise.items()
    }
    _save("relate-noise", "Accuracy over noise, threshold 0.5", {"accuracy": columns}, NOISE, ACCURACY, 140)


def draw_thresholds(
    by_noise: Mapping[str, Mapping[float, Answers]], thresholds: Sequence[float], noises: Sequence[float]
) -> None:
    """Accuracy over the threshold, a column a contest and a row a noise."""
    rows = {
        f"{noise:.0%} lost": {
            name: [
                Curve(
                    colour,
                    [(threshold, asked[noise].accuracy(who, threshold)) for threshold in thresholds],
                    dashed=who in SASE.values(),
                )
                for who, colour in COLOURS.items()
                if _answered(asked[noise], who)
            ]
            for name, asked in by_noise.items()
        }
        for noise in noises
    }
    axis = Axis(0.0, 1.0, marks=(0, 0.5, 1), name="threshold")
    _save("relate-threshold", "Accuracy over the threshold", rows, axis, ALL_ACCURACY, 110)


def draw_k(by_k: Mapping[str, Mapping[float, Answers]]) -> None:
    """Accuracy over k, a column for each number of segments, and the share of pairs that match."""
    columns = {
        name: [
            Curve(PALE, [(k, float(of.truth.mean())) for k, of in asked.items()], dashed=True),
            *_accuracy_curves(asked),
        ]
        for name, asked in by_k.items()
    }
    _save("relate-k", "Accuracy over k, 20% lost", {"accuracy": columns}, K, ALL_ACCURACY, 140)


def _accuracy_curves(asked: Mapping[float, Answers]) -> list[Curve]:
    """A curve a contestant; SASE+, which is nearly ours, is dashed so that both are seen."""
    return [
        Curve(
            colour,
            [(x, of.accuracy(name)) for x, of in asked.items() if _answered(of, name)],
            dashed=name in SASE.values(),
        )
        for name, colour in COLOURS.items()
    ]


def _answered(asked: Answers, name: str) -> bool:
    """Whether a curve can be drawn: trees are not asked everywhere, and are ours where they are."""
    return name not in (TREE, SURE) and not np.isnan(asked.answers[name]).all()


def _save(name: str, title: str, panels: Panels, axis: Axis, up: Axis, tall: float) -> None:
    drawn = {curve.colour for row in panels.values() for curves in row.values() for curve in curves if curve.points}
    meanings = {**{colour: who for who, colour in COLOURS.items()}, PALE: "pairs that match"}
    signs = [(colour, meaning) for colour, meaning in meanings.items() if colour in drawn]
    width = 16 + 7 * max(map(len, panels))
    picture = curves_svg(title, panels, axis, signs, row_width=width + 24, up=up, tall=tall)
    (PICTURES / f"{name}.svg").write_text(picture + "\n", encoding="utf-8")
