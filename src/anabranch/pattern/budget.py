"""When exact evaluation of a chain is given up: at the limit, or as soon as it is foreseeable that it is exceeded.

Sampling waits for it, once for each group, so a chain that is too large should be found out cheaply. All bounds are
counts and depend on the chain alone: the same data give the same method on any machine and in any bucket.
"""

from __future__ import annotations

from anabranch.errors import TooLarge

#: A chain is given up if this many times the limit would be needed, should it go on as at the last instants.
FAR_TOO_MANY = 8.0
#: Growth is taken into account after this part of the limit: the first instants of small chains grow, too.
TRIED = 0.1
#: Growth that lasts for this many instants is taken to go on.
LASTING = 3


class Budget:
    """The part of the limit that a chain has spent, instant by instant.

    Parameters
    ----------
    n_instants : how many instants the chain has
    too_large : what to raise

    Examples
    --------
    >>> budget = Budget(100, TooLarge("too many states"))
    >>> for spent in (0.02, 0.06, 0.18):
    ...     budget.end_instant(spent)
    Traceback (most recent call last):
    anabranch.errors.TooLarge: too many states
    """

    def __init__(self, n_instants: int, too_large: TooLarge) -> None:
        self._left = n_instants
        self._too_large = too_large
        self._spent = 0.0
        self._parts: list[float] = []

    def end_instant(self, spent: float) -> None:
        """Note the part of the limit that is spent after an instant; raise if it will be far exceeded."""
        self._left -= 1
        self._parts.append(spent - self._spent)
        self._spent = spent
        if spent > 1.0 or spent + self._parts[-1] * self._repeated() > FAR_TOO_MANY:
            raise self._too_large

    def _repeated(self) -> float:
        """How many times the part of the last instant the remaining ones are expected to need."""
        last = self._parts[-LASTING:]
        growth = 1.0
        if self._spent >= TRIED and len(last) == LASTING and min(last) > 0.0:
            growth = max(1.0, min(after / before for before, after in zip(last, last[1:], strict=False)))
        # A few instants of growth are enough to exceed any limit.
        return float(sum(growth ** min(number, 50) for number in range(1, self._left + 1)))
