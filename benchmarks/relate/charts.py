"""The charts of the RELATE benchmark, in docs/images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anabranch.drawing.svg import FAINT
from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, Panels, curves_svg, legend_of, save_chart
from benchmarks.relate.algorithms import ANABRANCH, DELTAS, EARLY_STOP, IGNORE, SASE, STATIC, TREE
from benchmarks.relate.answers import Answers

COLOURS = {
    ANABRANCH: FIRST,
    EARLY_STOP: "#f2a36e",
    TREE: BASELINE,
    SASE[DELTAS[0]]: SECOND,
    SASE[DELTAS[1]]: "#d3b5df",
    STATIC: "#b59a2c",
    IGNORE: FAINT,
}

NOISE = Axis(0.0, 40.0, ticks=(0, 10, 20, 30, 40), name="events lost, %")
K = Axis(1.0, 20.0, ticks=(1, 5, 10, 15, 20), name="k")
THRESHOLD = Axis(0.0, 1.0, ticks=(0, 0.5, 1), name="threshold")
SPEED = Axis(1e-4, 3e8, ticks=(1e-4, 1.0, 1e4, 1e8), logarithmic=True)
SPEED_OVER_K = Axis(1.0, 3e8, ticks=(1.0, 1e4, 1e8), logarithmic=True)
ACCURACY = Axis(0.4, 1.0, ticks=(0.4, 0.6, 0.8, 1.0))
FULL_ACCURACY = Axis(0.0, 1.0, ticks=(0.0, 0.5, 1.0))

Speeds = Mapping[str, tuple[float, bool]]
"""Events per second by algorithm, and whether that is an estimate."""


# ------------------------------------------------------------ throughput


def draw_throughput(by_noise: Mapping[str, Mapping[float, Speeds]]) -> None:
    """Draw events per second over noise, one column per workload."""
    columns = {
        name: _speed_curves({100 * noise: speeds for noise, speeds in series.items()})
        for name, series in by_noise.items()
    }
    _save("relate-throughput", "Throughput over noise (dashed: estimated)", {"events/s": columns}, NOISE, SPEED, 200)


def draw_selectivity(by_k: Mapping[str, Mapping[float, Speeds]]) -> None:
    """Draw events per second over k, one column for each number of segments."""
    columns = {name: _speed_curves(series) for name, series in by_k.items()}
    title = "Throughput over k, 20% lost (dashed: estimated)"
    _save("relate-selectivity", title, {"events/s": columns}, K, SPEED_OVER_K, 150)


def _speed_curves(series: Mapping[float, Speeds]) -> list[Curve]:
    """Return a line from each point to the next; it is dashed if the next is an estimate."""
    curves = []
    for name, colour in COLOURS.items():
        points = [(x, *speeds[name]) for x, speeds in series.items() if name in speeds]
        for previous, (x, speed, is_estimate) in zip([None, *points], points, strict=False):
            start = previous[:2] if previous else (x, speed)
            curves.append(Curve(colour, [start, (x, speed)], dashed=is_estimate))
    return curves


# ------------------------------------------------------------ accuracy


def draw_noise(by_noise: Mapping[str, Mapping[float, Answers]]) -> None:
    """Draw accuracy over noise, one column per workload."""
    columns = {
        name: _accuracy_curves({100 * noise: answers for noise, answers in series.items()})
        for name, series in by_noise.items()
    }
    _save("relate-noise", "Accuracy over noise, threshold 0.5", {"accuracy": columns}, NOISE, ACCURACY, 140)


def draw_thresholds(
    by_noise: Mapping[str, Mapping[float, Answers]], thresholds: Sequence[float], noises: Sequence[float]
) -> None:
    """Draw accuracy over the threshold, one column per workload and one row per noise."""
    rows = {
        f"{noise:.0%} lost": {
            name: [
                Curve(
                    colour,
                    [(threshold, series[noise].accuracy(algorithm, threshold)) for threshold in thresholds],
                    dashed=algorithm in SASE.values(),
                )
                for algorithm, colour in COLOURS.items()
                if _is_drawn(series[noise], algorithm)
            ]
            for name, series in by_noise.items()
        }
        for noise in noises
    }
    _save("relate-threshold", "Accuracy over the threshold", rows, THRESHOLD, FULL_ACCURACY, 110)


def draw_k(by_k: Mapping[str, Mapping[float, Answers]]) -> None:
    """Draw accuracy over k, one column for each number of segments, and the share of pairs that match."""
    columns = {
        name: [
            Curve(PALE, [(k, float(answers.truth.mean())) for k, answers in series.items()], dashed=True),
            *_accuracy_curves(series),
        ]
        for name, series in by_k.items()
    }
    _save("relate-k", "Accuracy over k, 20% lost", {"accuracy": columns}, K, FULL_ACCURACY, 140)


def _accuracy_curves(series: Mapping[float, Answers]) -> list[Curve]:
    """Return one curve per algorithm; SASE+ nearly coincides with Anabranch and is dashed so that both are visible."""
    return [
        Curve(
            colour,
            [(x, answers.accuracy(name)) for x, answers in series.items() if _is_drawn(answers, name)],
            dashed=name in SASE.values(),
        )
        for name, colour in COLOURS.items()
    ]


def _is_drawn(answers: Answers, name: str) -> bool:
    """Return whether an algorithm is drawn: not the trees, which equal Anabranch, nor one without answers."""
    return name not in (TREE, EARLY_STOP) and not np.isnan(answers.by_algorithm[name]).all()


def _save(name: str, title: str, panels: Panels, x_axis: Axis, y_axis: Axis, panel_height: float) -> None:
    drawn = {curve.colour for row in panels.values() for curves in row.values() for curve in curves if curve.points}
    colours = {**COLOURS, "pairs that match": PALE}
    legend = legend_of({meaning: colour for meaning, colour in colours.items() if colour in drawn})
    label_width = 40 + 7 * max(map(len, panels))
    save_chart(name, curves_svg(title, panels, x_axis, legend, label_width, y_axis, panel_height))
