"""The arithmetic of RELATE: arrays in, arrays out; knows no keys, no Arrow and no Spark.

`mark_entities` (`marks.py`) lists the instants at which something is known about an entity. `segment_classes`
(`classes.py`) groups open segments by their possible outcomes. `relate_pairs` (`sweep.py`) computes the probability of
a pair in one pass over the marks of both entities; `gaps.py` distributes the lost events over the gaps between marks.

**Cost.** A mark takes O(classes x counts) for each combination of the numbers of events of the two open runs that have
happened; a gap between two marks takes that once for each event that may happen in it. Most queries have two or three
classes. The number of counts is that of the first quantifier; with COUNT, the number of segments.

`relate_chains` (`phases.py`) does the same for entities whose segments or gaps have distributions: there a gap between
two marks takes O(states of both chains), times the logarithm of the largest rate x time.

`assembly.py` assembles rows into entities, and `pairs.py` finds candidate pairs.
"""

from anabranch.relate.kernel.assembly import (
    BEYOND,
    LENGTHS,
    MOST_EVENTS,
    MOST_LOST,
    NO_END,
    NO_MEAN,
    NO_ROOM,
    NO_START,
    ODD,
    ORDER,
    REPEATED,
    TOO_LONG,
    check_entities,
    event_windows,
    order_rows,
)
from anabranch.relate.kernel.classes import Classes, relation_of, segment_classes
from anabranch.relate.kernel.marks import Entities, mark_entities
from anabranch.relate.kernel.pairs import candidate_pairs, upper_bounds
from anabranch.relate.kernel.phases import Chains, relate_chains
from anabranch.relate.kernel.sweep import relate_pairs

__all__ = [
    "BEYOND", "LENGTHS", "MOST_EVENTS", "MOST_LOST", "NO_END", "NO_ROOM", "NO_START", "ODD", "ORDER", "REPEATED",
    "NO_MEAN", "TOO_LONG", "Chains", "Classes", "Entities", "candidate_pairs", "check_entities", "event_windows",
    "mark_entities", "order_rows", "relate_chains", "relate_pairs", "relation_of", "segment_classes", "upper_bounds",
]  # fmt: skip
