"""Explanations as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.explanation.contributions import Contributions
from anabranch.explanation.explainer import literal
from anabranch.explanation.explanation import Explanation, History, runs_of
from anabranch.explanation.pieces import Piece
from anabranch.text import probability_text, short

#: The width of the bars of the waterfall, and of the text of a piece of evidence, in characters.
BAR, EVIDENCE = 40, 60


def explanation_text(explanation: Explanation) -> str:
    """The explanation as lines of text."""
    lines = [f"{explanation.query}: {explanation.answer}", f"probability {explanation.probability:.4f}"]
    lines += ["", *_waterfall(explanation)]
    for history in explanation.histories:
        lines += ["", *_history(history)]
    return "\n".join([*lines, *(f"\nNote: {note}" for note in explanation.notes)])


def _waterfall(explanation: Explanation) -> Iterator[str]:
    found = explanation.contributions
    if not found.items:
        yield f"None of the {found.n_pieces:,} pieces of evidence changes the probability."
        return
    yield f"What moved it: {_counted(found)}"
    texts = [short(_evidence(item.piece), EVIDENCE) for item in found.items]
    width = max(map(len, texts))
    yield f"  {'evidence':{width}}  without it  effect  from there to the answer, on a scale from 0 to 1"
    for item, text in zip(found.items, texts, strict=True):
        bar = _bar(item.without, explanation.probability)
        yield f"  {text:{width}}  {probability_text(item.without):>10}  {item.effect:+.3f}  {bar}".rstrip()


def _evidence(piece: Piece) -> str:
    """A piece of evidence with its time."""
    return piece.text if piece.t is None else f"{literal(piece.t)}  {piece.text}"


def _counted(found: Contributions) -> str:
    """How many pieces are shown, and what is known about the others."""
    shown, others = len(found.items), found.n_pieces - len(found.items)
    if not others:
        return "all pieces of evidence"
    rest = "the others have less effect" if found.n_effective > shown else "the others have no effect"
    if not found.complete:
        rest = "blocks of the others have less effect, and were not divided"
    return f"{shown:,} of {found.n_pieces:,} pieces of evidence; {rest}"


def _bar(start: float, end: float) -> str:
    """A floating bar between two probabilities: + if it goes up, - if it goes down."""
    low, high = sorted((round(start * BAR), round(end * BAR)))
    return "." * low + ("+" if end > start else "-") * max(1, high - low)


def _history(history: History) -> Iterator[str]:
    is_true = "true" if history.true else "not true"
    if not history.moments:
        yield f"There is no history in which it is {is_true}." if not history.note else history.note
        return
    facts = []
    if history.probability is not None:
        facts.append(f"probability {history.probability:.4g}")
    if history.share is not None:
        facts.append(f"{history.share:.0%} of all in which it is {is_true}")
    yield f"The most likely history in which it is {is_true}{': ' if facts else ''}{', '.join(facts)}"
    runs = runs_of(history.moments)
    times = [_time(moment.t, last) for last, moment in runs]
    width, subject = max(map(len, times)), max(len(moment.subject) for _, moment in runs)
    for time, (_, moment) in zip(times, runs, strict=True):
        yield f"  {time:{width}}  {moment.subject:{subject}}  {moment.event}".rstrip()
    if history.note:
        yield f"  {history.note}"


def _time(first: object, last: object) -> str:
    if first is None:
        return ""
    return literal(first) if first == last else f"{literal(first)} to {literal(last)}"
