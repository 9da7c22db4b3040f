"""From labelled history to a model: counts, with something added for what happened not to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.errors import DataError
from anabranch.inference.model import Entries, Hmm, Sensing, make_hmm


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows that say something of a key at a step, in any order: `code` is a location, or a reader."""

    key: I64
    step: I64
    code: I32


@dataclass(frozen=True, slots=True)
class Smoothing:
    """What is added to the counts.

    Attributes
    ----------
    alpha : float
        Added to everything that is possible: each first location, each transition listed, and each reader at each
        location where it saw a key, once as seen and once as missed. Above 0 no chance is 1 that was merely never
        missed, so that a first miss is possible.
    alpha_unseen : float
        Added for a reader at a location where it never saw a key, as seen (and 1 as missed: it probably never will).
        0, the default, keeps the table as sparse as the sensors are; a reading that history never had is then
        impossible, and inference takes its step as if nothing were known of it and reports it. Above 0 every reading is
        possible everywhere, in a table of readers times locations.
    reverse : bool
        Whether a transition is possible because its reverse was seen, as it is where doors open both ways.
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
) -> Hmm:
    """Learn a model from where keys were and what was read of them.

    Parameters
    ----------
    truth : Labelled
        The location of a key at a step, once for each.
    readings : Labelled
        The readers that saw a key at a step; those of steps without a known location are passed over, and a reader
        given twice counts once.
    locations, readers : sequence of str
        Their names, by code.
    sensing : Sensing
        DETECTION: d(r, x) = (steps at x at which r saw the key + alpha) / (steps at x + 2 alpha), for r that saw any.
        EMISSION: e(x, r) = (readings r at x + alpha) / (all readings at x + alpha * readers seen there).
    smoothing : Smoothing, optional
    possible : pair of arrays, optional
        The transitions that are possible, as locations before and after. By default those seen, staying, and the
        reverse of those seen. What was seen is possible in any case, and so is staying where nothing else is.
    initial : str
        `first`: where keys were at their first step. `all`: where they were at any step, for keys that appear anywhere.
    silence : bool
        EMISSION: whether a step without readings counts as one more kind of reading.

    Returns
    -------
    Hmm
        Transitions are counted between steps of a key that follow each other directly; a gap breaks the chain.

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
        raise DataError("there is no location to learn from")
    heard = _where_heard(truth, readings)
    n = len(locations)
    if sensing is Sensing.DETECTION:
        sensors, quiet = _detection(truth, heard, len(readers), n, smoothing), None
    else:
        sensors, quiet = _emission(truth, heard, len(readers), n, smoothing, silence)
    return make_hmm(
        locations,
        readers,
        _initial(truth, n, smoothing.alpha, initial),
        _transition(truth, n, smoothing, possible),
        sensing,
        sensors,
        quiet,
    )


def _sorted(rows: Labelled) -> Labelled:
    """By key and step; a key has one location at a step."""
    order = np.lexsort((rows.step, rows.key))
    found = Labelled(rows.key[order], rows.step[order], rows.code[order])
    twice = np.flatnonzero((np.diff(found.key) == 0) & (np.diff(found.step) == 0))
    if twice.size:
        raise DataError(f"key {found.key[twice[0]]} has two locations at step {found.step[twice[0]]}")
    return found


def _where_heard(truth: Labelled, readings: Labelled) -> tuple[I64, I32]:
    """The readings at steps of which the location is known: the place of the step in `truth`, and the reader."""
    steps = np.concatenate([np.stack([truth.key, truth.step], axis=1), np.stack([readings.key, readings.step], axis=1)])
    _, number = np.unique(steps, axis=0, return_inverse=True)
    number = number.reshape(-1)
    place = np.full(number.max() + 1, -1)
    place[number[: len(truth.key)]] = np.arange(len(truth.key))
    at = place[number[len(truth.key) :]]
    pairs = np.unique(np.stack([at, readings.code], axis=1)[at >= 0], axis=0)
    return pairs[:, 0], pairs[:, 1].astype(np.int32)


