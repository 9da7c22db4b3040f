"""Checks the distributions of DURATION and GAP, the lengths of segments and of the gaps between them."""

from __future__ import annotations

from anabranch.binding.durations import checked_duration
from anabranch.language import nodes
from anabranch.language.findings import Findings, shown

#: The distributions, with their arguments; FITTED has a file.
SEGMENT_LAWS: dict[str, tuple[str, ...]] = {"EXPONENTIAL": ("mean",), "ERLANG": ("k", "mean"), "FITTED": ()}

#: The most phases of an ERLANG: the time of a query grows with the product of the phases of two entities.
MOST_PHASES = 100


def check_segment_law(findings: Findings, clause: str, law: nodes.SegmentLaw) -> None:
    """Report an unknown distribution, a wrong number of arguments, and arguments that are out of range."""
    if law.law not in SEGMENT_LAWS:
        hint = "the laws are EXPONENTIAL(mean), ERLANG(k, mean) and FITTED 'file'"
        findings.unknown("law", law.law, SEGMENT_LAWS, law.span, hint)
        return
    expected = SEGMENT_LAWS[law.law]
    if (law.path is None) != bool(expected):
        takes = "parameters, not a file" if expected else "the path of a file, not parameters"
        written = f"{law.law}({', '.join(expected)})" if expected else f"{law.law} 'durations.csv'"
        findings.add("law-arguments", f"{law.law} takes {takes}", law.span, f"write {clause} {written}")
        return
    if law.path is not None:
        return
    if len(law.arguments) != len(expected):
        message = f"{law.law} takes {' and '.join(expected)}, not {len(law.arguments)} arguments"
        findings.add("law-arguments", message, law.span, f"write {clause} {law.law}({', '.join(expected)})")
        return
    if isinstance(law.mean, nodes.Duration):
        checked_duration(findings, f"the mean of {clause}", law.mean, positive=True)
    if law.law == "ERLANG":
        _check_phases(findings, law.arguments[0])


def _check_phases(findings: Findings, phases: nodes.Duration | nodes.ColumnName) -> None:
    hint = "write ERLANG(3, mean)"
    if isinstance(phases, nodes.ColumnName):
        message = f"the k of ERLANG must be a number, not the column {shown(phases.name)}"
        findings.add("out-of-range", message, phases.span, hint)
    elif phases.unit is not None or phases.amount % 1 or not 1 <= phases.amount <= MOST_PHASES:
        message = f"the k of ERLANG must be a whole number from 1 to {MOST_PHASES}"
        findings.add("out-of-range", message, phases.span, hint)
