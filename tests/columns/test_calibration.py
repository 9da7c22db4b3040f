"""Calibration maps: their values, and their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import calibration as oracle

from anabranch.columns.calibration import CalibrationMap, read_map, write_map
from anabranch.errors import DataError

PROBABILITIES = st.floats(0, 1)


@st.composite
def maps(draw: st.DrawFn) -> CalibrationMap:
    xs = draw(st.lists(PROBABILITIES, min_size=1, max_size=9, unique=True))
    ys = draw(st.lists(PROBABILITIES, min_size=len(xs), max_size=len(xs)))
    return CalibrationMap(tuple(zip(sorted(xs), sorted(ys), strict=True)))


@given(maps(), st.lists(PROBABILITIES, min_size=1))
def test_maps_are_linear_between_knots_monotone_and_probabilities(chosen: CalibrationMap, p: list[float]) -> None:
    ascending = np.sort(np.array([*p, *(x for x, _ in chosen.knots)]))
    values = chosen.apply(ascending)
    assert values == pytest.approx([oracle.mapped(chosen.knots, x) for x in ascending], abs=1e-9)
    assert (np.diff(values) >= 0).all(), "monotone to the last bit"
    assert values.min() >= 0
    assert values.max() <= 1


@given(maps())
def test_a_file_has_the_map_to_the_last_bit(tmp_path_factory: pytest.TempPathFactory, chosen: CalibrationMap) -> None:
    path = tmp_path_factory.mktemp("maps") / "map.csv"
    write_map(chosen, path)
    assert read_map(path) == chosen


def test_null_stays_null() -> None:
    column = pa.chunked_array([pa.array([0.5, None]), pa.array([1.0])])
    assert CalibrationMap(((0.0, 0.0), (1.0, 0.5))).apply_to_column(column).to_pylist() == [0.25, None, 0.5]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0.5,0.5", "0.4,0.6"], ":3: probability 0.4 is not above that of the line before; sort them"),
        (["0.5,0.5", "0.6,0.4"], ":3: calibrated 0.4 is below that of the line before; it cannot fall"),
        (["0.5,1.5"], ":2: calibrated is 1.5, but a probability is between 0 and 1"),
        (["nan,0.5"], ":2: probability is nan, but a probability is between 0 and 1"),
        (["0.5,high"], ":2: calibrated is 'high', not a number"),
        ([], ": there are no rows"),
    ],
)
def test_an_invalid_file_is_one_line(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "map.csv"
    path.write_text("\n".join(["probability,calibrated", *lines]) + "\n")
    with pytest.raises(DataError) as error:
        read_map(path)
    assert str(error.value) == f"{path}{message}"