def _initial(truth: Labelled, n: int, alpha: float, which: str) -> F64:
    if which not in ("first", "all"):
        raise ValueError(f"initial is {which!r}, it can be 'first' or 'all'")
    first = np.concatenate([[True], np.diff(truth.key) != 0])
    counts = np.bincount(truth.code[first] if which == "first" else truth.code, minlength=n) + alpha
    return counts / counts.sum()


def _transition(truth: Labelled, n: int, smoothing: Smoothing, possible: tuple[I32, I32] | None) -> Entries:
    """The chances of the transitions that are possible, as far as they are above 0."""
    follows = (np.diff(truth.key) == 0) & (np.diff(truth.step) == 1)
    before, after = truth.code[:-1][follows], truth.code[1:][follows]
    every = np.arange(n)
    listed = [before.astype(np.int64) * n + after]
    if possible is not None:
        listed.append(np.asarray(possible[0], np.int64) * n + possible[1])
        listed.append(np.setdiff1d(every, np.concatenate(listed) // n) * (n + 1))
    else:
        listed.append(every * (n + 1))
        if smoothing.reverse:
            listed.append(after.astype(np.int64) * n + before)
    moves, counts = _counted(listed, smoothing.alpha)
    # A location of which nothing is known: every move that is listed is as likely.
    counts[np.bincount(moves // n, weights=counts, minlength=n)[moves // n] == 0] = 1.0
    p = counts / np.bincount(moves // n, weights=counts, minlength=n)[moves // n]
    return _positive(moves // n, moves % n, p)


def _counted(listed: list[I64], alpha: float) -> tuple[I64, F64]:
    """All that is in the lists, each once, with how often it is in the first, plus alpha."""
    distinct, number = np.unique(np.concatenate(listed), return_inverse=True)
    seen = np.bincount(number.reshape(-1)[: len(listed[0])], minlength=len(distinct))
    return distinct, (seen + alpha).astype(np.float64)


def _detection(truth: Labelled, heard: tuple[I64, I32], n_readers: int, n: int, smoothing: Smoothing) -> Entries:
    place, reader = heard
    pairs, counts, alpha = _seen_pairs(reader.astype(np.int64) * n + truth.code[place], n_readers * n, smoothing)
    steps = np.bincount(truth.code, minlength=n)[pairs % n]
    p = (counts + alpha) / (steps + alpha + np.where(counts > 0, alpha, 1.0))
    return _positive(pairs // n, pairs % n, p)


def _emission(
    truth: Labelled, heard: tuple[I64, I32], n_readers: int, n: int, smoothing: Smoothing, silence: bool
) -> tuple[Entries, F64 | None]:
    """The chances of each reading by location; silence, where it counts, is the reading after the last reader's."""
    place, reader = heard
    kinds = n_readers + silence
    if silence:
        silent = np.setdiff1d(np.arange(len(truth.key)), place)
        place, reader = np.concatenate([place, silent]), np.append(reader, np.full(len(silent), n_readers, np.int32))
    pairs, counts, alpha = _seen_pairs(reader.astype(np.int64) * n + truth.code[place], kinds * n, smoothing)
    p = counts + alpha
    # Where nothing was ever read, anything may be.
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
    """The pairs of reader and location that get a chance, how often they were seen, and what is added to each."""
    listed = [seen, np.arange(n_pairs)] if smoothing.alpha_unseen > 0 else [seen]
    pairs, counts = _counted(listed, 0.0)
    return pairs, counts, np.where(counts > 0, smoothing.alpha, smoothing.alpha_unseen)


def _positive(rows: I64, columns: I64, p: F64) -> Entries:
    held = p > 0
    return Entries(rows[held].astype(np.int32), columns[held].astype(np.int32), p[held])
