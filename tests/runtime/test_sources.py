"""The same rows from every kind of source give the same answers, and an error in a source is one line."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.runtime.office import (
    ANSWERS,
    ROWS,
    SCHEMA,
    answers_of,
    collect,
    query,
    same,
    stream,
    table,
    write_csv,
    write_parquet,
)

from anabranch import Session
from anabranch.errors import AnabranchError, DataError, InputWarning, WorkbookError


def write_json(path: Path, rows: list[tuple] = ROWS) -> Path:
    path.write_text("".join(json.dumps(dict(zip(SCHEMA.names, row, strict=True))) + "\n" for row in rows))
    return path


def workbook(folder: Path, text: str) -> str:
    path = folder / "workbook.abq"
    path.write_text(text)
    return str(path)


def run_all(session: Session, names: list[str]) -> dict[str, dict[tuple, float]]:
    """The answers of several queries with the same columns, in one job."""
    frames = [session.run(name).withColumn("source", F.lit(name)) for name in names]
    rows = reduce(DataFrame.unionAll, frames).toArrow().to_pylist()
    return {name: answers_of([row for row in rows if row["source"] == name]) for name in names}


def refusal(session: Session, name: str = "coffee") -> str:
    """The one-line error of a query that is refused before it runs."""
    with pytest.raises(WorkbookError) as refused:
        session.run(name)
    (line,) = str(refused.value).splitlines()
    return line


def declare_files(folder: Path) -> dict[str, str]:
    """Write files of every format and layout, and return the text after FROM for each."""
    write_csv(folder / "at.csv")
    write_csv(folder / "semicolons.csv", sep=";")
    (folder / "small.csv.gz").write_bytes(gzip.compress((folder / "at.csv").read_bytes()))
    for ending in ("json", "jsonl", "ndjson"):
        write_json(folder / f"at.{ending}")
    write_parquet(folder / "at.parquet")
    write_parquet(folder / "groups.parquet", row_group_size=1)
    write_parquet(folder / "coded.parquet", use_dictionary=False, compression="none")
    for number, row in enumerate(ROWS):
        write_parquet(folder / "many" / f"part {number}%20.parquet", [row])
        write_csv(folder / "texts" / f"{number}.csv", [row])
    # A name that begins with an underscore or a dot is not data, in any folder.
    write_parquet(folder / "many" / "_staging" / "0" / "half.parquet", [("ann", "coffee", 9, 1.0)])
    (folder / "many" / "_SUCCESS").touch()
    pq.write_to_dataset(table(), folder / "by_place", partition_cols=["place"])
    pq.write_to_dataset(
        table().append_column("year", pa.array([2026] * 6)), folder / "by_year", partition_cols=["year"]
    )
    return {
        "csv": "'at.csv'",
        "separated": "'semicolons.csv' OPTIONS (sep = ';')",
        "zipped": "'small.csv.gz'",
        "json": "'at.json'",
        "jsonl": "'at.jsonl'",
        "ndjson": "'at.ndjson'",
        "parquet": "'at.parquet'",
        "row_groups": "'groups.parquet'",
        "plain_pages": "'coded.parquet'",
        "folder": "'many'",
        "glob": "'many/part*.parquet'",
        "text_folder": "'texts'",
        "text_glob": "'texts/[0-9].csv'",
        "absolute": f"'{folder}/at.parquet'",
        "address": f"'file://{folder}/at.parquet'",
        "partitions": "'by_place'",
        "other_partitions": "'by_year'",
        "table_of_spark": "TABLE office_rows",
    }


def test_every_kind_of_source_gives_the_same_answers(spark: SparkSession, tmp_path: Path) -> None:
    sources = declare_files(tmp_path)
    spark.createDataFrame(table()).createOrReplaceTempView("office_rows")
    text = "".join(stream(f"s_{name}", source, person="person STRING") for name, source in sources.items())
    text += stream("s_frame") + stream("s_path") + stream("s_object")
    names = [*sources, "frame", "path", "object"]
    text += "".join(query(name, f"s_{name}") for name in names)
    session = Session(spark)
    session.execute_file(workbook(tmp_path, text))
    # Columns in another order and case, with other columns between them.
    mixed = table().select(["p", "t", "place", "person"]).append_column("more", pa.array(range(6)))
    session.bind("s_frame", spark.createDataFrame(mixed.rename_columns(["P", "T", "Place", "PERSON", "more"])))
    session.bind("s_path", str(tmp_path / "many"))
    session.bind("s_object", tmp_path / "at.parquet")
    answers = run_all(session, names)
    assert {name: found for name, found in answers.items() if not same(found, ANSWERS)} == {}


def test_a_declared_type_is_the_type_of_a_text_file(spark: SparkSession, tmp_path: Path) -> None:
    write_csv(tmp_path / "at.csv", [("007", "hall", 1, 1), ("7", "coffee", 2, 1), ("007", "coffee", 3, 1)])
    declared, inferred = stream("s1", "'at.csv'", person="person STRING"), stream("s2", "'at.csv'")
    session = Session(spark)
    session.execute_file(workbook(tmp_path, declared + inferred + query("q1", "s1") + query("q2", "s2")))
    assert collect(session.run("q1")) == {(3, "007"): 1.0}
    assert collect(session.run("q2")) == {(2, 7): 1.0}, "inferred, both are the number 7"


def test_a_cell_that_does_not_fit_its_column_is_quarantined_and_not_null(spark: SparkSession, tmp_path: Path) -> None:
    write_csv(tmp_path / "at.csv", [*ROWS, ("ann", "coffee", "soon", 0.5), ("bob", "coffee", 3, "much")])
    (tmp_path / "at.json").write_text(
        write_json(tmp_path / "good.json").read_text()
        + '{"person": "ann", "place": "coffee", "t": "soon", "p": 0.5}\n{"person": "bob", "place": "cof\n'
    )
    for name in ("at.csv", "at.json"):
        session = Session(spark)
        session.execute_file(workbook(tmp_path, stream("at", f"'{name}'", "t INTEGER", "person STRING") + query()))
        assert same(collect(session.run("coffee")), ANSWERS), name
        counts = session.counts("coffee")
        assert (counts.read, counts.used, counts.quarantined) == (8, 6, 2), name
        quarantined = session.quarantine("coffee").collect()
        assert {row["reason"] for row in quarantined} == {"a cell does not fit its column's type"}
        assert any("soon" in row["row"] for row in quarantined), "the text of the row is kept"


def test_quotes_in_the_texts_of_csv_files_are_doubled_or_have_backslashes(spark: SparkSession, tmp_path: Path) -> None:
    """Workers read the files without `multiLine`, Spark those with it."""
    names = ['the "boss", ann', '"', "back\\slash", 'a""b']
    rows = [(name, "coffee" if t == 2 else "hall", t, 0.5) for name in names for t in (1, 2)]
    with (tmp_path / "doubled.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("person", "place", "t", "p"), *rows])
    with (tmp_path / "backslash.csv").open("w", newline="") as file:
        writer = csv.writer(file, doublequote=False, escapechar="\\", quoting=csv.QUOTE_ALL)
        writer.writerows([("person", "place", "t", "p"), *rows])
    sources = [("doubled", []), ("backslash", [r"escape = '\'"])]
    for name, options in sources:
        for reader in ([], ["multiLine = true"]):
            chosen = ", ".join(options + reader)
            source = f"'{name}.csv'" + (f" OPTIONS ({chosen})" if chosen else "")
            declared = stream("at", source, "t INTEGER", "person STRING") + query()
            session = Session(spark)
            session.execute_file(workbook(tmp_path, declared))
            assert same(collect(session.run("coffee")), {(2, name): 0.25 for name in names}), source


def test_a_file_in_another_encoding_without_the_option_names_it(spark: SparkSession, tmp_path: Path) -> None:
    text = write_csv(tmp_path / "at.csv").read_text()
    (tmp_path / "at.csv").write_bytes(text.encode("UTF-16"))
    session = Session(spark)
    session.execute_file(workbook(tmp_path, stream("at", "'at.csv'", person="person STRING") + query()))
    with pytest.raises(WorkbookError, match=r"seems to be in UTF-16; write OPTIONS \(encoding = 'UTF-16'\) after"):
        session.run("coffee")


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16LE", "ISO-8859-1"])
def test_csv_files_of_other_encodings(spark: SparkSession, tmp_path: Path, encoding: str) -> None:
    rows = [("zoë", "hall", 1, 0.5), ("zoë", "coffee", 2, 0.5), ("zoë", "coffee", "soon", 0.5)]
    text = write_csv(tmp_path / "at.csv", rows).read_text()
    (tmp_path / "at.csv").write_bytes(text.encode(encoding))
    session = Session(spark)
    source = f"'at.csv' OPTIONS (encoding = '{encoding}')"
    session.execute_file(workbook(tmp_path, stream("at", source, "t INTEGER", "person STRING") + query()))
    assert same(collect(session.run("coffee")), {(2, "zoë"): 0.25})
    assert session.counts("coffee").quarantined == 1


def test_a_malformed_cell_of_an_unused_column_is_ignored(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(*row, note) for row, note in zip(ROWS, [1, 2, 3, 4, 5, "six"], strict=True)]
    write_csv(tmp_path / "at.csv", rows, "person,place,t,p,note")
    session = Session(spark)
    session.execute_file(workbook(tmp_path, stream("at", "'at.csv'", person="person STRING") + query()))
    assert same(collect(session.run("coffee")), ANSWERS)


def test_text_files_whose_columns_differ_are_not_mixed_up(spark: SparkSession, tmp_path: Path) -> None:
    write_csv(tmp_path / "at" / "1.csv", ROWS[:3])
    swapped = [(place, person, t, p) for person, place, t, p in ROWS[3:]]
    write_csv(tmp_path / "at" / "2.csv", swapped, "place,person,t,p")
    session = Session(spark)
    session.execute_file(workbook(tmp_path, stream("at", "'at'", "t INTEGER", "person STRING") + query()))
    with pytest.raises(DataError, match=r"\.csv has the columns p.*, not p"):
        session.run("coffee").collect()


def test_files_with_different_types_of_a_column_are_read_as_one_table(spark: SparkSession, tmp_path: Path) -> None:
    kinds = [(pa.int64(), pa.float64()), (pa.int32(), pa.float32()), (pa.int16(), pa.decimal128(5, 2))]
    for number, (time, p) in enumerate(kinds):
        rows = [(*row[:3], Decimal(str(row[3])) if p == kinds[2][1] else row[3]) for row in ROWS[number::3]]
        coded = pa.dictionary(pa.int8(), pa.string())
        person, place = (coded, pa.large_string()) if number else (pa.string(), pa.string())
        schema = pa.schema([("person", person), ("place", place), ("t", time), ("p", p)])
        write_parquet(tmp_path / "at" / f"{number}.parquet", rows, schema)
    session = Session(spark)
    session.execute_file(workbook(tmp_path, stream("at", "'at'") + query()))
    assert same(collect(session.run("coffee")), ANSWERS, within=1e-7)


def test_a_file_without_a_needed_column_is_named(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "at" / "1.parquet")
    pq.write_table(table().drop_columns(["p"]), tmp_path / "at" / "2.parquet")
    session = Session(spark)
    session.execute_file(workbook(tmp_path, stream("at", "'at'") + query()))
    with pytest.raises(DataError, match=r"2\.parquet has no column p"):
        session.run("coffee").collect()


def test_a_broken_file_among_others_is_named(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "at" / "1.parquet")
    (tmp_path / "at" / "2.parquet").write_bytes(b"PAR1 and nothing else")
    session = Session(spark)
    session.execute_file(workbook(tmp_path, stream("at", "'at'") + query()))
    with pytest.raises(DataError, match=r"2\.parquet") as refused:
        session.run("coffee")
    assert "\n" not in str(refused.value)


def test_an_empty_file_has_no_answers(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(SCHEMA.empty_table(), tmp_path / "at.parquet")
    write_csv(tmp_path / "at.csv", [])
    text = stream("s1", "'at.parquet'") + stream("s2", "'at.csv'", "t INTEGER") + query("q1", "s1") + query("q2", "s2")
    session = Session(spark)
    session.execute_file(workbook(tmp_path, text))
    for name in ("q1", "q2"):
        assert collect(session.run(name)) == {}
        with pytest.warns(InputWarning, match=r"^s\d has no rows; check its path$"):
            assert session.counts(name).read == 0


# ---------------------------------------------------------------- times


MOMENT = datetime(2026, 3, 8, 6, 59, 59, tzinfo=UTC)  # one second before New York changes its clocks


def test_timestamps_of_every_kind_are_the_same_instants_in_every_session(spark: SparkSession, tmp_path: Path) -> None:
    moments = [MOMENT + timedelta(seconds=row[2]) for row in ROWS]
    texts = [moment.strftime("%Y-%m-%d %H:%M:%S") for moment in moments]
    plain = table()
    for name, kind in (("utc", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("fine", pa.timestamp("ns"))):
        naive = [moment if kind.tz else moment.replace(tzinfo=None) for moment in moments]
        pq.write_table(plain.set_column(2, "t", pa.array(naive, kind)), tmp_path / f"{name}.parquet")
    write_csv(tmp_path / "text.csv", [(*row[:2], text, row[3]) for row, text in zip(ROWS, texts, strict=True)])
    write_json(tmp_path / "text.json", [(*row[:2], text, row[3]) for row, text in zip(ROWS, texts, strict=True)])
    zoned = [f"{moment + timedelta(hours=9):%Y-%m-%dT%H:%M:%S}+09:00" for moment in moments]
    write_csv(tmp_path / "zoned.csv", [(*row[:2], text, row[3]) for row, text in zip(ROWS, zoned, strict=True)])
    spark.read.parquet(str(tmp_path / "local.parquet")).createOrReplaceTempView("naive_times")
    spark.read.parquet(str(tmp_path / "utc.parquet")).createOrReplaceTempView("zoned_times")
    sources = {
        "utc": "'utc.parquet'", "local": "'local.parquet'", "fine": "'fine.parquet'", "csv": "'text.csv'",
        "json": "'text.json'", "zoned": "'zoned.csv'", "naive_table": "TABLE naive_times",
        "zoned_table": "TABLE zoned_times",
    }  # fmt: skip
    text = "".join(stream(f"s_{n}", source, "t TIMESTAMP", "person STRING") for n, source in sources.items())
    text += "".join(query(name, f"s_{name}") for name in sources)
    expected = {(MOMENT + timedelta(seconds=t), who): p for (t, who), p in ANSWERS.items()}
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in ("UTC", "America/New_York"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            session = Session(spark)
            session.execute_file(workbook(tmp_path, text))
            answers = run_all(session, list(sources))
            assert {name: found for name, found in answers.items() if not same(found, expected)} == {}, zone
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_an_inferred_timestamp_of_a_text_file_is_in_utc(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("ann", "hall", "2026-01-01 00:00:00", 1), ("ann", "coffee", "2026-01-01 00:00:01.5", 1)]
    write_csv(tmp_path / "at.csv", rows)
    session = Session(spark)
    session.execute_file(workbook(tmp_path, stream("at", "'at.csv'") + query()))
    assert collect(session.run("coffee")) == {(datetime(2026, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), "ann"): 1.0}


def test_streams_with_integer_and_double_times_can_be_combined(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(
        stream("a") + stream("b") + "CREATE QUERY q AS PATTERN a(x, 'hall') THEN b(x, 'coffee') GROUP BY x;"
    )
    session.bind("a", spark.createDataFrame([("ann", "hall", 1, 1.0), ("bob", "hall", 3, 1.0)], SCHEMA.names))
    session.bind("b", spark.createDataFrame([("ann", "coffee", 1.5, 0.5), ("bob", "coffee", 3.0, 0.5)], SCHEMA.names))
    assert collect(session.run("q")) == {(1.5, "ann"): 0.5}, "3 and 3.0 are one instant"


def test_integer_and_double_keys_with_equal_values_are_the_same_key(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(
        stream("a") + stream("b") + "CREATE QUERY q AS PATTERN a(x, 'hall') THEN b(x, 'coffee') GROUP BY x;"
    )
    people = range(40)
    session.bind("a", spark.createDataFrame([(n, "hall", 1, 1.0) for n in people], SCHEMA.names))
    session.bind("b", spark.createDataFrame([(float(n), "coffee", 2, 0.5) for n in people], SCHEMA.names))
    assert collect(session.run("q")) == {(2, float(n)): 0.5 for n in people}


def test_keys_of_every_type_and_name_are_returned_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    key = {
        "a b": 2**40, "select": -1.5, "ä.b": True, "day": date(1969, 7, 20), "moment": MOMENT,
        "price": Decimal("1.50"), "raw": b"\xff\x00", "Größe": "ß",
    }  # fmt: skip
    schema = pa.schema(
        [
            *((name, pa.array([value]).type) for name, value in key.items() if name != "moment"),
            ("moment", pa.timestamp("us", "UTC")), ("place", pa.string()), ("t", pa.int64()), ("p", pa.float64()),
        ]
    )  # fmt: skip
    rows = [key | {"place": place, "t": t, "p": 0.5} for t, place in enumerate(("hall", "coffee"))]
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "at.parquet")
    names = ", ".join(f"`{name}`" for name in key)
    variables = ", ".join(f"v{number}" for number in range(len(key)))
    text = f"CREATE STREAM at KEY ({names}) VALUE (place) TIME t MODEL INDEPENDENT FROM 'at.parquet';"
    text += f"CREATE STREAM bound KEY ({names}) VALUE (place) TIME t MODEL INDEPENDENT;"
    for stream_name, name in (("at", "q1"), ("bound", "q2")):
        goals = f"{stream_name}({variables}, 'hall') THEN {stream_name}({variables}, 'coffee')"
        text += f"CREATE QUERY {name} AS PATTERN {goals} GROUP BY {variables};"
    session = Session(spark)
    session.execute_file(workbook(tmp_path, text))
    session.bind("bound", spark.read.parquet(str(tmp_path / "at.parquet")))
    expected = tuple(float(value) if isinstance(value, Decimal) else value for value in key.values())
    for name in ("q1", "q2"):
        assert collect(session.run(name)) == {(1, *expected): 0.25}, name


# ---------------------------------------------------------------- a query as a stream


def test_the_answers_of_a_query_are_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    text = stream("at") + query("coffee", "at")
    text += "CREATE STREAM trips KEY (x) TIME t MODEL INDEPENDENT PROBABILITY probability FROM QUERY coffee;"
    text += "CREATE QUERY twice AS PATTERN trips(x) THEN trips(x) GROUP BY x;"
    session = Session(spark)
    session.execute(text)
    rows = [("ann", place, t, 0.5) for t, place in enumerate(["hall", "coffee", "hall", "coffee"], start=1)]
    session.bind("at", spark.createDataFrame(rows, SCHEMA.names))
    assert collect(session.run("coffee")) == pytest.approx({(2, "ann"): 0.25, (4, "ann"): 0.3125})
    # The four events happen; the two trips depend on each other.
    assert collect(session.run("twice")) == pytest.approx({(4, "ann"): 0.0625})
    session.execute("CREATE STREAM sure MODEL CERTAIN FROM QUERY coffee; CREATE QUERY live AS PATTERN sure(x);")
    # On a stream, the query that is read needs a live input, too.
    with pytest.raises(DataError, match="the input of at is not a streaming DataFrame"):
        session.start("live", str(tmp_path / "checkpoint"), str(tmp_path / "out"))
    # Rows that are bound to the stream are not answers.
    session.bind("trips", [{"x": "ann", "t": t, "probability": 0.5} for t in (1, 2)])
    assert collect(session.run("twice")) == pytest.approx({(2, "ann"): 0.25})


def test_a_stream_from_a_query_can_name_fields_of_structs(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(
        "CREATE STREAM cars KEY (car STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 9;"
        "CREATE QUERY near AS MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) < 3 AND a.car < b.car;"
        "CREATE STREAM met KEY (a.car, b.car STRING) TIME valid_from FROM QUERY near;"
        "CREATE QUERY pair AS PATTERN met(x, y) GROUP BY x, y;"
    )
    session.bind("cars", [{"car": car, "x": 1.0, "t": 0.0, "x_rate": 0.0} for car in ("a", "b")])
    assert collect(session.run("pair")) == {(0.0, "a", "b"): 1.0}
    with pytest.raises(WorkbookError, match=r"'a' is a struct, .*; name a field of it: a\.car, a\.t"):
        session.execute("CREATE STREAM whole KEY (a) TIME valid_from FROM QUERY near;")


def test_a_query_over_its_own_answers_is_refused(spark: SparkSession) -> None:
    session = Session(spark)
    text = "CREATE STREAM at KEY (x) VALUE (place) TIME t MODEL INDEPENDENT FROM QUERY coffee;"
    with pytest.raises(AnabranchError) as refused:
        session.execute(text + query())
        session.run("coffee")
    assert "\n" not in str(refused.value)


# ---------------------------------------------------------------- errors


def test_an_error_in_a_source_is_one_line_with_its_position(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "at.parquet")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    (tmp_path / "at.docx").touch()
    write_csv(tmp_path / "words.csv", [("ann", "hall", "soon", 1)])
    nested = pa.table({"person": ["ann"], "place": [["hall"]], "t": [1], "p": [1.0]})
    pq.write_table(nested, tmp_path / "nested.parquet")
    path = tmp_path / "workbook.abq"
    for declaration, position, message in (
        (stream("at", "'absent.parquet'"), ":1:", "there is no file 'absent.parquet'"),
        (stream("at", "'at.parquet'", person="persons"), ":1:1:", "has no column persons; did you mean person?"),
        (stream("at", "'at.parquet'", person="zzz"), ":1:1:", "has no column zzz; it has person, place, t, p"),
        (
            stream("at", "'at.parquet'", person="person INTEGER"),
            ":1:1:",
            "column person of 'at.parquet' is STRING, not",
        ),
        (stream("at", "'words.csv'"), ":1:1:", "the time column t of at is STRING; a time is an INTEGER, a DOUBLE, a"),
        (stream("at", "'nested.parquet'"), ":1:1:", "column place of 'nested.parquet' is array<string>"),
        (stream("at", "'empty'"), ":1:", "the format of 'empty' is unknown"),
        (stream("at", "'at.docx'"), ":1:", "the format of 'at.docx' is unknown"),
        (stream("at", "'broken.parquet'"), ":1:", "'broken.parquet' cannot be read"),
        (stream("at", "TABLE no_such_table"), ":1:", "there is no Spark table no_such_table"),
        (stream("at"), ":1:1:", "at has no input; write FROM 'path', pass --input at=path, or bind a DataFrame"),
    ):
        path.write_text(declaration + query())
        session = Session(spark)
        session.execute_file(str(path))
        line = refusal(session)
        assert line.startswith(f"{path}{position}"), line
        assert message in line


def test_streams_whose_times_cannot_be_compared_are_refused(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(stream("a") + stream("b") + "CREATE QUERY coffee AS PATTERN a(x, _) THEN b(x, _);")
    session.bind("a", spark.createDataFrame([("ann", "hall", 1, 1.0)], SCHEMA.names))
    session.bind("b", spark.createDataFrame([("ann", "hall", MOMENT, 1.0)], SCHEMA.names))
    assert "have different time types (a has INTEGER, b has TIMESTAMP); convert one of them" in refusal(session)


def test_only_declared_streams_and_relations_can_be_bound(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(stream("at") + query())
    with pytest.raises(AnabranchError, match="there is no stream or relation coffee to bind; declared are: at"):
        session.bind("coffee", spark.range(1))


def test_a_relation_can_have_any_source_and_keeps_its_types(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "at.parquet")
    (tmp_path / "hall.csv").write_text("ignored,room\n1,hall\n2,\n")
    pq.write_table(pa.table({"who": pa.array(["ann", "007"]).dictionary_encode()}), tmp_path / "staff.parquet")
    text = stream("at", "'at.parquet'") + "CREATE RELATION hall (room) FROM 'hall.csv';"
    text += "CREATE RELATION staff (who) FROM 'staff.parquet'; CREATE RELATION chosen (who STRING, t INTEGER);"
    text += (
        "CREATE QUERY q AS PATTERN at(x, y)[hall(y)] THEN at(x, 'coffee') WHERE staff(x) AND chosen(x, 1) GROUP BY x;"
    )
    session = Session(spark)
    session.execute_file(workbook(tmp_path, text))
    session.bind("chosen", spark.createDataFrame([("ann", 1), ("007", 2), ("bob", 1)], ["who", "t"]))
    assert same(collect(session.run("q")), {(2, "ann"): 0.4})
