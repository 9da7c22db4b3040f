"""An explanation: it prints itself, is a table, and can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from anabranch.explanation.contributions import Contributions

if TYPE_CHECKING:
    import pandas as pd

    from anabranch.plotting.chart import Chart


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a history: when, about what, and what happened."""

    t: Any
    subject: str
    event: str


@dataclass(frozen=True, slots=True)
class History:
    """One possible course of events.

    Attributes
    ----------
    true : whether the answer is true in it
    moments : its lines, by time; empty if there is no such history
    probability : of the history; None if histories are a continuum
    share : its part of all histories in which the answer is true, or is not
    note : what it is, if it is not the most likely one of a countable number
    """

    true: bool
    moments: tuple[Moment, ...]
    probability: float | None = None
    share: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an answer has its probability.

    Attributes
    ----------
    query, answer : the name of the query, and the answer in one line
    probability : of the answer
    contributions : the effect of the strongest pieces of evidence
    histories : the most likely one in which the answer is true, and the most likely one in which it is not
    notes : what a reader must know besides
    """

    query: str
    answer: str
    probability: float
    contributions: Contributions
    histories: tuple[History, ...]
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        from anabranch.explanation.text import explanation_text

        return explanation_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_rows(self) -> list[dict[str, Any]]:
        """The effects of the pieces of evidence: what, evidence, t, without, effect."""
        return [
            {
                "what": item.piece.what,
                "evidence": item.piece.text,
                "t": item.piece.t,
                "without": item.without,
                "effect": item.effect,
            }
            for item in self.contributions.items
        ]

    def to_pandas(self) -> pd.DataFrame:
        """The effects of the pieces of evidence as a pandas DataFrame."""
        import pandas as pd

        columns = ["what", "evidence", "t", "without", "effect"]
        return pd.DataFrame(self.to_rows(), columns=columns)

    def plot(self) -> Chart:
        """The effects as a waterfall; a notebook displays it, and `save` writes it to a file."""
        from anabranch.plotting.dispatch import require_altair

        require_altair()
        from anabranch.plotting.chart import Chart
        from anabranch.plotting.waterfall import draw

        title = f"Why {self.query} has probability {self.probability:.3g}"
        return Chart(draw(self.to_rows(), self.probability, title, [self.answer]), title)


def runs_of(moments: Sequence[Moment]) -> list[tuple[Any, Moment]]:
    """The moments without repetitions of a subject: the last time of each run, and its first moment."""
    last: dict[str, int] = {}
    runs: list[tuple[Any, Moment]] = []
    for moment in moments:
        index = last.get(moment.subject)
        if index is not None and runs[index][1].event == moment.event:
            runs[index] = (moment.t, runs[index][1])
        else:
            last[moment.subject] = len(runs)
            runs.append((moment.t, moment))
    return runs
