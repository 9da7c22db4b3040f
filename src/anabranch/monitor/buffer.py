"""BUFFER: predictions go through a buffer of fixed size, one by one, in the order of their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.columns.times import BEGINNING
from anabranch.monitor.kernel import buffer as kernel
from anabranch.monitor.predictions import Predictions, clock_of, periods_of, unit_of
from anabranch.monitor.query import BoundMonitor
from anabranch.transport.layout import Layout

_POLICIES = {
    "LEAST CONTRIBUTION": kernel.LEAST_CONTRIBUTION,
    "OLDEST": kernel.OLDEST,
    "RANDOM": kernel.RANDOM,
    "NEWEST": kernel.NEWEST,
}


class Buffer:
    """The buffers of all streams of a query, each of the same size.

    Besides the predictions themselves, it remembers the newest time of each stream.
    """

    def __init__(self, query: BoundMonitor, layouts: Sequence[Layout]) -> None:
        self._kind = layouts[0].time_kind
        self._newest = np.full(len(layouts), BEGINNING, np.int64)
        lateness = max(layout.lateness for layout in layouts)
        self._rules = kernel.Rules(
            query.buffer or 0,
            _POLICIES[query.discard or "LEAST CONTRIBUTION"],
            periods_of(layouts),
            float(query.within),
            query.within + lateness,
        )

    def take(self, given: Predictions, known: int) -> tuple[Predictions, I64]:
        """Let the predictions from `known` on arrive.

        Returns
        -------
        All versions, those that were given first; and pairs of one that arrived and one that it is to be compared with
        """
        if len(given) == known:
            return given, np.zeros((0, 2), np.int64)
        order = np.concatenate([np.arange(known), known + np.argsort(given.code[known:], kind="stable")])
        place = np.argsort(order)
        base = int(given.code.min())
        versions = self._versions(given.take(order), known, base)
        newest = np.full(len(self._newest), -np.inf)
        began = self._newest > BEGINNING
        newest[began] = self._since(self._newest[began], base)
        pairs, n = kernel.arrive(versions, known, len(given), self._rules, newest)
        np.maximum.at(self._newest, given.stream[known:], given.code[known:])
        source = order[versions.source[:n]]
        # Those given keep their numbers; the others, that took over from a neighbour, come after them.
        where = np.concatenate([place, np.arange(len(given), n)])
        found = replace(
            given.take(source[where]),
            begin=versions.begin[where],
            end=versions.end[where],
            buffered=versions.held[where],
        )
        number = np.argsort(where)
        return found, number[pairs]

    def _since(self, code: I64, base: int) -> np.ndarray:
        clock = clock_of(np.concatenate([[base], code]), self._kind)
        return (clock[1:] - clock[0]) * unit_of(self._kind)

    def _versions(self, given: Predictions, known: int, base: int) -> kernel.Versions:
        """The predictions for the kernel, with room for as many more as arrive."""
        n, more = len(given), len(given) - known
        held = given.buffered.copy()
        held[known:] = False

        def roomy(array: np.ndarray) -> np.ndarray:
            return np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)])

        return kernel.Versions(
            roomy(given.stream.astype(np.int64)), roomy(given.stream.astype(np.int64) << 32 | given.key),
            roomy(given.code), roomy(self._since(given.code, base)), roomy(given.begin), roomy(given.end),
            roomy(given.values), roomy(given.rates), roomy(np.where(given.errors > 0, given.errors, 1.0)), roomy(held),
            roomy(np.zeros(n)), roomy(np.arange(n)),
        )  # fmt: skip

    def save(self) -> pa.Table:
        """What is remembered."""
        return pa.table({"newest": self._newest})

    def load(self, saved: pa.Table) -> None:
        """Take over what `save` gave."""
        self._newest = saved["newest"].to_numpy().copy()
