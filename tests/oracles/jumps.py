"""Which rows of a micro-batch are too far ahead (MAX AHEAD of numeric times), row by row from the definition."""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[int, int]
"""The stream and the time of a row."""


def accepted(
    rows: Sequence[Row], newest: int | None, counts: list[int], ahead: Sequence[int | None], patience: int
) -> list[Row]:
    """The rows that are accepted; updates the count of each stream. `newest` is the newest row accepted before."""
    kept = _followers(rows, newest, ahead)
    if not kept and newest is None:
        kept = _followers(rows, _most(rows, ahead), ahead)
    for stream in range(len(counts)):
        own = [row for row in rows if row[0] == stream]
        n_kept = sum(row in kept for row in own)
        counts[stream] = max(0, counts[stream] + len(own) - 2 * n_kept)
    impatient = [row for row in rows if row not in kept and counts[row[0]] >= patience]
    if impatient:
        kept = _followers(rows, _most(impatient, ahead), ahead)
        counts[:] = [0] * len(counts)
    return kept


def _followers(rows: Sequence[Row], newest: int | None, ahead: Sequence[int | None]) -> list[Row]:
    """The rows that are not ahead of the newest one, where each of them may be the newest for the others."""
    kept: list[Row] = []
    while True:
        limits = [None if most is None or newest is None else newest + most for most in ahead]
        more = [
            (stream, t)
            for stream, t in rows
            if ahead[stream] is None or (limits[stream] is not None and t <= limits[stream])
        ]
        if len(more) == len(kept):
            return kept
        kept = more
        newest = max(t for _, t in kept) if newest is None else max(newest, *(t for _, t in kept))


def _most(rows: Sequence[Row], ahead: Sequence[int | None]) -> int | None:
    """The newest of the most rows without a jump; of the oldest such rows."""
    runs: list[list[Row]] = []
    for stream in range(len(ahead)):
        own = sorted(row for row in rows if row[0] == stream)
        for number, row in enumerate(own):
            if number == 0 or row[1] - own[number - 1][1] > (ahead[stream] or 0):
                runs.append([])
            runs[-1].append(row)
    chains: list[list[Row]] = []
    for run in sorted(runs, key=lambda run: (run[0][1], run[-1][1], len(run), run[0][0])):
        if not chains or run[0][1] > max(t for _, t in chains[-1]) + (ahead[run[0][0]] or 0):
            chains.append([])
        chains[-1] += run
    return max(t for _, t in max(chains, key=len)) if chains else None
