"""Streams derived from other streams: their types, their layouts, and inputs with wrong columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from tests.language.workbooks import declared

from anabranch import AnabranchError, Session
from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog, Stream
from anabranch.columns.times import TimeKind
from anabranch.errors import WorkbookError
from anabranch.inference.reporting import Reporting
from anabranch.language.parser import parse
from anabranch.language.types import Type
from anabranch.planning.derived import layouts_of, with_types_of
from anabranch.planning.layouts import layouts_for
from anabranch.runtime.inputs import Input
from anabranch.transport.layout import PredictionColumns

WORKBOOK = """
CREATE STREAM positions KEY (lane, Car) VALUE (speed, name) TIME T SPACE (X, y) WATERMARK 5;
CREATE STREAM cars KEY (car, lane) VALUE (x, speed) TIME t
  PREDICTED FROM positions ERROR (x = 25 NORMAL 10, speed = 3) PERIOD 30 {clauses};
CREATE STREAM buses KEY (bus) VALUE (x, y) TIME t MODEL PREDICTED ERROR (x = spread NORMAL 9, y = 4) PERIOD 2 MINUTES;
CREATE QUERY q AS MONITOR a FROM cars WHERE a.x < 5 AND a.x_rate > 0;
"""

POSITIONS = StructType().add("lane", "integer").add("car", "string").add("speed", "double").add("name", "string")
POSITIONS = POSITIONS.add("t", "double").add("x", "double").add("y", "integer")


def read_from(catalog: Catalog, name: str, schema: StructType) -> Stream:
    """The declared stream, with the types of an input."""
    entry = catalog.stream(name)
    assert entry is not None
    typed = Input(entry, schema).typed_entry()
    assert isinstance(typed, Stream)
    return typed


def predicted_and_positions(clauses: str = "", schema: StructType = POSITIONS) -> tuple[Stream, Stream]:
    """The predicted stream and the stream of its positions, with their types."""
    catalog = declared(WORKBOOK.format(clauses=clauses))
    cars, positions = catalog.stream("cars"), read_from(catalog, "positions", schema)
    assert cars is not None
    typed = with_types_of(cars, positions)
    assert isinstance(typed, Stream)
    return typed, positions


# ---------------------------------------------------------------- types


def test_a_predicted_stream_has_the_types_of_its_positions() -> None:
    cars, _ = predicted_and_positions()
    assert [column.type for column in cars.keys] == [Type.STRING, Type.INTEGER]
    assert [column.type for column in cars.values] == [Type.DOUBLE, Type.DOUBLE]
    assert cars.time.type is Type.DOUBLE


def test_text_positions_are_refused_when_a_query_is_bound() -> None:
    catalog = declared(WORKBOOK.format(clauses=""))
    texts = StructType.fromJson(POSITIONS.jsonValue())
    texts["speed"].dataType = texts["name"].dataType
    cars, _ = predicted_and_positions(schema=texts)
    catalog.add(cars)
    query = catalog.query("q")
    assert query is not None
    with pytest.raises(WorkbookError, match="a predicted value must be a number, but 'speed' is a STRING"):
        bind(query, catalog)


# ---------------------------------------------------------------- layouts


def test_the_layout_of_predictions() -> None:
    catalog = declared(WORKBOOK.format(clauses=""))
    schema = StructType().add("bus", "string").add("x", "double").add("y", "integer").add("t", "timestamp")
    schema = schema.add("x_rate", "double").add("y_rate", "float").add("spread", "integer")
    (layout,) = layouts_for([read_from(catalog, "buses", schema)])
    assert layout.prediction == PredictionColumns(("spread", 4.0), (9.0, None), 120.0, ("x_rate", "y_rate"))
    assert layout.time_kind is TimeKind.TIMESTAMP
    assert layout.columns == ["bus", "x", "y", "t", "x_rate", "y_rate", "spread"]


def test_the_layout_of_positions_has_only_the_needed_columns() -> None:
    cars, positions = predicted_and_positions("USING KALMAN(0.5, 2)")
    (layout,) = layouts_of([cars], [positions], ["."])
    assert (layout.name, layout.keys, layout.values, layout.time) == ("positions", ("Car", "lane"), ("X", "speed"), "T")
    assert (layout.key_types, layout.value_types) == ((pa.string(), pa.int64()), (pa.float64(), pa.float64()))
    assert layout.columns == ["Car", "lane", "X", "speed", "T"]
    reporting = Reporting((25.0, 3.0), 30.0, "KALMAN", 0.5, 2.0)
    assert layout.prediction == PredictionColumns((25.0, 3.0), (10.0, None), 30.0, reporting=reporting)
    assert (layout.lateness, layout.space, layout.derivation) == (5.0, None, None)


@pytest.mark.parametrize(("clauses", "lateness"), [("WATERMARK 9", 9.0), ("WATERMARK 1", 5.0)])
def test_the_longer_watermark_is_used(clauses: str, lateness: float) -> None:
    cars, positions = predicted_and_positions(clauses)
    (layout,) = layouts_of([cars], [positions], ["."])
    assert layout.lateness == lateness
    assert layout.prediction.reporting == Reporting((25.0, 3.0), 30.0)


def test_a_dataframe_bound_to_a_predicted_stream_holds_predictions() -> None:
    """They are not derived from positions."""
    catalog = declared(WORKBOOK.format(clauses=""))
    schema = StructType().add("car", "string").add("lane", "integer").add("x", "double").add("speed", "double")
    schema = schema.add("t", "double").add("x_rate", "double").add("speed_rate", "double")
    cars = read_from(catalog, "cars", schema)
    (layout,) = layouts_of([cars], [cars], ["."])
    assert (layout.name, layout.prediction.rates) == ("cars", ("x_rate", "speed_rate"))
    assert layout.prediction.reporting is None


def test_the_streams_of_a_query_must_have_the_same_time_type() -> None:
    """The times of a derived stream are those of its source."""
    streams = (
        "CREATE STREAM positions KEY (car) VALUE (x) TIME t DOUBLE;"
        "CREATE STREAM cars KEY (car) VALUE (x) TIME t ERROR 1 PERIOD 9 PREDICTED FROM positions;"
        "CREATE STREAM buses KEY (bus) VALUE (x) TIME t TIMESTAMP MODEL PREDICTED ERROR 1 PERIOD 9;"
    )
    query = "CREATE QUERY q AS MONITOR a, b FROM cars AS a, buses AS b WHERE ABS(a.x - b.x) < 5;"
    (finding,) = declare(parse(streams + query), Catalog())
    assert finding.message == (
        "the streams of one query have different time types (cars has DOUBLE, buses has TIMESTAMP)"
    )


# ---------------------------------------------------------------- inputs


def test_the_error_names_each_missing_column() -> None:
    catalog = declared(WORKBOOK.format(clauses=""))
    schema = StructType().add("bus", "string").add("x", "double").add("y", "integer").add("t", "double")
    with pytest.raises(WorkbookError) as caught:
        read_from(catalog, "buses", schema.add("y_rate", "double"))
    assert [finding.message for finding in caught.value.findings] == [
        "the input of buses has no column x_rate",
        "the input of buses has no column spread",
    ]


def test_the_error_for_a_file_without_rates_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "buses.csv").write_text("bus,x,y,t,y_rate,spread\na,1,2,3,0,1\n")
    session = Session(spark)
    session.execute(WORKBOOK.format(clauses=""))
    session.bind("buses", tmp_path / "buses.csv")
    with pytest.raises(
        WorkbookError, match=r"^<workbook>:5:1: 'buses.csv' has no column x_rate; did you mean y_rate\?$"
    ):
        session.validate("buses")


def test_the_positions_are_validated_and_predictions_have_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "book.abq").write_text(WORKBOOK.format(clauses=""))
    session = Session(spark)
    session.execute_file(str(tmp_path / "book.abq"))
    rows = [(1, "a", 1.0, "n", 0.5, 1.0, None), (1, "a", None, "n", 0.5, 1.0, 2), (1, None, 1.0, None, 0.5, 1.0, 2)]
    session.bind("positions", spark.createDataFrame(rows, POSITIONS))
    reasons = sorted(row.reason for row in session.validate("cars").collect())
    assert reasons == ["Car is NULL", "speed is NULL"]
    with pytest.raises(AnabranchError, match="cars is predicted, so it has no input; Session.rows derives its rows"):
        session.checked_rows("cars")


def test_redeclared_positions_must_still_have_the_needed_columns(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(WORKBOOK.format(clauses=""))
    session.execute("CREATE OR REPLACE STREAM positions KEY (car, lane) VALUE (speed) TIME t;")
    with pytest.raises(WorkbookError, match="there is no column 'x' in VALUE of positions"):
        session.validate("cars")
