"""The kernels of PATTERN: arrays in, arrays out; without Spark, Arrow and text.

The rows of a call are first sorted (`order.py`: by chain, instant and key) and cleaned (duplicates, and groups whose
probabilities exceed 1). Then one of three kernels updates a weight for each automaton state, over the instants of each
chain:

- `single.py`: every chain is one Markov key. One weight per (value, state); a table row costs one multiply-add per
  state.
- `independent.py`: no key is Markov. The letter distributions of the chain's keys are combined (union convolution),
  and there is one weight per state.
- `joint.py`: several keys, some of them Markov. The values of the Markov keys form a product with one axis per key.

`bounded.py` bounds the weights if events may depend on each other in any way.

`safe.py` and `words.py` belong to the methods for archives: safe plans, and sampled worlds as bits.

Assumptions: different keys are independent; the value of a Markov key depends on its previous value only; value code 0
is *nothing*, which emits no symbol; letter 0 is the empty set.

Complexity: linear in the rows, times the number of states (and the size of the product, for the joint kernel).
"""

from anabranch.pattern.kernel.bounded import Products, step_bounded
from anabranch.pattern.kernel.chains import CERTAIN, DUPLICATE, INDEPENDENT, MARKOV, OVERFULL, ROUNDING, USED, WEIGHTED
from anabranch.pattern.kernel.independent import step_independent
from anabranch.pattern.kernel.joint import step_joint
from anabranch.pattern.kernel.order import TOLERANCE, clean_rows, order_rows
from anabranch.pattern.kernel.safe import true_since
from anabranch.pattern.kernel.single import step_single

__all__ = [
    "CERTAIN", "DUPLICATE", "INDEPENDENT", "MARKOV", "OVERFULL", "ROUNDING", "TOLERANCE", "USED", "WEIGHTED",
    "Products", "clean_rows", "order_rows", "step_bounded", "step_independent", "step_joint", "step_single",
    "true_since",
]  # fmt: skip
