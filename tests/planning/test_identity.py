"""The identity of a checkpoint: pinned by golden files, and independent of internal classes and of folders."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from anabranch.planning.identity import Document, differences, fingerprint_of, identity_of, query_fingerprints
from anabranch.transport.layout import Layout
from tests.planning.golden_identity import WORKBOOKS, golden, group_of


def identity(text: str, folder: Path) -> Document:
    path = folder / "book.abq"
    path.write_text(text)
    return identity_of(*group_of(path))


STREAM = "CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER{clauses};"
QUERY = "CREATE QUERY q AS PATTERN s(k, 'a') GROUP BY k{threshold};"


@pytest.mark.parametrize("workbook", WORKBOOKS, ids=lambda path: path.stem)
def test_identities_are_as_agreed(workbook: Path) -> None:
    """On a difference, checkpoints of users would be orphaned: see `golden_identity`."""
    assert golden(workbook) == workbook.with_suffix(".json").read_text(encoding="utf-8")


@pytest.mark.parametrize("workbook", WORKBOOKS, ids=lambda path: path.stem)
def test_a_new_field_with_a_default_keeps_the_identity(workbook: Path) -> None:
    @dataclass(frozen=True)
    class LaterLayout(Layout):
        colour: str = "blue"

    group, layouts = group_of(workbook)
    later = [LaterLayout(**{field.name: getattr(layout, field.name) for field in fields(Layout)}) for layout in layouts]
    assert identity_of(group, later) == identity_of(group, layouts)


def test_the_identity_is_json_and_survives_a_manifest(tmp_path: Path) -> None:
    document = identity(STREAM.format(clauses="") + QUERY.format(threshold=""), tmp_path)
    saved = json.loads(json.dumps(document))
    assert differences(document, saved) == ""
    assert fingerprint_of(saved) == fingerprint_of(document)


def test_moving_the_data_keeps_the_identity(tmp_path: Path) -> None:
    here = identity(STREAM.format(clauses=" FROM 'a.csv'") + QUERY.format(threshold=""), tmp_path)
    there = identity(STREAM.format(clauses=" FROM 'b/c.parquet'") + QUERY.format(threshold=""), tmp_path)
    assert here == there


def test_another_form_of_rows_is_another_identity(tmp_path: Path) -> None:
    text = STREAM.format(clauses="") + "CREATE QUERY q AS CONSTRAIN v FROM s WHERE v.v = 'a'{per};"
    forms = ["", " PER 5", " PER 5 AT LEAST 2 TIMES", " PER EPISODE", " PER EPISODE GAP 1", " PER KEYS"]
    assert len({fingerprint_of(identity(text.format(per=per), tmp_path)) for per in forms}) == len(forms)


def test_create_or_replace_keeps_the_identity(tmp_path: Path) -> None:
    text = STREAM.format(clauses="") + QUERY.format(threshold="")
    assert identity(text.replace("CREATE", "CREATE OR REPLACE"), tmp_path) == identity(text, tmp_path)


@pytest.mark.parametrize(
    ("clauses", "threshold", "message"),
    [
        ("", " THRESHOLD 0.5", "belongs to another query, or to an earlier version of this query"),
        (" WATERMARK 5", "", "was written for streams with other columns, types or clauses"),
    ],
)
def test_a_change_of_query_or_stream_is_another_identity(
    tmp_path: Path, clauses: str, threshold: str, message: str
) -> None:
    before = identity(STREAM.format(clauses="") + QUERY.format(threshold=""), tmp_path)
    after = identity(STREAM.format(clauses=clauses) + QUERY.format(threshold=threshold), tmp_path)
    assert fingerprint_of(before) != fingerprint_of(after)
    assert differences(after, before) == message


def test_another_version_or_state_format_is_named(tmp_path: Path) -> None:
    document = identity(STREAM.format(clauses="") + QUERY.format(threshold=""), tmp_path)
    assert differences(document, document | {"version": 0}) == "has version 0, this version writes 2"
    assert differences(document, document | {"state format": 1}) == "has state format 1, this version writes 3"


PAIR = "CREATE QUERY {name} AS CONSTRAIN u, v FROM {first} AS u, {second} AS v WHERE SPAN(u, v) <= {most};"


def group_identity(folder: Path, *queries: str) -> Document:
    streams = "".join(f"CREATE STREAM {name} KEY (k STRING) TIME t INTEGER;" for name in "ab")
    return identity(streams + "".join(queries), folder)


def test_queries_that_share_a_pass_are_added_and_removed_but_not_changed(tmp_path: Path) -> None:
    one = PAIR.format(name="one", first="b", second="a", most=1)
    two = PAIR.format(name="two", first="a", second="b", most=2)
    both, first, second = (group_identity(tmp_path, *texts) for texts in ((one, two), (one,), (two,)))
    for other in (first, second):
        assert fingerprint_of(other, shares_pass=True) == fingerprint_of(both, shares_pass=True)
        assert differences(other, both, shares_pass=True) == differences(both, other, shares_pass=True) == ""
        assert differences(other, both) == "belongs to another query, or to an earlier version of this query"
    assert differences(first, second, shares_pass=True) == "belongs to other queries"
    assert [stream["layout"]["name"] for stream in both["streams"]] == ["a", "b"], "the order depends on no query"
    assert query_fingerprints(both) == (*query_fingerprints(first), *query_fingerprints(second))
    changed = group_identity(tmp_path, one.replace("<= 1", "<= 9"))
    assert query_fingerprints(changed) != query_fingerprints(first)
