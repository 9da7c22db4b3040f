"""The kernels of hidden Markov models: arrays in, arrays out; without files, Arrow and Spark.

A kernel takes consecutive steps of one key and returns rows (step, location, p), rows (step, previous, location, p) or
one location per step:

- `filter_rows`, `mle_path` (`forward.py`): the location at each step, given the readings up to it.
- `particle_rows` (`particles.py`): the same by a sample of fixed size.
- `smooth_rows`, `marginal_rows` (`smoothing.py`): complete paths and single steps, given all readings. They go forward
  and use the backward weights of `backward.py`.
- `pair_rows` (`pairs.py`): the weights of successive locations, given the readings up to each step or a lag later.
- `viterbi_path` (`viterbi.py`): the most likely path, given all readings.

They take the arrays of `inputs.py`, compute with the weights of `weights.py`, which do not underflow, and write the
rows of `rows.py`.

**Impossible readings.** If the readings of a step have likelihood 0 at every possible location, the step is treated as
unobserved (likelihood 1 everywhere), and is reported.

**Cost.** A step takes O(N + transitions from possible locations). Smoothing and Viterbi keep the weights of every
sqrt(T)-th step and recompute the others, block by block: O(sqrt(T) N) memory besides the result.
"""

from anabranch.inference.kernel.forward import filter_rows, mle_path
from anabranch.inference.kernel.inputs import SMALLEST, Chain, Sensors, distinct_readings
from anabranch.inference.kernel.pairs import pair_rows
from anabranch.inference.kernel.particles import particle_rows
from anabranch.inference.kernel.smoothing import marginal_rows, smooth_rows
from anabranch.inference.kernel.viterbi import viterbi_path
from anabranch.inference.kernel.weights import BITS

__all__ = [
    "BITS",
    "SMALLEST",
    "Chain",
    "Sensors",
    "distinct_readings",
    "filter_rows",
    "marginal_rows",
    "mle_path",
    "pair_rows",
    "particle_rows",
    "smooth_rows",
    "viterbi_path",
]
