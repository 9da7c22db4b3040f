"""Held-out events: the share, the seed, the conditions, and files that stay as they were."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import DataError
from anabranch.evaluation.files import read_table
from anabranch.evaluation.holdout import ArrowRows, HeldOut, Rows, hold_out, read_rows
from tests.drawn import examples

TABLE = pa.table(
    {
        "case": [f"c{number // 4}" for number in range(40)],
        "seq": [number % 4 + 1 for number in range(40)],
        "act": ["open", "close"] * 20,
        "t": [None if number == 7 else number for number in range(40)],
    }
)


def rows(table: pa.Table = TABLE) -> Rows:
    return ArrowRows(Path("log.parquet"), table, is_csv=False)


def tables(result: HeldOut) -> tuple[pa.Table, pa.Table]:
    assert isinstance(result.kept, ArrowRows)
    assert isinstance(result.truth, ArrowRows)
    return result.kept.table, result.truth.table


def test_a_share_of_the_rows_becomes_the_truth() -> None:
    kept, truth = tables(hold_out(rows(), 0.2, seed=1))
    assert (kept.num_rows, truth.num_rows) == (32, 8)
    assert sorted(map(str, [*kept.to_pylist(), *truth.to_pylist()])) == sorted(map(str, TABLE.to_pylist()))
    assert tables(hold_out(rows(), 0.2, seed=1))[1] == truth, "the same seed, the same rows"
    assert tables(hold_out(rows(), 0.2, seed=2))[1] != truth


def test_conditions_restrict_the_rows_and_ends_have_even_numbers() -> None:
    _, truth = tables(hold_out(rows(), 0.5, where=["ACT=close", "case!=c0"]))
    assert truth.num_rows == 9
    assert set(truth["act"].to_pylist()) == {"close"}
    assert "c0" not in truth["case"].to_pylist()
    _, ends = tables(hold_out(rows(), 0.5, ends="seq"))
    assert set(ends["seq"].to_pylist()) <= {2, 4}


def test_keys_are_drawn_as_a_whole() -> None:
    result = hold_out(rows(), 0.3, by=["case"], where=["act=open"])
    kept, truth = tables(result)
    drawn = set(truth["case"].to_pylist())
    assert (len(drawn), result.chosen, result.candidates) == (3, 3, 10)
    assert all(row["act"] == "close" for row in kept.to_pylist() if row["case"] in drawn)
    moved = TABLE.take(list(range(39, -1, -1)))
    assert set(tables(hold_out(rows(moved), 0.3, by=["case"]))[1]["case"].to_pylist()) == drawn, "in any order of rows"


def test_cleared_values_stay_as_rows() -> None:
    result = hold_out(rows(), 0.25, clear=["t"], ends="seq")
    kept, truth = tables(result)
    assert (result.chosen, result.candidates) == (5, 19), "a value that is unknown already cannot be held out"
    assert kept["t"].null_count == 6
    assert kept.drop(["t"]) == TABLE.drop(["t"])
    assert truth["t"].null_count == 0
    both = hold_out(rows(), 0.5, clear=["t", "act"])
    assert tables(both)[0]["act"].null_count == 20


@examples(20)
@given(st.floats(0.01, 0.99), st.integers(0, 50))
def test_the_number_is_the_rounded_share(share: float, seed: int) -> None:
    if round(share * 40):
        assert hold_out(rows(), share, seed=seed).chosen == round(share * 40)


def csv_file(path: Path) -> None:
    path.write_text('case,t,note\n007,2026-03-02T09:00:00Z,"a, ""b"""\n008,1e3,NULL\n009,,\n010,5,x\n')


def json_file(path: Path) -> None:
    lines = [{"case": 7, "t": "2026-03-02T09:00:00Z"}, {"case": 8, "t": 1.0, "more": [1]}, {"case": 9}, {"case": 10}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(("name", "write"), [("log.csv", csv_file), ("log.jsonl", json_file)])
def test_compressed_files_stay_compressed(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    write(tmp_path / name)
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    for run in ("one", "two"):
        hold_out(read_rows(path), 0.5).kept.write(tmp_path / f"{run}-{path.name}")
    assert (tmp_path / f"one-{path.name}").read_bytes() == (tmp_path / f"two-{path.name}").read_bytes()
    hold_out(read_rows(tmp_path / name), 0.5).kept.write(tmp_path / f"kept-{name}")
    kept = gzip.decompress((tmp_path / f"one-{path.name}").read_bytes())
    assert kept == (tmp_path / f"kept-{name}").read_bytes()
    assert read_table(tmp_path / f"one-{path.name}").num_rows == 2


@pytest.mark.parametrize(("name", "write"), [("log.csv", csv_file), ("log.jsonl", json_file)])
def test_text_files_keep_the_text_of_their_values(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    path = tmp_path / name
    write(path)
    lines = path.read_text().splitlines()
    result = hold_out(read_rows(path), 0.25, seed=5)
    result.kept.write(tmp_path / f"kept-{name}")
    result.truth.write(tmp_path / f"truth-{name}")
    kept, truth = ((tmp_path / f"{part}-{name}").read_text().splitlines() for part in ("kept", "truth"))
    assert set(kept) | set(truth) == set(lines)
    assert len(kept) + len(truth) == len(lines) + (name == "log.csv")
    cleared = hold_out(read_rows(path), 0.5, clear=["t"])
    cleared.kept.write(tmp_path / f"kept-{name}")
    unknown = [read_rows(file).texts("t").count(None) for file in (path, tmp_path / f"kept-{name}")]
    assert unknown[1] - unknown[0] == cleared.chosen > 0


def test_parquet_files_keep_their_types(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "log.parquet")
    result = hold_out(read_rows(tmp_path / "log.parquet"), 0.2, clear=["t"])
    result.kept.write(tmp_path / "kept.parquet")
    assert pq.read_table(tmp_path / "kept.parquet").schema.equals(TABLE.schema)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": ["act"]}, "--where takes COLUMN=VALUE or COLUMN!=VALUE, not act"),
        ({"where": ["who=x"]}, "log.parquet: there is no column who; the columns are: case, seq, act, t"),
        ({"where": ["act=none"]}, "log.parquet: 0.2 of 0 is no event; use a larger share, or another --where"),
        ({"ends": "act"}, "log.parquet: act is 'open', not the number of an event"),
    ],
)
def test_what_cannot_be_held_out_is_refused(options: dict, message: str) -> None:
    with pytest.raises(DataError) as error:
        hold_out(rows(), 0.2, **options)
    assert str(error.value) == message


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"a": 1}\n[2]\n')
    with pytest.raises(DataError, match=r"log\.jsonl:2: the line is not a JSON object"):
        read_rows(tmp_path / "log.jsonl")
    with pytest.raises(DataError, match=r"log\.csv: cannot be read"):
        read_rows(tmp_path / "log.csv")
