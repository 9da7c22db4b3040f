"""The groups of chains: the bindings of the GROUP BY variables, numbered in the order of their first chains."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32, I64
from anabranch.columns.dictionary import encode_tuples
from anabranch.pattern.intake import Intake
from anabranch.pattern.spec import PatternSpec


class Groups:
    """Which group each chain of a bucket belongs to."""

    def __init__(self, spec: PatternSpec, intake: Intake) -> None:
        self._spec = spec
        self._intake = intake

    def of_chains(self) -> I64:
        """The group of each chain. A chain that is added later does not change the groups of the others."""
        n_chains = self._intake.n_chains
        if self._spec.direct:
            return np.arange(n_chains)
        columns = self.columns_of(np.arange(n_chains))
        codes, _ = encode_tuples([pa.chunked_array([column]) for column in columns], n_chains)
        return codes.astype(np.int64)

    def first_chains(self) -> I64:
        """The first chain of each group."""
        return np.unique(self.of_chains(), return_index=True)[1]

    def columns_of(self, chains: I32 | I64) -> list[pa.Array]:
        """The grouping columns of some chains."""
        group_by = self._spec.analysis.group_by
        columns = self._intake.chains.take(chains.astype(np.int32)) if group_by else []
        return [columns[index] for _, index in group_by]
