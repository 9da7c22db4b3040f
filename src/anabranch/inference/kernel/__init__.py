"""The arithmetic of hidden Markov models: arrays in, arrays out; knows no files, no Arrow and no Spark.

A kernel takes the consecutive steps of one key and gives rows (step, location, p), rows (step, previous, location, p)
or one location a step:

- `filter_rows`, `mle_path` (`forward.py`): where the key was at each step, given the readings up to it.
- `particle_rows` (`particles.py`): the same by a sample of fixed size.
- `smooth_rows`, `marginal_rows` (`smoothing.py`): whole paths and single steps, given all readings. They go forward
  over what `backward.py` found out going back.
- `viterbi_path` (`viterbi.py`): the likeliest path, given all readings.

They are given the arrays of `inputs.py`, carry the weights of `weights.py`, which do not underflow, and write the rows
of `rows.py`.

**Impossible readings.** Where the readings of a step have likelihood 0 in every location that the model can be in, the
step is taken as if nothing were known of it (likelihood 1 everywhere), and is reported.

**Cost.** A step takes O(N + transitions from locations that are possible). Smoothing and Viterbi keep the weights of
every sqrt(T)-th step and work out the others again, block by block: O(sqrt(T) N) memory besides the result.

**Compiled code.** Numba's cache of a function notices a change in the function's own file alone. After one in a module
that others import (`weights.py`, say), remove the caches: `make clean`.
"""

from anabranch.inference.kernel.forward import filter_rows, mle_path
from anabranch.inference.kernel.inputs import SMALLEST, Chain, Sensors, distinct_readings
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
    "particle_rows",
    "smooth_rows",
    "viterbi_path",
]
