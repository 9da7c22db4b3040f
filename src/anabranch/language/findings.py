"""Collects the findings about a workbook, up to a limit, and suggests the nearest name for an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from anabranch.errors import Finding, Span
from anabranch.language.limits import MAX_FINDINGS

#: Candidates compared for one suggestion, so that it takes milliseconds, not seconds.
MAX_CANDIDATES = 400

#: The longest message, and the longest hint, in characters.
MAX_MESSAGE = 400


class Findings:
    """The findings about one workbook or query; keeps the first MAX_FINDINGS."""

    def __init__(self) -> None:
        self.items: list[Finding] = []

    def __bool__(self) -> bool:
        return bool(self.items)

    @property
    def full(self) -> bool:
        """Whether further findings would be dropped."""
        return len(self.items) >= MAX_FINDINGS

    def add(self, code: str, message: str, span: Span | None, hint: str = "") -> None:
        """Add one finding."""
        if not self.full:
            self.items.append(Finding(code, _shortened(message), _shortened(hint), span))

    def extend(self, others: Findings) -> None:
        """Add the findings of another collection."""
        self.items.extend(others.items[: MAX_FINDINGS - len(self.items)])

    def unknown(
        self, what: str, name: str, candidates: Iterable[str], span: Span, fallback_hint: str = "", where: str = ""
    ) -> None:
        """Report that there is no `what` called `name`; the hint is the nearest candidate, else `fallback_hint`."""
        if not self.full:
            message = f"there is no {what} {shown(name)}{where and ' in '}{where}"
            hint = did_you_mean(name, candidates) or fallback_hint
            self.add(f"unknown-{what.split()[0].lower()}", message, span, hint)

    def in_order(self) -> list[Finding]:
        """The findings without duplicates, sorted by position."""
        return sorted(dict.fromkeys(self.items), key=_position)


def _shortened(text: str) -> str:
    """The text, cut to MAX_MESSAGE characters: a list of thousands of names is unreadable."""
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 4] + " ..."


def _position(finding: Finding) -> tuple[int, int]:
    return (finding.span.line, finding.span.column) if finding.span else (1, 1)


def shown(name: str) -> str:
    """A name or text of the user, quoted and shortened for a message of one line."""
    word = name if len(name) <= 40 else name[:37] + "..."
    return "'" + "".join(c if c.isprintable() else "?" for c in word) + "'"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`did you mean 'hall'?`, or an empty text if no candidate is near."""
    near = nearest(name, candidates)
    return f"did you mean {shown(near)}?" if near else ""


def nearest(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The candidate most similar to `name`, ignoring case; None if no candidate is near."""
    by_lower: dict[str, str] = {}
    for candidate in candidates:
        if abs(len(candidate) - len(name)) <= 2 + len(name) // 3 and len(by_lower) < MAX_CANDIDATES:
            by_lower.setdefault(candidate.lower(), candidate)
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[matches[0]] if matches else None


def listed(words: Iterable[str], last: str = "or") -> str:
    """Join words as in `a, b or c`; `last` is the word before the last one."""
    items = list(words)
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"
