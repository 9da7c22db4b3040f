"""Drafts of workbooks: what is guessed from the columns of a file, and that the first query runs and has answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from anabranch import Session
from anabranch.drafting import draft
from anabranch.errors import AnabranchError
from anabranch.kinds import KINDS
from anabranch.language.parser import parse
from anabranch.planning.planner import Planner

ROOMS = ["office", "hall", "coffee room"]


def walks(start: str = "2026-03-02 09:00:00", seconds: int = 60) -> pd.DataFrame:
    """Two people who walk through three rooms, a minute per row."""
    rows = [
        {"person_id": person, "room": ROOMS[(step + offset) % 3], "x": step * 1.5 + offset, "y": 2.0 * (step % 4),
         "time": pd.Timestamp(start) + pd.Timedelta(seconds=seconds * step), "temperature": 20 + step % 7 + 0.5}
        for offset, person in enumerate(["ana", "ben"])
        for step in range(30)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def objections(text: str) -> list[str]:
    """The errors of a workbook."""
    planner = Planner()
    findings = planner.declare(parse(text, "draft.abq"))
    return [str(finding) for finding in findings or planner.objections(planner.catalog.queries())]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_every_kind_and_format_gives_a_workbook_without_errors(tmp_path: Path, kind: str, suffix: str) -> None:
    path = tmp_path / f"walks.{suffix}"
    frame = walks()
    if suffix == "parquet":
        frame.to_parquet(path)
    elif suffix == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.assign(time=frame["time"].astype(str)).to_json(path, orient="records", lines=True)
    drafted = draft(kind, str(path), str(tmp_path))
    assert objections(drafted.text) == []
    assert f"FROM 'walks.{suffix}'" in drafted.text
    assert {"time is the time", "person_id is the key", "x, y is the location"} <= set(drafted.guesses)


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_query_has_answers(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    walks().to_csv(tmp_path / "walks.csv", index=False)
    workbook = tmp_path / "first.abq"
    workbook.write_text(draft(kind, str(tmp_path / "walks.csv"), str(tmp_path)).text)
    session = Session(spark)
    session.execute_file(str(workbook))
    (query,) = session.catalog.queries()
    assert session.run(query.name).count() > 0
    assert session.counts(query.name).quarantined == 0


@pytest.mark.parametrize(
    ("written", "clause"),
    [
        ("%Y-%m-%d %H:%M:%S", "TIME time TIMESTAMP"),
        ("%d.%m.%Y %H:%M", "TIME time FORMAT 'dd.MM.yyyy HH:mm'"),
        ("%m/%d/%Y %H:%M:%S", "TIME time FORMAT 'MM/dd/yyyy HH:mm:ss[.SSSSSS]'"),
        ("%Y/%m/%d", "TIME time FORMAT 'yyyy/MM/dd'"),
    ],
)
def test_times_are_recognised_as_they_are_written(tmp_path: Path, written: str, clause: str) -> None:
    frame = walks(seconds=86_400)
    frame.assign(time=frame["time"].dt.strftime(written)).to_csv(tmp_path / "a.csv", index=False)
    drafted = draft("PATTERN", str(tmp_path / "a.csv"), str(tmp_path))
    assert clause in drafted.text
    assert not any("days before months" in guess for guess in drafted.guesses)


def test_days_and_months_that_could_be_exchanged_are_reported(tmp_path: Path) -> None:
    frame = walks(seconds=3600).head(20)
    frame.assign(time=frame["time"].dt.strftime("%d/%m/%Y %H:%M")).to_csv(tmp_path / "a.csv", index=False)
    drafted = draft("PATTERN", str(tmp_path / "a.csv"), str(tmp_path))
    assert "time has days before months; the values leave it open" in drafted.guesses


def test_separators_leading_zeros_and_compressed_files(tmp_path: Path) -> None:
    lines = ["tag;t;reader", *(f"00{tag};{t};{reader}" for tag in (17, 18) for t, reader in enumerate("ABC"))]
    with gzip.open(tmp_path / "reads.csv.gz", "wt") as file:
        file.write("\n".join(lines))
    text = draft("SEQUENCE", str(tmp_path / "reads.csv.gz"), str(tmp_path)).text
    assert "KEY (tag STRING)" in text
    assert "OPTIONS (sep = ';')" in text
    assert "x.reader = 'A' AND y.reader = 'B' AND z.reader = 'C'" in text
    assert objections(text) == []


def test_texts_with_doubled_quotes_need_no_option(tmp_path: Path) -> None:
    rows = [
        {"who": who, "side": side, "t": t, "w": None}
        for who in ('the "boss", bob', "eve")
        for t, side in enumerate("io")
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "door.csv", index=False)
    text = draft("PATTERN", str(tmp_path / "door.csv"), str(tmp_path)).text
    assert "FROM 'door.csv';" in text
    assert objections(text) == []


def test_probabilities_and_previous_values_give_the_model(tmp_path: Path) -> None:
    rows = [
        {"who": w, "place": p, "prev_place": q, "p": 0.5, "t": t}
        for w in "ab"
        for t in (1, 2)
        for p in "xy"
        for q in "xy"
    ]
    path = tmp_path / "at.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    assert "MODEL MARKOV" in draft("PATTERN", str(path), str(tmp_path)).text
    path.write_text("\n".join(json.dumps({k: v for k, v in row.items() if k != "prev_place"}) for row in rows))
    assert "MODEL INDEPENDENT" in draft("PATTERN", str(path), str(tmp_path)).text


def test_beginnings_and_ends_become_segments_for_relate_and_instants_for_pattern(tmp_path: Path) -> None:
    rows = [
        {"machine": m, "state": s, "start": 10 * n, "end": 10 * n + 5}
        for m in "ab"
        for n, s in enumerate(["on", "off"] * 3)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "states.csv", index=False)
    relate = draft("RELATE", str(tmp_path / "states.csv"), str(tmp_path)).text
    assert "TIME (start, end) INTEGER" in relate
    assert "HORIZON [0, 55]" in relate
    pattern = draft("PATTERN", str(tmp_path / "states.csv"), str(tmp_path)).text
    assert "TIME start INTEGER" in pattern
    assert objections(relate) == objections(pattern) == []


def test_columns_that_the_user_names_are_used(tmp_path: Path) -> None:
    walks().rename(columns={"time": "zeit"}).to_csv(tmp_path / "a.csv", index=False)
    drafted = draft(
        "PATTERN", str(tmp_path / "a.csv"), str(tmp_path), time="ZEIT", keys=["temperature"], values=["room"]
    )
    assert "KEY (temperature DOUBLE)" in drafted.text
    assert "VALUE (room STRING)" in drafted.text


@pytest.mark.parametrize(
    ("name", "content", "kind", "message"),
    [
        ("a.csv", "a,b\n1,2\n", "PATTERN", "no column looks like a time; name it with --time (the columns are a, b)"),
        ("a.csv", "t\n1\n", "PATTERN", "no column looks like a key; name it with --key (the columns are )"),
        ("a.csv", "t,id\n", "PATTERN", "has no rows"),
        ("a.csv", "", "PATTERN", "cannot be read"),
        ("a.parquet", "not parquet", "PATTERN", "cannot be read"),
        ("a.txt", "t,id\n1,2\n", "PATTERN", "is not a .csv, .json, .jsonl or .parquet file"),
        ("a.csv", "t,id,note\n1,2,x\n", "MONITOR", "MONITOR needs a column of numbers"),
        ("a.csv", "t,id\n1,2\n", "PATTERN", "PATTERN needs a value that is a name"),
        ("a.csv", "t,id\n1,2\n", "RELATE", "RELATE needs a beginning and an end"),
    ],
)
def test_what_cannot_be_drafted_is_one_clear_line(
    tmp_path: Path, name: str, content: str, kind: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(AnabranchError) as error:
        draft(kind, str(tmp_path / name), str(tmp_path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_column_or_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,id\n1,2\n")
    with pytest.raises(AnabranchError, match="there is no column room; the columns are t, id"):
        draft("PATTERN", str(tmp_path / "a.csv"), values=["room"])
    with pytest.raises(AnabranchError, match="there is no file"):
        draft("PATTERN", str(tmp_path / "missing.csv"))
