"""Classes of keys: a folder with one model for each value of a column, and the class of each key (BY).

The folder has a folder per class, named as partitions are: `kind=staff/`. A key has one class, that of its first
reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I32, I64
from anabranch.errors import DataError
from anabranch.inference.hmm import Hmm
from anabranch.inference.model import read_hmm


@dataclass(frozen=True, slots=True)
class KeyClasses:
    """The classes that have a model, and the column that has the class of a reading.

    Attributes
    ----------
    column : its name
    names : the classes, in the order of their models
    position : of the column, among the KEY columns or the VALUE columns of the readings
    in_key : whether it is a KEY column
    """

    column: str
    names: tuple[str, ...]
    position: int
    in_key: bool

    def numbers(self, column: pa.Array) -> I64:
        """The number of each class; -1 for NULL, and for classes without a model."""
        index = pc.index_in(pc.cast(column, pa.string()), value_set=pa.array(self.names, pa.string()))
        return pc.fill_null(index, -1).to_numpy().astype(np.int64)


def assign_classes(of_key: I64, key: I32 | I64, t: I64, of_reading: I64) -> None:
    """Give each key without a class (-1) that of its first reading with one, in place.

    Of several readings at the same time, the first class counts, so the order of the rows does not matter.
    """
    chosen = np.flatnonzero((of_reading >= 0) & (of_key[key] < 0))
    order = chosen[np.lexsort((of_reading[chosen], t[chosen], key[chosen]))]
    keys, first = np.unique(key[order], return_index=True)
    of_key[keys] = of_reading[order[first]]


def class_folder(folder: Path, column: str, name: str) -> Path:
    """The folder of the model of a class; characters that paths do not allow are escaped."""
    return folder / f"{column}={quote(name, safe=' ')}"


def read_classes(folder: Path, column: str, value: str, reader: str) -> Mapping[str, Hmm]:
    """The models of all classes of a column, by class; `value` and `reader` are those of `read_hmm`.

    Raises
    ------
    DataError
        If there are none, or a model is wrong; the message is one line.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder")
    paths = sorted(path for path in folder.iterdir() if path.name.lower().startswith(f"{column.lower()}="))
    if not paths:
        raise DataError(
            f"{folder}: there is no folder {column}=..., with the model of a class; fit it with --by {column}"
        )
    return {unquote(path.name.partition("=")[2]): read_hmm(path, value, reader) for path in paths}
