"""The truth about a buffer of fixed size, arrival by arrival, in fractions.

How the definitions are read
----------------------------
- A prediction of a key applies on [t, min(t + PERIOD, t of the key's next)). Arrivals come in the order of time.
- One that arrives ends the one before it of its key. What ended more than `width` (the window, and how late a
  prediction may come) before the newest time of the slowest stream can meet nothing to come, and is let go: nothing
  takes over from it.
- Where the buffer of its stream is full, one prediction is discarded: LEAST CONTRIBUTION the one with the least, itself
  among them; OLDEST the one with the least time, and RANDOM any, but for itself; NEWEST itself. Which of several that
  are as good is by lot.
- The contribution is the smaller of the two integrals of the absolute difference to what the neighbours of its key in
  the buffer predict, over the time in which it applies, summed over the columns in units of its own errors (where they
  are 0, as they are). The last of its key, and so an only one, has an infinite one.
- What was discarded is taken over by the neighbour with the smaller error: by one before, not beyond its own PERIOD; by
  one after, from where the discarded one began. Nothing is taken over from NEWEST: it ended the one before.
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
    def who(self) -> tuple[str, int, Fraction]:
        """Its name."""
        return self.stream, self.key, self.time

    def at(self, column: int, instant: Fraction) -> Fraction:
        """What a column is predicted to be."""
        return self.values[column] + self.rates[column] * (instant - self.time)

    def error_of(self, other: Buffered) -> Fraction:
        """How wrong another prediction would be in its place."""
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
    """The buffers of some streams, each of one size; `periods` by stream."""

    size: int
    policy: str
    periods: dict[str, Fraction]
    width: Fraction
    held: list[Buffered] = field(default_factory=list)
    newest: dict[str, Fraction] = field(default_factory=dict)

    def neighbours(self, each: Buffered) -> tuple[Buffered | None, Buffered | None]:
        """Those in the buffer before and after one, of its key."""
        own = [other for other in self.held if other.who[:2] == each.who[:2]]
        before = max((other for other in own if other.time < each.time), key=lambda other: other.time, default=None)
        after = min((other for other in own if other.time > each.time), key=lambda other: other.time, default=None)
        return before, after

    def contribution(self, each: Buffered) -> Fraction | float:
        """How wrong its key would be predicted without one."""
        before, after = self.neighbours(each)
        if after is None:
            return math.inf
        return min(each.error_of(other) for other in (before, after) if other is not None)

    def arrive(
        self, stream: str, key: int, time: Fraction, values: Sequence[Fraction], rates: Sequence[Fraction],
        errors: Sequence[Fraction],
    ) -> list[Buffered]:  # fmt: skip
        """Let a prediction come; the victims among which one is to be discarded, none where there is room."""
        self.newest[stream] = max(self.newest.get(stream, time), time)
        if len(self.newest) == len(self.periods):
            now = min(self.newest.values())
            self.held = [each for each in self.held if each.end >= now - self.width]
        self.held = [
            replace(each, end=min(each.end, time)) if each.who[:2] == (stream, key) else each for each in self.held
        ]
        is_full = sum(each.stream == stream for each in self.held) >= self.size
        new = Buffered(stream, key, time, time, time + self.periods[stream], tuple(values), tuple(rates), tuple(errors))
        if is_full and self.policy == NEWEST:
            return []
        self.held.append(new)
        return self.victims(new) if is_full else []

    def victims(self, new: Buffered) -> list[Buffered]:
        """Those of which one must go."""
        own = [each for each in self.held if each.stream == new.stream]
        others = [each for each in own if each is not new]
        if self.policy == OLDEST:
            return [each for each in others if each.time == min(other.time for other in others)]
        if self.policy == RANDOM:
            return others
        least = min(self.contribution(each) for each in own)
        return [each for each in own if self.contribution(each) <= least + TIE]

    def heirs(self, victim: Buffered) -> list[Buffered]:
        """Those that may take over from a victim: one, but for ties."""
        around = [each for each in self.neighbours(victim) if each is not None]
        least = min((victim.error_of(each) for each in around), default=Fraction(0))
        return [each for each in around if victim.error_of(each) <= least + TIE]

    def discard(self, victim: Buffered, heir: Buffered | None) -> None:
        """Let a victim go, and one of its heirs take over."""
        self.held.remove(victim)
        if heir is None:
            return
        place = self.held.index(heir)
        if heir.time < victim.time:
            reach = min(victim.end, heir.time + self.periods[heir.stream])
            self.held[place] = replace(heir, end=max(heir.end, reach))
        else:
            self.held[place] = replace(heir, begin=min(heir.begin, victim.begin))
