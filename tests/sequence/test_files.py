"""Files of delays and distributions: they can be read back, and an error is one line with file and line number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.errors import DataError
from anabranch.language.parser import parse
from anabranch.sequence.files import read_delay, with_files, write_fits
from anabranch.sequence.fit import ComponentFit, FittedDistribution
from anabranch.sequence.query import BoundDelay, BoundSequence

FITS = [
    ComponentFit("x", np.array([3.0, 1.5, 1.5]), 9.0, 1 / 3, (FittedDistribution("GAMMA", (2.1, 3.25), -7.0),)),
    ComponentFit("Y", np.array([4.0]), 7.0, 0.0, (FittedDistribution("EXPONENTIAL", (1 / 3,), -2.0),)),
    ComponentFit("z", np.empty(0), 0.0, None, ()),
]
EMPIRICAL, FITTED = BoundDelay("EMPIRICAL", path="learned/delays.csv"), BoundDelay("FITTED", path="learned/laws.csv")


def test_written_fits_can_be_read(tmp_path: Path) -> None:
    write_fits(FITS, tmp_path / "learned")
    assert read_delay(FITTED, "x", str(tmp_path)) == BoundDelay("GAMMA", (2.1, 3.25))
    assert read_delay(FITTED, "y", str(tmp_path)) == BoundDelay("EXPONENTIAL", (1 / 3,))
    assert read_delay(EMPIRICAL, "X", str(tmp_path)).atoms == (1.5, 1.5, 3.0)
    assert (tmp_path / "learned" / "misses.csv").read_text().split() == [
        "component,p",
        "x,0.3333333333333333",
        "Y,0.0",
    ]


def test_a_delay_without_a_file_is_unchanged(tmp_path: Path) -> None:
    delay = BoundDelay("UNIFORM", (0.0, 2.0))
    assert read_delay(delay, "x", str(tmp_path)) is delay


def test_all_delays_of_a_query_are_read(tmp_path: Path) -> None:
    write_fits(FITS, tmp_path / "learned")
    catalog = Catalog()
    text = """
      CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME t DOUBLE;
      CREATE QUERY q AS SEQUENCE (x, !y, z) FROM reads
        WHERE x.reader = 'a' AND y.reader = 'b' AND z.reader = 'c' AND x.tag = y.tag AND y.tag = z.tag
        DELAY x EMPIRICAL 'learned/delays.csv', y FITTED 'learned/laws.csv' WITHIN 9;
    """
    assert not declare(parse(text), catalog)
    bound = bind(catalog.queries()[0], catalog)
    assert isinstance(bound, BoundSequence)
    x, y, z = with_files(bound, str(tmp_path)).components
    assert x.delay is not None
    assert x.delay.atoms == (1.5, 1.5, 3.0)
    assert y.delay == BoundDelay("EXPONENTIAL", (1 / 3,))
    assert z.delay is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "delays.csv: there is no such file"),
        ("component,delay\n", "delays.csv: there are no rows"),
        ("component,delay\ny,1\n", "delays.csv: there is no row of component 'x'; the components are: y"),
        ("component,delay\nx,1\nx,-2\n", "delays.csv:3: delay is -2; a delay is a number, 0 or more"),
        ("component,delay\nx,nan\n", "delays.csv:2: delay is nan; a delay is a number, 0 or more"),
        ("component,delay\nx,soon\n", "delays.csv:2: delay is 'soon', not a number"),
        ("component,delay\nx\n", "delays.csv:2: the row has 1 columns, fewer than the header"),
        ("component,wait\nx,1\n", "one column delay is needed; the columns are: component, wait"),
    ],
)
def test_wrong_delays_are_reported_in_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    (tmp_path / "learned").mkdir()
    if text is not None:
        (tmp_path / "learned" / "delays.csv").write_text(text)
    with pytest.raises(DataError) as error:
        read_delay(EMPIRICAL, "x", str(tmp_path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("x,WEIBULL,1,2", "laws.csv:2: there is no law 'WEIBULL'; the laws are EXPONENTIAL, UNIFORM"),
        ("x,FITTED,1,2", "laws.csv:2: there is no law 'FITTED'"),
        ("x,GAMMA,1,", "laws.csv:2: second is '', not a number"),
        ("x,GAMMA,0,2", "laws.csv:2: first is 0; the shape of GAMMA must be above 0"),
        ("x,LOGNORMAL,inf,2", "laws.csv:2: first is inf; the mu of LOGNORMAL must be a number"),
        ("x,UNIFORM,3,2", "laws.csv:2: UNIFORM needs first below second"),
        ("x,EXPONENTIAL,3,\nX,EXPONENTIAL,4,", "laws.csv:3: component 'x' has a law already; keep one of them"),
    ],
)
def test_wrong_distributions_are_reported_in_one_line(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "learned").mkdir()
    (tmp_path / "learned" / "laws.csv").write_text(f"component,law,first,second\n{rows}\n")
    with pytest.raises(DataError) as error:
        read_delay(FITTED, "x", str(tmp_path))
    assert message in str(error.value)
