"""Checks the durations of clauses such as WITHIN and WATERMARK."""

from __future__ import annotations

from anabranch.language import nodes
from anabranch.language.findings import Findings
from anabranch.language.temporal import amount_of


def checked_duration(findings: Findings, clause: str, node: nodes.Duration, positive: bool) -> float:
    """Return the duration in the unit of the time column; report one below 0, or 0 if it must be positive."""
    amount = amount_of(node)
    if amount < 0 or (positive and amount == 0):
        message = f"{clause} must be {'above 0' if positive else '0 or more'}, not {node.amount}"
        findings.add("out-of-range", message, node.span, "write a duration such as 5 SECONDS")
    return float(amount)
