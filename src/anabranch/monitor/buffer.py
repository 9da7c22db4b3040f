"""BUFFER: a buffer of fixed size limits which predictions are compared. Predictions enter it in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, I64
from anabranch.monitor.analysis import MonitorAnalysis
from anabranch.monitor.kernel import buffer as kernel
from anabranch.monitor.predictions import Predictions, elapsed, periods_of
from anabranch.transport.layout import Layout

_POLICIES = {
    "LEAST CONTRIBUTION": kernel.LEAST_CONTRIBUTION,
    "OLDEST": kernel.OLDEST,
    "RANDOM": kernel.RANDOM,
    "NEWEST": kernel.NEWEST,
}


class Buffer:
    """The buffers of all streams of a query, each of the same size.

    The operator keeps the predictions; this class keeps the newest time of each stream.
    """

    def __init__(self, analysis: MonitorAnalysis, layouts: Sequence[Layout]) -> None:
        query = analysis.query
        self._kind = layouts[0].time_kind
        self._newest = np.full(len(layouts), BEGINNING, np.int64)
        lateness = max(layout.lateness for layout in layouts)
        self._rules = kernel.Rules(
            query.buffer or 0,
            _POLICIES[query.discard or "LEAST CONTRIBUTION"],
            periods_of(layouts),
            float(analysis.window),
            analysis.window + lateness,
        )

    def arrive(self, predictions: Predictions, known: int) -> tuple[Predictions, I64]:
        """Add the predictions from index `known` on to the buffers, in the order of their times.

        Returns
        -------
        versions : the predictions, in their order, then the new versions of predictions that replace discarded ones
        pairs : (n, 2) indexes of an added prediction and of a version that it must be compared with
        """
        if len(predictions) == known:
            return predictions, np.zeros((0, 2), np.int64)
        order = np.concatenate([np.arange(known), known + np.argsort(predictions.code[known:], kind="stable")])
        base = predictions.code.min(keepdims=True)
        versions = self._versions(predictions.take(order), known, base)
        newest = np.full(len(self._newest), -np.inf)
        has_rows = self._newest > BEGINNING
        newest[has_rows] = elapsed(base, self._newest[has_rows], self._kind)
        pairs, n = kernel.arrive(versions, known, len(predictions), self._rules, newest)
        np.maximum.at(self._newest, predictions.stream[known:], predictions.code[known:])
        source = order[versions.source[:n]]
        # The predictions return to their own order; new versions stay after them.
        rows = np.concatenate([np.argsort(order), np.arange(len(predictions), n)])
        all_versions = replace(
            predictions.take(source[rows]),
            begin=versions.begin[rows],
            end=versions.end[rows],
            buffered=versions.held[rows],
        )
        return all_versions, np.argsort(rows)[pairs]

    def _versions(self, predictions: Predictions, known: int, base: I64) -> kernel.Versions:
        """The predictions as input of the kernel, with room for a new version per added prediction."""
        n, n_added = len(predictions), len(predictions) - known
        held = predictions.buffered.copy()
        held[known:] = False
        stream = predictions.stream.astype(np.int64)

        def with_room(array: np.ndarray) -> np.ndarray:
            return np.concatenate([array, np.zeros((n_added, *array.shape[1:]), array.dtype)])

        arrays = (
            stream, stream << 32 | predictions.key, predictions.code, elapsed(base, predictions.code, self._kind),
            predictions.begin, predictions.end, predictions.values, predictions.rates,
            np.where(predictions.errors > 0, predictions.errors, 1.0), held, np.zeros(n), np.arange(n),
        )  # fmt: skip
        return kernel.Versions(*map(with_room, arrays))

    def save(self) -> pa.Table:
        """The state as a table; the predictions are saved by the operator."""
        return pa.table({"newest": self._newest})

    def load(self, saved: pa.Table) -> None:
        """Restore what `save` returned."""
        self._newest = saved["newest"].to_numpy().copy()
