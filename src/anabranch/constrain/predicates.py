"""Which variables each row can be: what many questions ask of single rows, each different demand worked out once.

A demand on one column of text is asked of the column's distinct values, one by one, not of its rows; so the demands of
all questions on one property cost little more than those of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from anabranch.catalog import Stream
from anabranch.constrain.functions import holds_of_events
from anabranch.language.typed import Typed, conjuncts, references
from anabranch.rows.conditions import Relations

Bools = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]


def roles_of(
    columns: Mapping[str, pa.Array], stream: Stream, demands: Sequence[tuple[int, Typed | None]], relations: Relations
) -> tuple[I64, I64]:
    """Where the roles of each row begin, and the variable of each role; the variables of one row rise.

    Parameters
    ----------
    columns : of the rows, by lower-case name
    demands : (variable, what is asked of it alone), in rising order
    """
    n = len(next(iter(columns.values())))
    asked: dict[Typed, Bools] = {}
    rows = []
    for _, demand in demands:
        chosen = np.ones(n, np.bool_)
        for part in conjuncts(demand):
            if part not in asked:
                asked[part] = _holds(part, columns, stream, relations, n)
            chosen = chosen & asked[part]
        rows.append(np.flatnonzero(chosen))
    sizes = np.array([len(own) for own in rows])
    variables = np.repeat([variable for variable, _ in demands], sizes)
    return _by_row(np.concatenate(rows).astype(np.int64), variables.astype(np.int64), n)


def _holds(part: Typed, columns: Mapping[str, pa.Array], stream: Stream, relations: Relations, n: int) -> Bools:
    names = {name for _, name in references(part)}
    name = next(iter(names), "*")
    if len(names) != 1 or name == "*" or not pa.types.is_string(columns[name].type):
        return holds_of_events(part, columns, {"": stream}, relations, n)
    coded = columns[name].dictionary_encode()
    # NULL is a value of its own: a condition may ask for it.
    values = pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
    good = holds_of_events(part, {name: values}, {"": stream}, relations, len(values))
    return good[coded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)]


@njit(cache=True)
def _by_row(rows: I64, variables: I64, n: int) -> tuple[I64, I64]:
    """Roles sorted by row; those of one row keep their order."""
    first = np.zeros(n + 1, np.int64)
    for row in rows:
        first[row + 1] += 1
    for row in range(n):
        first[row + 1] += first[row]
    fill = first[:-1].copy()
    sorted_variables = np.empty(len(rows), np.int64)
    for place in range(len(rows)):
        sorted_variables[fill[rows[place]]] = variables[place]
        fill[rows[place]] += 1
    return first, sorted_variables
