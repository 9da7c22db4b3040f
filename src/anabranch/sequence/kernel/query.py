"""A sequence as numbers, as the kernel sees it.

Positive components are called by their *number*, 0 to m - 1, in the order of a search: the last is the *trigger*, from
which the search goes back. To read a sequence from its first event on, it is given in reverse, with times of the
opposite sign.

A search decides about components from the last to the first. Going from number j to number i it has found the event of
i, and that what lies between is missing: it has decided about i to j - 1. Going to the head, which is number -1, it has
decided about the rest. A condition is asked when the lowest of its components is decided.
"""

from __future__ import annotations

from typing import NamedTuple

from anabranch.arrays import F64, I64, Bools
from anabranch.sequence.kernel.tables import Tables

#: In the place of the number of a table: nothing lies between, so the score is 1; or it is 0 throughout.
ALWAYS, NEVER = -1, -2


#: A table may be wrong by so much, and so rise a little where the score falls.
TABLE_ERROR = 1e-7


class Scores(NamedTuple):
    """What a gap scores, and how its score can be bounded.

    Attributes
    ----------
    tables : of the query
    gap : (m, m) the table of the gap from i to j, i < j
    head : (m,) the table of what lies before i
    rising, falling, highest : of each table
    window : the longest time from the first event to the last
    unit : of times, in that of the tables
    threshold : the least score
    """

    tables: Tables
    gap: I64
    head: I64
    rising: Bools
    falling: Bools
    highest: F64
    window: float
    unit: float
    threshold: float


class Demands(NamedTuple):
    """What is asked of several events together.

    Attributes
    ----------
    positives : (m,) the components that are positive, in the order of the search
    programs, program : one program after the other, and where each begins
    asked, asked_first : the programs to ask when number i is decided: those from asked_first[i + 1] on
    guards : (g, 3) components of which there must be no event: which, the number of the first positive after it, and 1
        where it is that positive itself, which is taken as missing
    guard_asked, guard_first : the programs that such an event must meet
    watch, watch_first : the guards to ask when number i is decided: those from watch_first[i + 1] on
    matrix, members : what programs load
    stack : room for the longest program
    """

    positives: I64
    programs: I64
    program: I64
    asked: I64
    asked_first: I64
    guards: I64
    guard_asked: I64
    guard_first: I64
    watch: I64
    watch_first: I64
    matrix: F64
    members: F64
    stack: F64
