"""`check` finds what a run would refuse before it reads data; each case is also refused by a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import Command

from anabranch.errors import WorkbookError
from anabranch.session import Session

READINGS = "CREATE STREAM readings KEY (tag STRING) VALUE (reader STRING) TIME t {} FROM 'readings.csv';\n"
AT = "CREATE STREAM at KEY (tag) VALUE (room) TIME t INFERRED FROM readings USING HMM '{}' METHOD FILTER {};\n"
INTERVALS = "CREATE STREAM {} KEY (k STRING) TIME t {} MODEL INTERVALS ORDER seq {} FROM 'iv.csv';\n"
RELATE = "CREATE QUERY q AS RELATE SOME x INTERSECTS SOME y FROM a AS x, {} AS y WHERE x.k <> y.k;\n"
PATTERN = "CREATE QUERY q AS PATTERN at(x, r) GROUP BY x {};\n"
SEQUENCE = (
    "CREATE QUERY q AS SEQUENCE (x, y, z) FROM readings WHERE x.reader = 'a' AND y.reader = 'b' AND z.reader = 'c' "
    "MISS y 0.1 DELAY y {} WITHIN 9;\n"
)

AVRO = (
    "CREATE STREAM at KEY (tag STRING) VALUE (room STRING) TIME t INTEGER FROM KAFKA 'at' "
    "OPTIONS (bootstrap_servers = 'localhost:1', format = 'avro', schema = 'no.avsc');\n"
)

#: Name, workbook, and the part of the message after the position.
CASES = [
    ("clocks", INTERVALS.format("a", "DOUBLE", "") + INTERVALS.format("b", "TIMESTAMP", "") + RELATE.format("b"),
     "the streams of one query have different time types (a has DOUBLE, b has TIMESTAMP); convert one of them"),
    ("horizon", INTERVALS.format("a", "INTEGER", "HORIZON [0, 9.5]") + RELATE.format("a"),
     "HORIZON must have the type of the time column; write whole numbers, or declare TIME t DOUBLE"),
    ("step", READINGS.format("INTEGER") + AT.format("model", "STEP 0.5") + PATTERN.format(""),
     "STEP 0.5 is no integer, and the times of readings are integers; write an integer"),
    ("model", READINGS.format("INTEGER") + AT.format("no/model", "") + PATTERN.format(""),
     "no/model: there is no such folder; fix the model, or use another"),
    ("map", READINGS.format("INTEGER") + AT.format("model", "") + PATTERN.format("CALIBRATED BY 'no.csv'"),
     "no.csv: there is no such file"),
    ("durations", INTERVALS.format("a", "DOUBLE", "DURATION FITTED 'no.csv'") + RELATE.format("a"),
     "no.csv: there is no such file; fix the file, or use another"),
    ("delays", READINGS.format("DOUBLE") + SEQUENCE.format("EMPIRICAL 'no.csv'"), "no.csv: there is no such file"),
    ("schema", AVRO + PATTERN.format(""), "no.avsc cannot be read: No such file or directory"),
    ("tables", READINGS.format("") + SEQUENCE.format("EMPIRICAL 'delays.csv'"),
     "delays.csv: there is no row of component 'y'; the components are: other"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Data, a model and delays, so that nothing else is refused."""
    (tmp_path / "readings.csv").write_text("tag,reader,t\na,r,1\n")
    (tmp_path / "iv.csv").write_text("k,t,seq\na,1,1\na,2,2\n")
    model = tmp_path / "model"
    model.mkdir()
    (model / "initial.csv").write_text("location,p\nhall,1\n")
    (model / "transition.csv").write_text("prev_location,location,p\nhall,hall,1\n")
    (model / "detection.csv").write_text("reader,location,p\nr,hall,0.5\n")
    (tmp_path / "delays.csv").write_text("component,delay\nother,1\n")
    return tmp_path


@pytest.mark.parametrize(("text", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_check_and_run_refuse_the_same_before_any_row_is_read(
    anabranch: Command, folder: Path, text: str, message: str
) -> None:
    path = folder / "w.abq"
    path.write_text(text)
    wrong = anabranch("check", path)
    assert wrong.status == 2
    assert wrong.first.endswith(message), wrong.first
    assert wrong.first.startswith(f"{path}:")
    session = Session()
    with pytest.raises(WorkbookError) as refused:
        session.execute_file(str(path))
        raise WorkbookError(session.objections(session.catalog.queries()), text, str(path))
    assert str(refused.value).splitlines()[0] == wrong.first


def test_a_workbook_whose_files_exist_passes(anabranch: Command, folder: Path) -> None:
    path = folder / "w.abq"
    path.write_text(READINGS.format("INTEGER") + AT.format("model", "STEP 2") + PATTERN.format(""))
    assert anabranch("check", path).status == 0


def test_a_model_is_not_needed_for_a_stream_that_has_an_input(folder: Path) -> None:
    session = Session()
    session.execute(READINGS.format("INTEGER") + AT.format("no/model", "") + PATTERN.format(""))
    session.bind("readings", str(folder / "readings.csv"))
    assert len(session.objections(session.catalog.queries())) == 1
    session.bind("at", [{"tag": "a", "room": "hall", "t": 1, "p": 1.0}])
    assert session.objections(session.catalog.queries()) == []


def test_all_errors_are_reported_at_once(anabranch: Command, folder: Path) -> None:
    """Those of the binder, of the analysis and of plans."""
    path = folder / "w.abq"
    path.write_text(
        READINGS.format("INTEGER")
        + "CREATE QUERY unknown AS PATTERN nothing(x, r);\n"
        + "CREATE QUERY any AS SEQUENCE (x, y) FROM readings WITHIN 9;\n"
        + "CREATE QUERY early AS CONSTRAIN u, v FROM readings WHERE u.t - v.t > 5 AND u.t - v.t < 3;\n"
    )
    wrong = anabranch("check", path)
    lines = [line for line in wrong.err.splitlines() if line.startswith(str(path))]
    assert [line.removeprefix(f"{path}:").split(":")[0] for line in lines] == ["2", "3", "4"]


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SEQUENCE (!x) FROM readings WITHIN 9", "end with the event that completes the match"),
        ("SEQUENCE (x, !y) FROM readings WITHIN 9", "end with the event that completes the match, or add ENDING OPEN"),
        (
            "SEQUENCE (x, !y) FROM readings",
            "end with the event that completes the match, or add ENDING OPEN and WITHIN",
        ),
        (
            "SEQUENCE (x) FROM readings MISS x 0.1 DELAY x EXPONENTIAL(1) WITHIN 9",
            "remove x from MISS, or add ENDING OPEN",
        ),
        ("PATTERN readings(x, 220)", "write '220', or declare reader as an INTEGER"),
        ("PATTERN buses('220', _)", "write 220, or declare route as a STRING"),
        ("PATTERN buses(r, _) WHERE r = '220'", "write 220, or declare its column as a STRING"),
        ("SEQUENCE (x, y) FROM buses WHERE x.route = '220'", "write 220, or declare route as a STRING"),
        ("PATTERN buses(r, _) WHERE r = 'late'", "write an INTEGER"),
    ],
)
def test_hints_suggest_what_check_accepts(query: str, hint: str) -> None:
    buses = "CREATE STREAM buses KEY (route INTEGER) VALUE (stop STRING) TIME t INTEGER;"
    with pytest.raises(WorkbookError) as wrong:
        Session().execute(f"{READINGS.format('INTEGER')}{buses}CREATE QUERY q AS {query};")
    assert wrong.value.findings[0].hint == hint
