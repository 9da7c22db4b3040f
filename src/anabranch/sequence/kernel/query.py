"""A SEQUENCE query as arrays for the kernel.

Positive components have *numbers*, 0 to m - 1, in the order of the search. The last one is the *trigger*: its event
starts a search, which goes back in time. A search that starts with the first event of a sequence gets the components in
reverse order, and times with the opposite sign.

A run (`y+`) has no number: the search finds single events, and `runs.py` finds the runs between them. A gap with a run
has score 1 in the search.

A search decides the components from the last to the first. When it goes from number j to number i, it has chosen an
event for i, and the components between them are missing: numbers i to j - 1 are decided. When it goes to the *head*,
which is number -1, the remaining numbers are decided. A condition is evaluated as soon as the lowest number of its
components is decided.
"""

from __future__ import annotations

from typing import NamedTuple

from anabranch.arrays import F64, I64, Bools
from anabranch.sequence.kernel.tables import Tables

#: Used instead of the number of a table: nothing is between two components, so the score is 1; or it is always 0.
ALWAYS, NEVER = -1, -2


#: The largest error of a table. Because of it, a table can rise a little where the score falls.
TABLE_ERROR = 1e-7


class Window(NamedTuple):
    """The longest time from the first event to the last, up to the share `rounding` of the larger time."""

    length: float
    rounding: float


class Scores(NamedTuple):
    """The scores of gaps, and bounds on them.

    Attributes
    ----------
    tables : of the query
    gap : (m, m) the number of the table of the gap from i to j, i < j
    head : (m,) the number of the table of the components before i
    lead : the number of the table of the components after the trigger, in the order of the search
    rising, falling, highest : of each table
    window : the longest time from the first event to the last
    unit : the unit of times, in the unit of the tables
    threshold : the lowest score of a match
    """

    tables: Tables
    gap: I64
    head: I64
    lead: int
    rising: Bools
    falling: Bools
    highest: F64
    window: Window
    unit: float
    threshold: float


class Chances(NamedTuple):
    """The probabilities of events; all arrays are empty if every event is certain.

    Attributes
    ----------
    p : of each event
    instance : of each event, the number of its (stream, key, t): events of one instance exclude each other
    mass : (instances,) memory for `absence`, 0 between its calls
    listed : (events,) memory for `absence`
    is_listed : (events,) memory for `absence`, False between its calls
    """

    p: F64
    instance: I64
    mass: F64
    listed: I64
    is_listed: Bools


class Conditions(NamedTuple):
    """The conditions on several events.

    Attributes
    ----------
    positives : (m,) the positive components, in the order of the search
    programs, program_starts : the rows of all programs, and the index of the first row of each program
    due_programs, due_program_starts : the programs to evaluate when number i is decided; they start at index
        due_program_starts[i + 1]
    guards : (g, 3) components that must have no event between two others: the component; the number of the first
        positive after it, m for those after the trigger; and 1 if it is that positive itself, or one after the trigger,
        which is missing from the match
    guard_programs, guard_program_starts : the programs that an event must satisfy to violate each guard
    due_guards, due_guard_starts : the guards to check when number i is decided; they start at index
        due_guard_starts[i + 1]
    matrix, members : the values that programs load
    stack : memory for the longest program
    """

    positives: I64
    programs: I64
    program_starts: I64
    due_programs: I64
    due_program_starts: I64
    guards: I64
    guard_programs: I64
    guard_program_starts: I64
    due_guards: I64
    due_guard_starts: I64
    matrix: F64
    members: F64
    stack: F64


class Runs(NamedTuple):
    """The runs of a query.

    Attributes
    ----------
    components : (r,) the components that are runs
    before : (r, components) the number of the table of the gap before a run, at the index of the component that it
        begins with plus 1; index 0 is the beginning of the window
    after : (r, components + 1) likewise of the gap after it, at the index of the component that it ends with; the last
        index is the end of the window
    conditions : those of the query; the first guards are the runs, and the others must have no event next to a run
    """

    components: I64
    before: I64
    after: I64
    conditions: Conditions
