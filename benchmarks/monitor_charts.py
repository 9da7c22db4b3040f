"""The pictures of the MONITOR benchmark, in docs/images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, Panels, curves_svg
from benchmarks.monitor_run import Followed, Score

PICTURES = Path(__file__).parents[1] / "docs" / "images"

ACCURACY = Axis(0.8, 1.0, marks=(0.8, 0.9, 1.0), name="")
POORER = Axis(0.6, 1.0, marks=(0.6, 0.8, 1.0), name="")
MEASURES = {"precision": SECOND, "recall": BASELINE, "f": FIRST}
WAYS = {"predictions": FIRST, "values": BASELINE, "values, as few tuples": SECOND}
POLICIES = {
    "unlimited": PALE, "LEAST CONTRIBUTION": FIRST, "OLDEST": SECOND, "RANDOM": BASELINE, "NEWEST": "#4d5853",
}  # fmt: skip
SHOWN = {"f": "F-measure"}


def draw_objects(followed: Mapping[int, Followed]) -> None:
    """Precision, recall and F-measure by the number of vehicles, against both ideals."""

    def curves(ideal: str) -> list[Curve]:
        return [
            Curve(colour, [(count, _score(each, ideal, name)) for count, each in followed.items()])
            for name, colour in MEASURES.items()
        ]

    panels: Panels = {
        "accuracy": {"near at the same instant": curves("score"), "near within the window": curves("window_score")}
    }
    signs = [(colour, SHOWN.get(name, name)) for name, colour in MEASURES.items()]
    _save("objects", "Accuracy with predictions", panels, _along(followed, "vehicles in 10 km²"), signs, ACCURACY)


def draw_functions(compared: Mapping[int, Mapping[str, Followed]]) -> None:
    """F-measure, tuples and time by the number of vehicles, a curve a way."""
    most = max(each.tuples for ways in compared.values() for each in ways.values())
    longest = max(each.seconds for ways in compared.values() for each in ways.values())

    def curves(value: Callable[[Followed], float]) -> list[Curve]:
        return [
            Curve(colour, [(count, value(ways[way])) for count, ways in compared.items()])
            for way, colour in WAYS.items()
        ]

    panels: Panels = {
        "share": {
            "F-measure": curves(lambda each: each.score.f),
            f"tuples, of {most:.0f}/s": curves(lambda each: each.tuples / most),
            f"processor, of {longest:.2g} s a second": curves(lambda each: each.seconds / longest),
        }
    }
    signs = [(colour, way) for way, colour in WAYS.items()]
    _save("functions", "Predictions, or plain values", panels, _along(compared, "vehicles in 10 km²"), signs)


def draw_policies(compared: Mapping[float, Mapping[str, Followed]]) -> None:
    """Recall and precision by the window, a curve a policy."""

    def curves(name: str) -> list[Curve]:
        return [
            Curve(
                colour,
                [(within, getattr(ways[policy].score, name)) for within, ways in compared.items()],
                dashed=policy == "LEAST CONTRIBUTION",
            )
            for policy, colour in POLICIES.items()
        ]

    panels: Panels = {"accuracy": {"recall": curves("recall"), "precision": curves("precision")}}
    signs = [(colour, policy) for policy, colour in POLICIES.items()]
    _save("policies", "A buffer that is too small", panels, _along(compared, "window, s"), signs, POORER)


def _score(each: Followed, ideal: str, name: str) -> float:
    score: Score = getattr(each, ideal)
    return float(getattr(score, name))


def _along(values: Mapping[float, object], name: str) -> Axis:
    places = sorted(values)
    return Axis(places[0], places[-1], marks=tuple(places), name=name)


def _save(
    file: str, title: str, panels: Panels, axis: Axis, signs: list[tuple[str, str]], up: Axis | None = None
) -> None:
    more = {} if up is None else {"up": up}
    picture = curves_svg(title, panels, axis, signs, row_width=100, tall=150, **more)
    (PICTURES / f"monitor-{file}.svg").write_text(picture + "\n", encoding="utf-8")
