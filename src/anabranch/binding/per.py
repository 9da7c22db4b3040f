"""PER: which answers become one row. The forms of the clause, bound, and the checks that need no stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from anabranch.binding.durations import checked_duration
from anabranch.binding.words import duration_text
from anabranch.catalog import Stream
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.findings import Findings
from anabranch.language.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """`threshold` is the lowest probability of a row; answers before PER have another one (`least`)."""

    threshold: float = 0.0

    @property
    def least(self) -> float:
        """The lowest probability of the answers that rows are made of."""
        return 0.0


@dataclass(frozen=True, slots=True)
class PerWindow(_Rows):
    """`PER d AT LEAST n TIMES`: windows [k d, (k + 1) d); `length` is in seconds for a TIMESTAMP.

    With a `zone`, they are windows of local time.
    """

    form: ClassVar[str] = "d"

    length: float
    at_least: int = 1
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class PerEpisode(_Rows):
    """`PER EPISODE ABOVE r GAP d`: answers with a probability above r that follow within `gap` are one row."""

    form: ClassVar[str] = "EPISODE"

    above: float = 0.0
    gap: float = 0.0

    @property
    def least(self) -> float:
        """The lowest probability of the answers that rows are made of; one that is equal to it is not above it."""
        return self.above


@dataclass(frozen=True, slots=True)
class PerKeys(_Rows):
    """`PER KEYS`: all answers with the same keys are one row."""

    form: ClassVar[str] = "KEYS"


Per = PerWindow | PerEpisode | PerKeys

#: The columns of the rows of each form, besides the keys.
COLUMNS: dict[type[Per], tuple[str, ...]] = {
    PerWindow: ("t_from", "t_to", "probability", "expected", "lower", "upper", "method"),
    PerEpisode: ("t_from", "t_to", "count", "probability", "expected"),
    PerKeys: ("t_from", "t_to", "count", "probability", "expected", "status"),
}


def bound_per(node: nodes.Per, threshold: float, above: float, findings: Findings) -> Per:
    """Bind the clause; report durations and numbers out of range. `above` is the checked number of ABOVE."""
    if isinstance(node, nodes.PerKeys):
        return PerKeys(threshold=threshold)
    if isinstance(node, nodes.PerEpisode):
        gap = 0.0 if node.gap is None else checked_duration(findings, "GAP", node.gap, positive=False)
        return PerEpisode(above, gap, threshold=threshold)
    if node.at_least < 1:
        message = f"AT LEAST must be 1 or more, not {node.at_least}"
        findings.add("out-of-range", message, node.span, "write AT LEAST 2 TIMES, or leave it out for once or more")
    return PerWindow(checked_duration(findings, "PER", node.length, positive=True), node.at_least, threshold=threshold)


def check_time_type(per: Per, stream: Stream, span: Span, findings: Findings) -> None:
    """Report a window whose ends are no times of the type that the stream has."""
    if not isinstance(per, PerWindow):
        return
    if stream.time.type is Type.INTEGER and per.length != round(per.length):
        time = f"{stream.name}.{stream.time.name}"
        message = f"PER {per.length:g} needs times between two integers, but {time} is an INTEGER"
        findings.add("type-mismatch", message, span, f"write an integer, such as PER {max(1, round(per.length))}")
    elif stream.time.type is Type.TIMESTAMP and per.length < 1e-6:
        message = f"PER {per.length:g} is shorter than a microsecond, the precision of a TIMESTAMP"
        findings.add("type-mismatch", message, span, "write a longer duration")


def in_zone(per: Per, streams: Sequence[Stream], span: Span, findings: Findings) -> Per:
    """The clause with the ZONE of the streams; report different ones."""
    zones = {stream.declaration.zone: stream.name for stream in streams}
    if not isinstance(per, PerWindow) or zones.keys() == {None}:
        return per
    if len(zones) > 1:
        (zone, name), (other, other_name) = list(zones.items())[:2]
        message = f"PER has windows of one time zone, but {name} has {zone or 'UTC'} and {other_name} {other or 'UTC'}"
        findings.add("time-zone", message, span, "declare the streams with the same ZONE")
    return replace(per, zone=next(iter(zones)))


def described(per: Per, time: Type) -> str:
    """What becomes one row, for `explain`; `time` is the type of the times."""
    kept = f", if its probability is {per.threshold:g} or more" if per.threshold else ""
    if isinstance(per, PerWindow):
        times = f"{per.at_least} answers are" if per.at_least > 1 else "1 answer is"
        zone = f" in {per.zone}" if per.zone else ""
        window = f"window of {duration_text(per.length, time)}{zone}"
        return f"one row per {window} and keys: the probability that at least {times} true{kept}"
    if isinstance(per, PerEpisode):
        above = f" with a probability above {per.above:g}" if per.above else ""
        gap = f" within {duration_text(per.gap, time)}" if per.gap else ""
        return f"one row per episode: answers with the same keys{above} that overlap or follow{gap}{kept}"
    return f"one row per set of keys{kept}"
