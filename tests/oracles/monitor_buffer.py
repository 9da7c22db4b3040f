"""The oracle of BUFFER: the predictions in the buffers after each arrival, in fractions.

Interpretation of the definitions
---------------------------------
- A prediction of a key applies on [t, min(t + PERIOD, t of the key's next)). Predictions arrive in the order of time.
- A new prediction ends the previous one of its key. A prediction that ended more than `width` (the window plus the
  lateness) before the newest time of the slowest stream cannot be compared with later ones: it is removed, without a
  replacement.
- If the buffer of a stream is full, one prediction is discarded. LEAST CONTRIBUTION: the one with the least
  contribution, which may be the new one. OLDEST: the one with the smallest time, except the new one. RANDOM: any except
  the new one. NEWEST: the new one. Ties are broken at random.
- The contribution is the smaller of the two integrals of the absolute difference to the predictions of its neighbours
  of the same key in the buffer, over the time in which it applies. It is summed over the columns in units of its own
  errors (without a unit where they are 0). It is infinite for the last prediction of a key.
- A discarded prediction is replaced by the neighbour with the smaller error: the previous one is extended, but not
  beyond its own PERIOD; the next one is extended back to the begin of the discarded one. NEWEST has no replacement,
  because the new prediction has already ended the previous one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

LEAST_CONTRIBUTION, OLDEST, RANDOM, NEWEST = "LEAST CONTRIBUTION", "OLDEST", "RANDOM", "NEWEST"

#: Contributions that differ by less than this may be a tie in doubles.
TIE = Fraction(1, 10**9)


@dataclass(frozen=True)
class Buffered:
    """A prediction in a buffer: it applies from `begin` to `end`."""

    stream: str
    key: int
    time: Fraction
    begin: Fraction
    end: Fraction
    values: tuple[Fraction, ...]
    rates: tuple[Fraction, ...]
    errors: tuple[Fraction, ...]

    @property
    def name(self) -> tuple[str, int, Fraction]:
        """Identifies the prediction."""
        return self.stream, self.key, self.time

    def at(self, column: int, instant: Fraction) -> Fraction:
        """The predicted value of a column."""
        return self.values[column] + self.rates[column] * (instant - self.time)

    def error_of(self, other: Buffered) -> Fraction:
        """The error of another prediction that replaces this one."""
        total = Fraction(0)
        for column, error in enumerate(self.errors):
            first, last = (self.at(column, s) - other.at(column, s) for s in (self.begin, self.end))
            length = self.end - self.begin
            if first * last >= 0:
                area = abs(first + last) / 2 * length
            else:
                crossing = length * abs(first) / (abs(first) + abs(last))
                area = (abs(first) * crossing + abs(last) * (length - crossing)) / 2
            total += area / (error or 1)
        return total


@dataclass
class BufferManager:
    """The buffers of some streams, all of the same size; `periods` by stream."""

    size: int
    policy: str
    periods: dict[str, Fraction]
    width: Fraction
    held: list[Buffered] = field(default_factory=list)
    newest: dict[str, Fraction] = field(default_factory=dict)

    def neighbours(self, buffered: Buffered) -> tuple[Buffered | None, Buffered | None]:
        """The previous and the next prediction of the same key in the buffer."""
        same_key = [other for other in self.held if other.name[:2] == buffered.name[:2]]
        before = max(
            (other for other in same_key if other.time < buffered.time), key=lambda other: other.time, default=None
        )
        after = min(
            (other for other in same_key if other.time > buffered.time), key=lambda other: other.time, default=None
        )
        return before, after

    def contribution(self, buffered: Buffered) -> Fraction | float:
        """The prediction error that would result from dropping a prediction."""
        before, after = self.neighbours(buffered)
        if after is None:
            return math.inf
        return min(buffered.error_of(other) for other in (before, after) if other is not None)

    def arrive(
        self, stream: str, key: int, time: Fraction, values: Sequence[Fraction], rates: Sequence[Fraction],
        errors: Sequence[Fraction],
    ) -> list[Buffered]:  # fmt: skip
        """Add a prediction; returns the candidates for discarding, none if there is room."""
        self.newest[stream] = max(self.newest.get(stream, time), time)
        if len(self.newest) == len(self.periods):
            now = min(self.newest.values())
            self.held = [buffered for buffered in self.held if buffered.end >= now - self.width]
        self.held = [
            replace(buffered, end=min(buffered.end, time)) if buffered.name[:2] == (stream, key) else buffered
            for buffered in self.held
        ]
        is_full = sum(buffered.stream == stream for buffered in self.held) >= self.size
        new = Buffered(stream, key, time, time, time + self.periods[stream], tuple(values), tuple(rates), tuple(errors))
        if is_full and self.policy == NEWEST:
            return []
        self.held.append(new)
        return self.victims(new) if is_full else []

    def victims(self, new: Buffered) -> list[Buffered]:
        """The predictions of which one must be discarded."""
        same_stream = [buffered for buffered in self.held if buffered.stream == new.stream]
        others = [buffered for buffered in same_stream if buffered is not new]
        if self.policy == OLDEST:
            return [buffered for buffered in others if buffered.time == min(other.time for other in others)]
        if self.policy == RANDOM:
            return others
        least = min(self.contribution(buffered) for buffered in same_stream)
        return [buffered for buffered in same_stream if self.contribution(buffered) <= least + TIE]

    def replacements(self, victim: Buffered) -> list[Buffered]:
        """The neighbours that may replace a discarded prediction; several only in case of a tie."""
        around = [buffered for buffered in self.neighbours(victim) if buffered is not None]
        least = min((victim.error_of(buffered) for buffered in around), default=Fraction(0))
        return [buffered for buffered in around if victim.error_of(buffered) <= least + TIE]

    def discard(self, victim: Buffered, replacement: Buffered | None) -> None:
        """Discard a prediction, and replace it by a neighbour."""
        self.held.remove(victim)
        if replacement is None:
            return
        index = self.held.index(replacement)
        if replacement.time < victim.time:
            reach = min(victim.end, replacement.time + self.periods[replacement.stream])
            self.held[index] = replace(replacement, end=max(replacement.end, reach))
        else:
            self.held[index] = replace(replacement, begin=min(replacement.begin, victim.begin))
