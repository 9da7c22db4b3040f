"""The arithmetic of PATTERN: arrays in, arrays out; knows no Spark, no Arrow and no text.

Rows of one call are first put in order (`order.py`: by chain, instant, key) and cleaned (rows given twice, groups whose
probabilities exceed 1). Then one of three kernels carries a weight for each automaton state forward over the instants
of each chain:

- `single.py`: every chain is one Markov key. A weight for each (value, state); a table row costs one multiply-add per
  state.
- `independent.py`: no stream remembers. The letter distributions of the chain's keys are combined (union convolution),
  then the states alone are carried.
- `joint.py`: several keys, some of them Markov. The values of the Markov keys form a product, one axis each.

Assumptions: different keys are independent; a key's value depends on the past through its last value only; value
code 0 is *nothing*, which emits no symbol; letter 0 is the empty set.

Complexity: linear in the rows, times the number of states (and the size of the product, for the joint kernel).
"""

from anabranch.pattern.kernel.chains import CERTAIN, DUPLICATE, INDEPENDENT, MARKOV, OVERFULL, ROUNDING, USED
from anabranch.pattern.kernel.independent import step_independent
from anabranch.pattern.kernel.joint import step_joint
from anabranch.pattern.kernel.order import TOLERANCE, clean_rows, order_rows
from anabranch.pattern.kernel.single import step_single

__all__ = [
    "CERTAIN", "DUPLICATE", "INDEPENDENT", "MARKOV", "OVERFULL", "ROUNDING", "TOLERANCE", "USED",
    "clean_rows", "order_rows", "step_independent", "step_joint", "step_single",
]  # fmt: skip
