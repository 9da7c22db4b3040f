"""Explains one answer of a query of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from anabranch.errors import AnabranchError
from anabranch.explanation.case import Case
from anabranch.explanation.contributions import SHOWN, contributions
from anabranch.explanation.explainer import Explainer, described
from anabranch.explanation.explanation import Explanation
from anabranch.explanation.identity import same

_EXPLAINERS = {
    "PATTERN": "PatternExplainer",
    "SEQUENCE": "SequenceExplainer",
    "MONITOR": "MonitorExplainer",
    "RELATE": "RelateExplainer",
    "CONSTRAIN": "ConstrainExplainer",
}


def explainer_of(kind: str) -> type[Explainer]:
    """The class that explains answers of a kind of query."""
    found: type[Explainer] = getattr(import_module(f"anabranch.explanation.{kind.lower()}"), _EXPLAINERS[kind])
    return found


def explain(case: Case, answer: Mapping[str, Any], shown: int = SHOWN) -> Explanation:
    """Explain an answer; `shown` is how many pieces of evidence are listed at most."""
    if "probability" not in answer:
        raise AnabranchError("an answer has a column probability; pass a row of the answers")
    explainer = explainer_of(case.bound.kind)(case, answer)
    notes = explainer.notes()
    if not same(answer["probability"], explainer.probability) and answer.get("method") != "sampling":
        notes.insert(0, f"the answer has probability {answer['probability']:.4f}; the inputs have changed since then")
    pieces = explainer.pieces()
    return Explanation(
        case.query.name,
        described(explainer.identity_of(explainer.row)),
        explainer.probability,
        contributions(pieces, explainer.probability, explainer.without, shown),
        tuple(explainer.histories()),
        tuple(notes),
    )
