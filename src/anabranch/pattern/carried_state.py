"""The state of carried chains (`chain.py`) and of the spans of their groups (`tally.py`) as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import U64
from anabranch.pattern.chain import Carrying, Chain
from anabranch.pattern.joint import JointState
from anabranch.pattern.machine import Partial
from anabranch.pattern.partial_sets import PartialSets
from anabranch.pattern.sampling import Worlds
from anabranch.pattern.spec import GroupSpec
from anabranch.pattern.tally import Episodes, Tally, Windows

#: The columns of an open span.
_SPAN = ("t_from", "t_to", "expected", "count")


class CarriedState:
    """Writes and reads the state."""

    def __init__(self, spec: GroupSpec) -> None:
        self._counting = bool(spec.times)
        self._partial_sets = PartialSets(spec)
        self._numbers: dict[frozenset[Partial], int] = {}

    def tables(self, chains: Sequence[Chain], tallies: Mapping[int, Tally]) -> dict[str, pa.Table]:
        """The state as tables; chains have their index, and groups their first chain."""
        tables = {
            "carried": self._chain_table(chains),
            "joint states": self._joint_table(chains),
            "world values": self._value_table(chains),
            "world results": self._result_table(chains),
            "spans": _span_table(tallies),
        }
        return tables | {"partial sets": self._partial_sets.table(list(self._numbers))}

    def _set(self, partials: frozenset[Partial]) -> int:
        return self._numbers.setdefault(partials, len(self._numbers))

    @staticmethod
    def _chain_table(chains: Sequence[Chain]) -> pa.Table:
        states = [chain.state for chain in chains]
        exact = [state if isinstance(state, JointState) else None for state in states]
        return pa.table(
            {
                "hashed": pa.array([chain.hashed for chain in chains], pa.uint64()),
                "keys": pa.array(
                    [None if state is None else list(state.axes) for state in exact], pa.list_(pa.int32())
                ),
                "work": pa.array([state and state.work for state in exact], pa.int64()),
                "instants": pa.array([state and state.instants for state in exact], pa.int64()),
            }
        )

    def _joint_table(self, chains: Sequence[Chain]) -> pa.Table:
        rows = [
            (number, values, self._set(partials), np.atleast_1d(weight))
            for number, chain in enumerate(chains)
            if isinstance(chain.state, JointState)
            for (values, partials), weight in chain.state.states.items()
        ]
        kinds = {
            "chain": pa.int64(),
            "values": pa.list_(pa.int32()),
            "set": pa.int64(),
            "weights": pa.list_(pa.float64()),
        }
        return _table(kinds, rows)

    @staticmethod
    def _value_table(chains: Sequence[Chain]) -> pa.Table:
        rows = [
            (number, key, code, mask.tobytes())
            for number, chain in enumerate(chains)
            if isinstance(chain.state, Worlds)
            for key, (codes, masks) in chain.state.values.items()
            for code, mask in zip(codes.tolist(), masks, strict=True)
        ]
        return _table({"chain": pa.int64(), "key": pa.int32(), "code": pa.int32(), "worlds": pa.binary()}, rows)

    def _result_table(self, chains: Sequence[Chain]) -> pa.Table:
        rows = [
            (number, self._set(frozenset([partial])), mask.tobytes())
            for number, chain in enumerate(chains)
            if isinstance(chain.state, Worlds)
            for partial, mask in chain.state.results.items()
        ]
        return _table({"chain": pa.int64(), "set": pa.int64(), "worlds": pa.binary()}, rows)

    def chains(self, tables: Mapping[str, pa.Table], carrying: Carrying) -> list[Chain]:
        """The chains of `tables`."""
        sets = self._partial_sets.read(tables["partial sets"])
        rows = tables["carried"].to_pylist()
        exact = {number: _joint_state(row) for number, row in enumerate(rows) if row["keys"] is not None}
        worlds = {number: Worlds(carrying.n_words) for number in range(len(rows)) if number not in exact}
        for row in tables["joint states"].to_pylist():
            weight = np.array(row["weights"]) if self._counting else row["weights"][0]
            exact[row["chain"]].states[tuple(row["values"]), sets[row["set"]]] = weight
        values = tables["world values"].to_pylist()
        for (number, key), of_key in groupby(values, key=itemgetter("chain", "key")):
            codes, masks = zip(*((row["code"], _mask(row)) for row in of_key), strict=True)
            worlds[number].values[key] = np.array(codes, np.int32), np.stack(masks)
        for row in tables["world results"].to_pylist():
            (partial,) = sets[row["set"]]
            worlds[row["chain"]].results[partial] = _mask(row)
        return [
            Chain(carrying, row["hashed"], exact[number] if number in exact else worlds[number])
            for number, row in enumerate(rows)
        ]

    @staticmethod
    def restore(tables: Mapping[str, pa.Table], tallies: Mapping[int, Tally]) -> None:
        """Restore the open spans of groups."""
        for row in tables["spans"].to_pylist():
            tally = tallies[row["chain"]]
            if isinstance(tally, Windows | Episodes):
                tally.t_from, tally.t_to, tally.expected, tally.count = (row[name] for name in _SPAN)
                tally.counts = None if row["counts"] is None else np.array(row["counts"], np.int64)
            if isinstance(tally, Episodes):
                tally.reached = row["log_none"], row["hits"]


def _span_table(tallies: Mapping[int, Tally]) -> pa.Table:
    rows = [
        (first, *(getattr(tally, name) for name in _SPAN), tally.counts, *_reached(tally))
        for first, tally in tallies.items()
        if isinstance(tally, Windows | Episodes)
    ]
    kinds = {"chain": pa.int64(), "t_from": pa.int64(), "t_to": pa.int64(), "expected": pa.float64()}
    kinds |= {"count": pa.int64(), "counts": pa.list_(pa.int32()), "log_none": pa.float64(), "hits": pa.int64()}
    return _table(kinds, rows)


def _reached(tally: Windows | Episodes) -> tuple[float | None, int | None]:
    return tally.reached if isinstance(tally, Episodes) else (None, None)


def _table(kinds: Mapping[str, pa.DataType], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    arrays = {name: pa.array(list(column), kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)}
    return pa.table(arrays)


def _joint_state(row: Mapping[str, Any]) -> JointState:
    return JointState(
        {}, {key: axis for axis, key in enumerate(row["keys"])}, work=row["work"], instants=row["instants"]
    )


def _mask(row: Mapping[str, bytes]) -> U64:
    return np.frombuffer(row["worlds"], np.uint64).copy()
