"""Each query is bound and analysed once per run; twice where types come from the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from anabranch.kinds import KINDS, load_kind_module
from tests.cli.command import Command

#: For each kind: the declaration of its stream, with types and without, its query, and a row.
STATED = {
    "PATTERN": "KEY (k STRING) VALUE (v STRING) TIME t INTEGER",
    "SEQUENCE": "KEY (k STRING) VALUE (v STRING) TIME t INTEGER",
    "CONSTRAIN": "KEY (k STRING) VALUE (v STRING) TIME t INTEGER",
    "RELATE": "KEY (k STRING) TIME t INTEGER ORDER seq MODEL INTERVALS",
    "MONITOR": "KEY (k STRING) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR 1 PERIOD 9",
}
QUERIES = {
    "PATTERN": "PATTERN s(k, 'a') THEN s(k, 'b') GROUP BY k",
    "SEQUENCE": "SEQUENCE (a, b) FROM s WHERE a.v = 'a' AND b.v = 'b' AND a.k = b.k WITHIN 5",
    "CONSTRAIN": "CONSTRAIN a, b FROM s WHERE a.v = 'a' AND b.v = 'b' AND ABS(a.t - b.t) <= 5",
    "RELATE": "RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k TIMEOUT 9",
    "MONITOR": "MONITOR a FROM s WHERE a.x > 0",
}
ROWS: dict[str, dict[str, list[Any]]] = {
    **dict.fromkeys(("PATTERN", "SEQUENCE", "CONSTRAIN"), {"k": ["p", "p"], "v": ["a", "b"], "t": [1, 2]}),
    "RELATE": {"k": ["p", "p", "q", "q"], "t": [1, 4, 2, 3], "seq": [1, 2, 1, 2]},
    "MONITOR": {"k": ["p"], "x": [1.0], "t": [1], "x_rate": [0.0]},
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often any kind was asked to bind and to analyse."""
    counted: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            counted[name] += 1
            return function(*arguments, **options)

        return call

    for kind in KINDS:
        binder, analysis = load_kind_module(kind, "binding").Binder, load_kind_module(kind, "analysis")
        monkeypatch.setattr(binder, "bind", counting("bind", binder.bind))
        monkeypatch.setattr(analysis, "analyse", counting("analyse", analysis.analyse))
    return counted


def workbook(folder: Path, kind: str, stated: bool = True, queries: int = 1) -> Path:
    """A workbook with its data: in Parquet with stated types, or in CSV without any."""
    table, declaration = pa.table(ROWS[kind]), STATED[kind]
    if stated:
        source = "rows.parquet"
        pq.write_table(table, folder / source)
    else:
        source = "rows.csv"
        pyarrow.csv.write_csv(table, folder / source)
        for name in ("STRING", "INTEGER", "DOUBLE"):
            declaration = declaration.replace(f" {name}", "")
    asked = "".join(f"CREATE QUERY q{number} AS {QUERIES[kind]};\n" for number in range(queries))
    path = folder / "book.abq"
    path.write_text(f"CREATE STREAM s {declaration} FROM '{source}';\n{asked}")
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["check", "explain"])
def test_check_and_explain_bind_and_analyse_once(
    anabranch: Command, calls: Counter[str], tmp_path: Path, command: str, kind: str
) -> None:
    assert anabranch(command, workbook(tmp_path, kind)).status == 0
    assert calls == {"bind": 1, "analyse": 1}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("stated", "times"), [(True, 1), (False, 2)])
def test_run_binds_and_analyses_once_and_again_only_for_types_of_the_data(
    anabranch: Command, calls: Counter[str], tmp_path: Path, stated: bool, times: int, kind: str
) -> None:
    outcome = anabranch("run", workbook(tmp_path, kind, stated), "--output", tmp_path / "out")
    assert (outcome.status, outcome.err.splitlines()[0].split(";")[0][:4]) == (0, "q0: ")
    assert calls == {"bind": times, "analyse": times}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("kind", ["SEQUENCE", "CONSTRAIN"])
def test_a_group_binds_and_analyses_each_query_once(
    anabranch: Command, calls: Counter[str], tmp_path: Path, kind: str
) -> None:
    assert anabranch("run", workbook(tmp_path, kind, queries=3), "--output", tmp_path / "out").status == 0
    assert calls == {"bind": 3, "analyse": 3}


@pytest.mark.usefixtures("spark")
def test_stream_binds_and_analyses_once(anabranch: Command, calls: Counter[str], tmp_path: Path) -> None:
    book, folders = workbook(tmp_path, "PATTERN"), ("--checkpoint", tmp_path / "cp", "--output", tmp_path / "out")
    assert anabranch("stream", book, "--once", *folders).status == 0
    assert calls == {"bind": 1, "analyse": 1}
