"""Collecting what is wrong with a workbook: bounded, in order of place, with the nearest name suggested."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from anabranch.errors import Finding, Span
from anabranch.language.limits import MAX_FINDINGS

#: Candidates looked at for one suggestion: a suggestion is worth milliseconds, not seconds.
MAX_CANDIDATES = 400

#: Characters of a message, and of its hint.
MAX_MESSAGE = 400


class Findings:
    """The findings of one workbook or query; keeps the first hundred."""

    def __init__(self) -> None:
        self.found: list[Finding] = []

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def full(self) -> bool:
        """Whether further findings would be dropped."""
        return len(self.found) >= MAX_FINDINGS

    def add(self, code: str, message: str, span: Span | None, hint: str = "") -> None:
        """Note one finding."""
        if not self.full:
            self.found.append(Finding(code, _short(message), _short(hint), span))

    def extend(self, others: Findings) -> None:
        """Note the findings of a part."""
        self.found.extend(others.found[: MAX_FINDINGS - len(self.found)])

    def unknown(
        self, what: str, name: str, candidates: Iterable[str], span: Span, otherwise: str = "", where: str = ""
    ) -> None:
        """Note that there is no `what` called `name`; the hint is the nearest candidate, else `otherwise`."""
        if not self.full:
            message = f"there is no {what} {shown(name)}{where and ' in '}{where}"
            self.add(f"unknown-{what.split()[0]}", message, span, did_you_mean(name, candidates) or otherwise)

    def in_order(self) -> list[Finding]:
        """The findings by place, each once."""
        return sorted(dict.fromkeys(self.found), key=_place)


def _short(text: str) -> str:
    """The text, cut where thousands of names would make it unreadable."""
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 4] + " ..."


def _place(finding: Finding) -> tuple[int, int]:
    return (finding.span.line, finding.span.column) if finding.span else (1, 1)


def shown(name: str) -> str:
    """A user's word, quoted for a message of one line, shortened where it is long."""
    word = name if len(name) <= 40 else name[:37] + "..."
    return "'" + "".join(c if c.isprintable() else "?" for c in word) + "'"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`did you mean 'hall'?`, or nothing where no candidate is near."""
    near = nearest(name, candidates)
    return f"did you mean {shown(near)}?" if near else ""


def nearest(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The candidate most like `name` without regard to case, None where none is near."""
    by_lower: dict[str, str] = {}
    for candidate in candidates:
        if abs(len(candidate) - len(name)) <= 2 + len(name) // 3 and len(by_lower) < MAX_CANDIDATES:
            by_lower.setdefault(candidate.lower(), candidate)
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[matches[0]] if matches else None


def listed(words: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    items = list(words)
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"
