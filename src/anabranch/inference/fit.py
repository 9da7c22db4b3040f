"""Fits a hidden Markov model to labelled history: smoothed counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.errors import DataError
from anabranch.inference.gaussians import fit_gaussians
from anabranch.inference.hmm import Entries, Gaussians, Hmm, Sensing, make_hmm
from anabranch.inference.labels import Labelled, truth_indexes
from anabranch.inference.states import mean_quantities
from anabranch.inference.stays import fitted_stages


@dataclass(frozen=True, slots=True)
class Smoothing:
    """The pseudo-counts that are added to the counts.

    Attributes
    ----------
    alpha : float
        Added to the count of everything possible: each first location, each possible transition, and each reader at
        each location where it saw a key, once as seen and once as missed. If it is above 0, a reader that never missed
        a key does not get probability 1, so a first miss is possible.
    alpha_unseen : float
        Added for a reader at a location where it never saw a key, as seen (and 1 as missed: it probably never will).
        0, the default, keeps the table sparse. A reading that is not in the history is then impossible: inference
        treats its step as unobserved, and reports it. Above 0, every reading is possible at every location, and the
        table has readers times locations entries.
    reverse : bool
        Whether a transition is possible if its reverse was seen, as with doors that open both ways.
    """

    alpha: float = 0.5
    alpha_unseen: float = 0.0
    reverse: bool = True


def fit_hmm(
    truth: Labelled,
    readings: Labelled,
    locations: Sequence[str],
    readers: Sequence[str],
    sensing: Sensing = Sensing.DETECTION,
    smoothing: Smoothing | None = None,
    possible: tuple[I32, I32] | None = None,
    initial: str = "first",
    silence: bool = False,
    stages: int = 1,
    quantities: Sequence[str] = (),
) -> Hmm:
    """Fit a model to the true locations of keys and the readings of them.

    Parameters
    ----------
    truth : Labelled
        The location of a key at a step, one row per key and step.
    readings : Labelled
        The readers that saw a key at a step. Readings at steps without a known location are ignored, and duplicates
        count once.
    locations, readers : sequence of str
        Their names, by code.
    sensing : Sensing
        DETECTION: d(r, x) = (steps at x at which r saw the key + alpha) / (steps at x + 2 alpha), for r that saw any.
        EMISSION: e(x, r) = (readings r at x + alpha) / (all readings at x + alpha * readers seen there).
    smoothing : Smoothing, optional
    possible : pair of arrays, optional
        The possible transitions, as locations before and after. By default the observed ones, staying at a location,
        and the reverse of the observed ones. Observed transitions are always possible, and so is staying at a location
        without other transitions.
    initial : str
        `first`: count the first location of each key. `all`: count all locations, for keys that can appear anywhere.
    silence : bool
        EMISSION: whether a step without readings counts as one more kind of reading.
    stages : int
        The largest number of stages of a location; `fitted_stages` chooses the number of each.
    quantities : sequence of str
        The names of what the readings measure, `readings.quantities`; each gets a normal distribution.

    Returns
    -------
    Hmm
        Transitions are counted between consecutive steps of a key; a gap breaks the chain.

    Raises
    ------
    DataError
        If there are no locations, or a key has two locations at a step.

    Examples
    --------
    >>> key, step = np.zeros(4, np.int64), np.arange(4)
    >>> truth = Labelled(key, step, np.array([0, 0, 1, 0], np.int32))
    >>> seen = Labelled(key[:1], step[:1], np.array([0], np.int32))
    >>> hmm = fit_hmm(truth, seen, ["hall", "office"], ["antenna"], smoothing=Smoothing(alpha=0))
    >>> hmm.p.tolist(), hmm.reader_p.round(3).tolist()
    ([0.5, 0.5, 1.0], [0.333])
    """
    smoothing = smoothing or Smoothing()
    truth = _sorted(truth)
    if not len(truth.key):
        raise DataError("the truth has no locations; give at least one")
    seen = _distinct_readings(truth, readings)
    n = len(locations)
    if sensing is Sensing.DETECTION:
        sensors, quiet = _detection(truth, seen, len(readers), n, smoothing), None
    else:
        sensors, quiet = _emission(truth, seen, len(readers), n, smoothing, silence)
    hmm = make_hmm(
        locations,
        readers,
        _initial(truth, n, smoothing.alpha, initial),
        _transition(truth, n, smoothing, possible),
        sensing,
        sensors,
        quiet,
    )
    if stages > 1:
        hmm = replace(hmm, stages=fitted_stages(hmm, truth, stages))
    if quantities:
        hmm = replace(hmm, gaussians=_gaussians(hmm, truth, readings, quantities))
    return hmm


def _sorted(rows: Labelled) -> Labelled:
    """The rows sorted by key and step; a key must have one location at a step."""
    order = np.lexsort((rows.step, rows.key))
    result = Labelled(rows.key[order], rows.step[order], rows.code[order])
    duplicates = np.flatnonzero((np.diff(result.key) == 0) & (np.diff(result.step) == 0))
    if duplicates.size:
        key, step = result.key[duplicates[0]], result.step[duplicates[0]]
        raise DataError(f"key {key} has two locations at step {step}; keep one of them")
    return result


def _distinct_readings(truth: Labelled, readings: Labelled) -> tuple[I64, I32]:
    """The distinct readings at steps with a known location: the index of the step in `truth`, and the reader."""
    index = truth_indexes(truth, readings)
    pairs = np.unique(np.stack([index, readings.code], axis=1)[index >= 0], axis=0)
    return pairs[:, 0], pairs[:, 1].astype(np.int32)


def _gaussians(hmm: Hmm, truth: Labelled, readings: Labelled, quantities: Sequence[str]) -> Gaussians:
    """The distributions of what readings measure; the readings of one reader in a step count once, with their mean."""
    if readings.quantities is None or readings.quantities.shape[1] != len(quantities):
        raise ValueError("the readings have other quantities than the model")
    index = truth_indexes(truth, readings)
    known = readings.where(index >= 0)
    pairs, inverse = np.unique(np.stack([index[index >= 0], known.code]), axis=1, return_inverse=True)
    means = mean_quantities(readings.quantities[index >= 0], inverse.reshape(-1), pairs.shape[1])
    return fit_gaussians(hmm, quantities, pairs[1].astype(np.int32), truth.code[pairs[0]], means)


def _initial(truth: Labelled, n: int, alpha: float, which: str) -> F64:
    if which not in ("first", "all"):
        raise ValueError(f"initial is {which!r}; it must be 'first' or 'all'")
    first = np.concatenate([[True], np.diff(truth.key) != 0])
    counts = np.bincount(truth.code[first] if which == "first" else truth.code, minlength=n) + alpha
    return counts / counts.sum()


def _transition(truth: Labelled, n: int, smoothing: Smoothing, possible: tuple[I32, I32] | None) -> Entries:
    """The probabilities of the possible transitions, without zeros; a transition is coded as before * n + after."""
    consecutive = (np.diff(truth.key) == 0) & (np.diff(truth.step) == 1)
    before, after = truth.code[:-1][consecutive], truth.code[1:][consecutive]
    every = np.arange(n)
    observed = before.astype(np.int64) * n + after
    if possible is not None:
        also = np.asarray(possible[0], np.int64) * n + possible[1]
        # Staying at a location is possible if it has no other transition.
        also = np.concatenate([also, np.setdiff1d(every, np.concatenate([observed, also]) // n) * (n + 1)])
    else:
        also = every * (n + 1)
        if smoothing.reverse:
            also = np.concatenate([also, after.astype(np.int64) * n + before])
    moves, counts = _counted(observed, also, smoothing.alpha)
    # If all counts of a location are 0, its possible transitions are equally likely.
    counts[np.bincount(moves // n, weights=counts, minlength=n)[moves // n] == 0] = 1.0
    p = counts / np.bincount(moves // n, weights=counts, minlength=n)[moves // n]
    return _positive(moves // n, moves % n, p)


def _counted(observed: I64, also: I64, alpha: float) -> tuple[I64, F64]:
    """The distinct codes of both arrays, sorted, and for each its count in `observed` plus alpha."""
    distinct, index = np.unique(np.concatenate([observed, also]), return_inverse=True)
    counts = np.bincount(index.reshape(-1)[: len(observed)], minlength=len(distinct))
    return distinct, (counts + alpha).astype(np.float64)


def _detection(truth: Labelled, seen: tuple[I64, I32], n_readers: int, n: int, smoothing: Smoothing) -> Entries:
    """The probability of each reader and location that the reader sees a key there."""
    truth_index, reader = seen
    pairs, counts, alpha = _seen_pairs(reader.astype(np.int64) * n + truth.code[truth_index], n_readers * n, smoothing)
    steps = np.bincount(truth.code, minlength=n)[pairs % n]
    p = (counts + alpha) / (steps + alpha + np.where(counts > 0, alpha, 1.0))
    return _positive(pairs // n, pairs % n, p)


def _emission(
    truth: Labelled, seen: tuple[I64, I32], n_readers: int, n: int, smoothing: Smoothing, silence: bool
) -> tuple[Entries, F64 | None]:
    """The probability of each reading by location; silence, if it counts, has the code after the last reader's."""
    truth_index, reader = seen
    kinds = n_readers + silence
    if silence:
        silent = np.setdiff1d(np.arange(len(truth.key)), truth_index)
        truth_index = np.concatenate([truth_index, silent])
        reader = np.append(reader, np.full(len(silent), n_readers, np.int32))
    pairs, counts, alpha = _seen_pairs(reader.astype(np.int64) * n + truth.code[truth_index], kinds * n, smoothing)
    p = counts + alpha
    # At a location without readings, all readings are equally likely.
    unknown = np.setdiff1d(np.arange(n), pairs[p > 0] % n)
    pairs = np.concatenate([pairs, (np.arange(kinds)[:, np.newaxis] * n + unknown).reshape(-1)])
    p = np.concatenate([p, np.ones(len(pairs) - len(p))])
    p /= np.bincount(pairs % n, weights=p, minlength=n)[pairs % n]
    entries = _positive(pairs // n, pairs % n, p)
    if not silence:
        return entries, None
    quiet = np.zeros(n)
    is_quiet = entries.rows == n_readers
    quiet[entries.columns[is_quiet]] = entries.p[is_quiet]
    return Entries(entries.rows[~is_quiet], entries.columns[~is_quiet], entries.p[~is_quiet]), quiet


def _seen_pairs(seen: I64, n_pairs: int, smoothing: Smoothing) -> tuple[I64, F64, F64]:
    """The possible pairs of reader and location, the count of each, and the pseudo-count that is added to it."""
    also = np.arange(n_pairs) if smoothing.alpha_unseen > 0 else np.zeros(0, np.int64)
    pairs, counts = _counted(seen, also, 0.0)
    return pairs, counts, np.where(counts > 0, smoothing.alpha, smoothing.alpha_unseen)


def _positive(rows: I64, columns: I64, p: F64) -> Entries:
    """The entries above 0."""
    positive = p > 0
    return Entries(rows[positive].astype(np.int32), columns[positive].astype(np.int32), p[positive])
