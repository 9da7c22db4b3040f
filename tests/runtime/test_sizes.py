"""Small inputs are recognised before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.runtime.sources import bindings
from anabranch.runtime.sources.sizes import total_bytes
from anabranch.session import Session

STREAM = "CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER"


def no_spark() -> None:
    raise AssertionError("Spark must not start")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bindings, "SHORT_RUN_BYTES", 100)
    (tmp_path / "rows.csv").write_text("k,v,t\na,x,1\n")
    (tmp_path / "large.csv").write_text("k,v,t\n" + "a,x,1\n" * 50)
    return Session(start=no_spark)


@pytest.mark.parametrize(
    ("source", "small"),
    [("FROM 'rows.csv'", True), ("FROM 'large.csv'", False), ("FROM '*.csv'", False), ("", True),
     ("FROM 's3a://bucket/rows.csv'", False), ("FROM TABLE rows", False)],
)  # fmt: skip
def test_inputs_by_their_source(session: Session, source: str, small: bool) -> None:
    session.execute(f"{STREAM} {source};")
    assert session.has_small_inputs() == small


def test_a_bound_path_counts_instead_of_the_declared_one(session: Session) -> None:
    session.execute(f"{STREAM} FROM 'rows.csv';")
    session.bind("s", "large.csv")
    assert not session.has_small_inputs()


def test_rows_in_memory_are_not_measured(session: Session) -> None:
    session.execute(f"{STREAM};")
    session.bind("s", [{"k": "a", "v": "x", "t": 1}])
    assert not session.has_small_inputs()


def test_folders_and_patterns_are_summed(tmp_path: Path) -> None:
    (tmp_path / "folder" / "part=1").mkdir(parents=True)
    (tmp_path / "folder" / "part=1" / "a.csv").write_bytes(b"12345")
    (tmp_path / "folder" / "b.csv").write_bytes(b"123")
    (tmp_path / "c.csv").write_bytes(b"1")
    assert total_bytes([str(tmp_path / "folder"), str(tmp_path / "*.csv"), str(tmp_path / "missing")]) == 9
