"""The workbook on the page: findings, plans, completion, saving, and the inputs that it may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.cli.serve.confinement import foreign_inputs
from anabranch.cli.serve.gallery import EXAMPLES, Gallery
from anabranch.cli.serve.workbench import Opened, checked, completions
from anabranch.errors import AnabranchError
from anabranch.language.parser import parse

DOOR = "CREATE STREAM door KEY (id STRING) VALUE (side STRING) TIME t INTEGER FROM 'door.csv';\n"
QUERY = "CREATE QUERY out AS PATTERN door(x, 'in') THEN door(x, 'out') GROUP BY x;\n"


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    (tmp_path / "door.abq").write_text(DOOR + QUERY)
    return Opened.of_file(tmp_path / "door.abq")


def test_a_valid_text_has_plans(opened: Opened) -> None:
    found = checked(opened.text, opened)
    assert found["findings"] == []
    (query,) = found["queries"]
    assert (query["name"], query["kind"], query["line"]) == ("out", "PATTERN", 2)
    assert "extended regular" in query["plan"]


def test_a_wrong_text_has_findings_with_positions(opened: Opened) -> None:
    found = checked(DOOR + QUERY.replace("THEN door", "THEN dor"), opened)
    assert found["queries"] == []
    (finding,) = found["findings"]
    assert finding["line"] == 2
    assert "dor" in finding["message"]
    assert finding["hint"] == "did you mean 'door'?"


def test_words_are_completed_although_the_statement_is_not_complete(opened: Opened) -> None:
    text = DOOR + "CREATE QUERY q AS PATTERN do"
    found = completions(text, len(text))
    assert found["start"] == len(text) - 2
    assert [word["text"] for word in found["words"]] == ["door"]


@pytest.mark.parametrize(
    "source",
    [
        "FROM '/etc/passwd.csv'",
        "FROM '../secret.csv'",
        "FROM 'in/../../secret.csv'",
        "FROM 'in/{a,../../secret}.csv'",
        "FROM 'file:///etc/passwd.csv'",
        "FROM 's3a://bucket/a.parquet'",
        "FROM 'link/a.csv'",
        "FROM TABLE prices",
        "FROM KAFKA 'readings' OPTIONS (servers = 'localhost:9092')",
        "FROM SOURCE 'rate'",
    ],
)
def test_inputs_outside_of_the_folder_are_refused(tmp_path: Path, source: str) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to("/etc")
    workbook = parse(DOOR.replace("FROM 'door.csv'", source))
    (finding,) = foreign_inputs(workbook, tmp_path / "inside")
    assert finding.span is not None


def test_models_and_maps_outside_of_the_folder_are_refused(tmp_path: Path) -> None:
    text = (
        DOOR + "CREATE STREAM at KEY (id STRING) VALUE (place STRING) TIME t INTEGER"
        " INFERRED FROM door USING HMM '../model/' METHOD FILTER;"
        "CREATE QUERY q AS PATTERN at(x, 'a') GROUP BY x CALIBRATED BY '/var/map.csv';"
    )
    assert len(foreign_inputs(parse(text), tmp_path)) == 2


def test_files_in_the_folder_are_allowed(tmp_path: Path) -> None:
    for path in ("door.csv", "in/*.csv", "./in/", str(tmp_path / "door.csv")):
        assert foreign_inputs(parse(DOOR.replace("door.csv", path)), tmp_path) == []


def test_a_workbook_is_saved_unless_someone_else_has_changed_it(opened: Opened) -> None:
    saved = opened.saved(DOOR)
    assert opened.file.read_text() == DOOR
    opened.file.write_text(QUERY)
    with pytest.raises(AnabranchError, match="has changed on disk"):
        saved.saved(DOOR + QUERY)
    assert opened.file.read_text() == QUERY


def test_an_example_is_no_file_of_the_user(opened: Opened) -> None:
    gallery = Gallery()
    try:
        with pytest.raises(AnabranchError, match="not a file"):
            gallery.open("coffee").saved("")
        with pytest.raises(AnabranchError, match="there is no example"):
            gallery.open("../coffee")
    finally:
        gallery.close()


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_valid_and_has_its_query(name: str) -> None:
    gallery = Gallery()
    try:
        example = gallery.open(name)
        found = checked(example.text, example)
    finally:
        gallery.close()
    assert found["findings"] == []
    kinds = {query["name"]: query["kind"] for query in found["queries"]}
    assert kinds[EXAMPLES[name].query] == EXAMPLES[name].kind
