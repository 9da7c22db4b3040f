"""The pictures of the SEQUENCE benchmark, in docs/images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.show.quality import Quality
from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, Panels, curves_svg

if TYPE_CHECKING:
    from benchmarks.sequence import Reliable

PICTURES = Path(__file__).parents[1] / "docs" / "images"

CONTESTANTS = {"threshold 0.5": FIRST, "threshold 0.1": SECOND, "deterministic": BASELINE}
MEASURES = {"precision": "precision", "recall": "recall", "F1": "f1"}
SCORES = {"posterior": FIRST, "joint": SECOND}

SAID = Axis(0.0, 1.0, marks=(0.0, 0.5, 1.0), name="what is said")


def draw_quality(found: Mapping[float, Mapping[str, Mapping[str, Quality]]]) -> None:
    """Precision, recall and F1 by the share that is lost, a row a query."""
    queries = next(iter(found.values()))

    def curves(query: str, measure: str) -> list[Curve]:
        return [
            Curve(colour, [(miss, getattr(of[query][name], measure)) for miss, of in found.items()])
            for name, colour in CONTESTANTS.items()
        ]

    panels: Panels = {
        query: {title: curves(query, measure) for title, measure in MEASURES.items()} for query in queries
    }
    along = Axis(0.0, max(found), marks=(0.0, 0.1, 0.2, 0.3, 0.4), name="share of readings lost")
    signs = [(colour, name) for name, colour in CONTESTANTS.items()]
    _save("quality", curves_svg("Found as readings are lost", panels, along, signs, row_width=110, tall=130))


def draw_calibration(drawn: Mapping[str, Mapping[str, Mapping[str, list[Reliable]]]]) -> None:
    """The share that is true by what is said, a column a pattern, each with its first law."""

    def curves(by_score: Mapping[str, list[Reliable]]) -> list[Curve]:
        measured = [
            Curve(colour, [(each.said, each.true) for each in by_score[score]], dashed=score == "joint")
            for score, colour in SCORES.items()
        ]
        return [Curve(PALE, [(0.0, 0.0), (1.0, 1.0)]), *measured]

    firsts = {pattern: next(iter(by_law.items())) for pattern, by_law in drawn.items()}
    columns = {f"{pattern}, {law}": curves(by_score) for pattern, (law, by_score) in firsts.items()}
    signs = [(FIRST, "SCORING POSTERIOR"), (SECOND, "SCORING JOINT"), (PALE, "as it should be")]
    picture = curves_svg("Is it so?", {"share that is true": columns}, SAID, signs, row_width=150, tall=170)
    _save("calibration", picture)


def _save(name: str, picture: str) -> None:
    (PICTURES / f"sequence-{name}.svg").write_text(picture + "\n", encoding="utf-8")
