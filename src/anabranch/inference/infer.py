"""Inference of one key on a worker: a model, a method and the state of the key; steps in, rows out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.binding.derived_streams import METHOD_MODELS, WEIGHTED, WHOLE_ARCHIVE
from anabranch.catalog import Model
from anabranch.inference import kernel
from anabranch.inference.hmm import Hmm
from anabranch.inference.kernel import Sensors
from anabranch.inference.states import States, chain_of, measured_readings, sensors_of


@dataclass(slots=True)
class KeyState:
    """The state of a key between calls: the number of its steps so far, and the weights of the states of the model.

    `weights` and `levels` are those of the kernels; for PARTICLE, `weights` has the numbers of particles. `marginal` is
    that of `kernel.pair_rows`; with SMOOTH it is positive where the key may be at the last step. Other methods do not
    need it.
    """

    steps: int
    seed: int
    weights: F64
    levels: I32
    marginal: F64

    def to_arrays(self) -> tuple[F64, I64]:
        """The state as two plain arrays, without weights of 0."""
        (states,) = np.nonzero(self.weights)
        seed = np.array([self.seed], np.uint64).view(np.int64)
        ints = np.concatenate([[self.steps], seed, states, self.levels[states]]).astype(np.int64)
        floats = self.weights[states]
        return np.concatenate([floats, self.marginal[states]]) if len(self.marginal) else floats, ints

    @classmethod
    def from_arrays(cls, floats: F64, ints: I64, n_states: int) -> KeyState:
        """The state from the arrays of `to_arrays`, for a model with this number of states."""
        weights, levels = np.zeros(n_states), np.zeros(n_states, np.int32)
        states, state_levels = np.split(ints[2:], 2)
        weights[states], levels[states] = floats[: len(states)], state_levels
        marginal = np.zeros(n_states if len(floats) > len(states) else 0)
        if len(marginal):
            marginal[states] = floats[len(states) :]
        return cls(int(ints[0]), int(ints[1:2].astype(np.int64).view(np.uint64)[0]), weights, levels, marginal)


@dataclass(frozen=True, slots=True)
class Inferred:
    """The rows that were inferred from some steps.

    Attributes
    ----------
    step : int32 array
        The step of each row, as an index into the steps of the call; ascending.
    prev, location : int32 array
        Codes of locations; codes of states if the model is MARKOV, because a move depends on the stage. `prev` is -1 in
        rows of other models, and of the first step.
    p : float64 array
        1 if the model is CERTAIN; with JOINT and LAG, the weights of `kernel.pair_rows`.
    impossible : int32 array
        The steps whose readings the model cannot explain; they are treated as unobserved.
    dropped : float
        An upper bound of the change of any answer's probability by PRUNE.
    """

    step: I32
    prev: I32
    location: I32
    p: F64
    impossible: I32
    dropped: float = 0.0


class Inference:
    """An inference method with a model.

    Parameters
    ----------
    hmm : Hmm
    method : str
        One of `METHOD_MODELS`.
    particles : int
        The number of particles of PARTICLE; 0 for other methods.
    prune : float
        Rows of a lower probability are dropped; see `kernel.filter_rows` and `kernel.smooth_rows`.
    lag : int
        For LAG, how many steps after a step have readings that count; 0 for other methods.
    pairs : bool
        For JOINT and LAG: whether rows have probabilities of pairs, for people, instead of weights, for queries.

    Examples
    --------
    >>> from anabranch.inference.hmm import Entries, Sensing, make_hmm
    >>> x, y = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> hmm = make_hmm(
    ...     ["hall", "office"], ["antenna"], np.array([0.5, 0.5]), Entries(x, y, np.array([0.5, 0.5, 0.1, 0.9])),
    ...     Sensing.DETECTION, Entries(x[:1], y[:1], np.array([0.6])),
    ... )
    >>> inference = Inference(hmm, "FILTER")
    >>> state = inference.start()
    >>> inferred = inference.advance(state, np.array([0, 1, 1]), np.array([0], np.int32))  # seen, then not
    >>> inferred.step.tolist(), inferred.location.tolist(), inferred.p.round(3).tolist()
    ([0, 1, 1], [0, 0, 1], [1.0, 0.286, 0.714])
    """

    def __init__(
        self, hmm: Hmm, method: str, particles: int = 0, prune: float = 0.0, lag: int = 0, pairs: bool = False
    ) -> None:
        if method not in METHOD_MODELS:
            raise ValueError(f"there is no method {method}; the methods are {', '.join(METHOD_MODELS)}")
        if (particles > 0) != (method == "PARTICLE"):
            raise ValueError(f"{method} cannot have {particles} particles; PARTICLE needs 1 or more, other methods 0")
        if not 0 <= prune < 1:
            raise ValueError(f"prune is {prune}; it must be at least 0 and below 1")
        if (lag > 0) != (method == "LAG"):
            raise ValueError(f"{method} cannot have a lag of {lag} steps; LAG needs 1 or more, other methods 0")
        self.hmm, self.method, self.particles, self.prune = hmm, method, particles, float(prune)
        self.lag, self.pairs = lag, pairs
        self.states = States.of(hmm)
        so_far = hmm.exponent_so_far if self.streams else None
        self._tempered = hmm if so_far is None else replace(hmm, exponent=so_far)
        self._chain, self._sensors = chain_of(hmm), sensors_of(self._tempered)

    @property
    def model(self) -> Model:
        """The model of the inferred stream."""
        return METHOD_MODELS[self.method]

    def with_pairs(self) -> Inference:
        """The same with probabilities of pairs instead of weights."""
        return Inference(self.hmm, self.method, self.particles, self.prune, self.lag, pairs=True)

    @property
    def streams(self) -> bool:
        """Whether a key can resume from its state; otherwise all its steps must be in one call."""
        return self.method not in WHOLE_ARCHIVE

    def start(self, key_seed: int = 0) -> KeyState:
        """The state of a key before its first step; PARTICLE uses the seed `key_seed` (modulo 2^64)."""
        n = len(self.states.location)
        marginal = np.zeros(n if self.method in WEIGHTED else 0)
        return KeyState(0, key_seed % 2**64, np.zeros(n), np.zeros(n, np.int32), marginal)

    def advance(
        self, state: KeyState, reading_starts: I64, readings: I32, quantities: F64 | None = None, ahead: int = 0
    ) -> Inferred:
        """Infer the next steps of a key, and update its state in place.

        Parameters
        ----------
        state : KeyState
        reading_starts : (T + 1,) array
            The readers that saw the key at step t are readings[reading_starts[t]:reading_starts[t + 1]].
        readings : array
            Codes of readers, as in `hmm.readers`; -1 is a reader that the model does not know: its readings are
            impossible. Duplicates within a step count once.
        quantities : (readings, Q) array, optional
            What each reading measured, as in `hmm.gaussians`; NaN if unknown. By default all are unknown.
        ahead : int
            For LAG, how many of the last steps are only looked at: the next call begins with them.
        """
        if state.steps and not self.streams:
            raise ValueError(f"{self.method} needs all steps of a key in one call")
        starts, codes = np.ascontiguousarray(reading_starts, np.int64), np.ascontiguousarray(readings, np.int32)
        if self.hmm.gaussians is None or quantities is None:
            starts, codes = kernel.distinct_readings(starts, codes, len(self.hmm.readers))
            inferred = self._infer(state, self._sensors, starts, codes, ahead)
        else:
            measured = measured_readings(self._tempered, self.hmm.gaussians, self._sensors, starts, codes, quantities)
            inferred = self._infer(state, measured.sensors, measured.reading_starts, measured.readings, ahead)
        state.steps += len(starts) - 1 - ahead
        return inferred

    def _infer(self, state: KeyState, sensors: Sensors, starts: I64, readings: I32, ahead: int) -> Inferred:
        chain, plain = self._chain, self.states.plain
        if self.method in WEIGHTED:
            if not state.steps:  # the arrays of a state without steps do not show that it has a marginal
                state.marginal = np.zeros_like(state.weights)
            return Inferred(
                *kernel.pair_rows(
                    chain, sensors, starts, readings, state.steps > 0, state.weights, state.levels, state.marginal,
                    len(starts) - 1 - ahead, self.lag, self.pairs,
                )
            )  # fmt: skip
        if self.method == "SMOOTH":
            rows = kernel.smooth_rows(chain, sensors, starts, readings, self.prune, True)
            step, prev, location, p, impossible, _, dropped = rows
            if len(step):
                state.marginal = np.bincount(location[step == step[-1]], minlength=len(chain.initial)).astype(
                    np.float64
                )
            return Inferred(step, prev, location, p, impossible, dropped)
        if self.method == "VITERBI":
            path, impossible = kernel.viterbi_path(chain, sensors, starts, readings)
            return _certain(self.states.location[path], impossible)
        started = state.steps > 0
        if self.method == "MLE" and plain:
            return _certain(*kernel.mle_path(chain, sensors, starts, readings, started, state.weights, state.levels))
        # Rows are pruned by the probability of a location, which is that of all its stages.
        prune = self.prune if plain else 0.0
        if self.method in ("FILTER", "MLE"):
            step, location, p, impossible, _, dropped = kernel.filter_rows(
                chain, sensors, starts, readings, started, state.weights, state.levels, prune
            )
        elif self.method == "MARGINALS":
            step, location, p, impossible, _, dropped = kernel.marginal_rows(chain, sensors, starts, readings, prune)
        else:
            step, location, p, impossible, dropped = kernel.particle_rows(
                chain, sensors, starts, readings, state.steps, state.weights, np.uint64(state.seed), self.particles,
                prune,
            )  # fmt: skip
        if not plain:
            step, location, p = self._by_location(step, location, p)
            step, location, p, dropped = _pruned(step, location, p, self.prune)
        if self.method == "MLE":
            return _certain(location[_likeliest(step, p)], impossible)
        return Inferred(step, np.full_like(location, -1), location, p, impossible, dropped)

    def _by_location(self, step: I32, state: I32, p: F64) -> tuple[I32, I32, F64]:
        """The rows of states as rows of locations; the states of a location are consecutive."""
        location = self.states.location[state]
        firsts = np.flatnonzero(np.concatenate([[True], (np.diff(step) != 0) | (np.diff(location) != 0)])[: len(p)])
        total = np.add.reduceat(p, firsts) if len(p) else p
        return step[firsts], location[firsts], total


def advance_keys(
    inferences: Iterable[Inference], states: Sequence[KeyState], step_starts: I64, reading_starts: I64, readings: I32,
    quantities: F64 | None = None, ahead: Sequence[int] | None = None,
) -> Inferred:  # fmt: skip
    """`Inference.advance` for many keys, each with its own inference.

    Key k has the steps step_starts[k]:step_starts[k + 1], ahead[k] of them ahead.
    """
    parts = []
    steps = zip(step_starts[:-1].tolist(), step_starts[1:].tolist(), strict=True)
    for inference, state, (start, end), n_ahead in zip(inferences, states, steps, ahead or repeat(0), strict=False):
        part = inference.advance(state, reading_starts[start : end + 1], readings, quantities, n_ahead)
        parts.append(replace(part, step=part.step + np.int32(start), impossible=part.impossible + np.int32(start)))
    if not parts:
        return _certain(np.empty(0, np.int32), np.empty(0, np.int32))
    names = ("step", "prev", "location", "p", "impossible")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Inferred(**columns, dropped=sum(part.dropped for part in parts))


def _certain(path: I32, impossible: I32) -> Inferred:
    """Rows of a single path."""
    step = np.arange(len(path), dtype=np.int32)
    return Inferred(step, np.full_like(path, -1), path, np.ones(len(path)), impossible)


def _likeliest(step: I32, p: F64) -> I64:
    """The index of the most probable row of each step; the first one if several are equal."""
    order = np.lexsort((np.arange(len(p)), -p, step))
    return order[np.concatenate([[True], np.diff(step[order]) != 0])[: len(p)]]


def _pruned(step: I32, location: I32, p: F64, prune: float) -> tuple[I32, I32, F64, float]:
    """The rows without those below `prune`, except the most probable of a step, scaled; and what was dropped."""
    if prune == 0:
        return step, location, p, 0.0
    kept = p >= prune
    kept[_likeliest(step, p)] = True
    dropped = float(p[~kept].sum())
    step, location, p = step[kept], location[kept], p[kept]
    return step, location, p / np.bincount(step, weights=p)[step], dropped
