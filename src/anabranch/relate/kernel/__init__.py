"""The arithmetic of RELATE: arrays in, arrays out; knows no keys, no Arrow and no Spark.

`mark_entities` (`marks.py`) lists what is known of entities by instant, `segment_classes` (`classes.py`) what a segment
can become, and `relate_pairs` (`sweep.py`) carries probabilities over the marks of two entities, with the lost events
between them placed by `gaps.py`.

**Cost.** A mark takes O(classes x counts) for each combination of how many events of the two open runs have happened;
a gap between two marks takes that once for each event that may happen in it. There are two or three classes for most
queries, and as many counts as AT LEAST asks for.

**Compiled code.** Numba's cache of a function notices a change in the function's own file alone. After one in a module
that others import (`gaps.py`, say), remove the caches: `make clean`.
"""

from anabranch.relate.kernel.classes import Classes, relation_of, segment_classes
from anabranch.relate.kernel.marks import Entities, mark_entities
from anabranch.relate.kernel.sweep import relate_pairs

__all__ = ["Classes", "Entities", "mark_entities", "relate_pairs", "relation_of", "segment_classes"]
