"""The buildings, the queries and the sessions of the quality benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from anabranch.session import Session
from anabranch.simulate import rfid
from benchmarks.harness import Options

MODELS = {"building": "knows the building", "habits": "knows the habits, too", "heading": "knows the heading, too"}
QUERIES = {"coffee": "coffee", "laptop_left": "laptop left", "meeting": "meeting", "stayed": "stayed 5 s"}

#: How each method is written in the workbook.
METHODS = {
    "FILTER": "FILTER PRUNE 1e-6",
    "PARTICLE": "PARTICLE(200) PRUNE 1e-6",
    "MLE": "MLE",
    "SMOOTH": "SMOOTH PRUNE 1e-6",
    "MARGINALS": "MARGINALS PRUNE 1e-6",
    "VITERBI": "VITERBI",
}

INPUTS = """\
CREATE RELATION person (tag) FROM 'person.csv';
CREATE RELATION laptop (tag) FROM 'laptop.csv';
CREATE RELATION office (tag, location) FROM 'office.csv';
CREATE RELATION meets_in (tag, location) FROM 'meets_in.csv';
CREATE RELATION coffee_room (location) FROM 'coffee_room.csv';
CREATE RELATION corridor (location) FROM 'corridor.csv';
CREATE STREAM readings KEY (tag) VALUE (reader) TIME t FROM 'readings.parquet';
CREATE STREAM at KEY (tag) VALUE (location) TIME t
  INFERRED FROM readings USING HMM '{model}/' METHOD {method};
"""

DETECTIONS = """\
CREATE QUERY coffee AS
  PATTERN at(x, l1) THEN at(x, l2) THEN at(x, l3)
  WHERE person(x) AND NOT coffee_room(l1) AND NOT coffee_room(l2) AND coffee_room(l3)
  GROUP BY x THRESHOLD 0.001;
CREATE QUERY laptop_left AS
  PATTERN at(x, l1) THEN at(x, l2)
  WHERE laptop(x) AND office(x, l1) AND corridor(l2)
  GROUP BY x THRESHOLD 0.001;
CREATE QUERY meeting AS
  PATTERN at(x, l1) THEN at(x, l2)
  WHERE person(x) AND NOT meets_in(x, l1) AND meets_in(x, l2)
  GROUP BY x THRESHOLD 0.001;
"""


def stayed(name: str, seconds: int) -> str:
    """Return the query whether somebody has been in their own office for some seconds."""
    goals = [f"at(x, l{n})" for n in range(1, seconds + 1)]
    conditions = ["person(x)", *(f"office(x, l{n})" for n in range(1, seconds + 1))]
    pattern, where = " THEN ".join(goals), " AND ".join(conditions)
    return f"CREATE QUERY {name} AS PATTERN {pattern} WHERE {where} GROUP BY x THRESHOLD 0.001;\n"


@dataclass(frozen=True, slots=True)
class Scenario:
    """The methods that are compared, and their deterministic baseline."""

    name: str
    title: str
    methods: tuple[str, str]
    baseline: str


REAL_TIME = Scenario("realtime", "Real time: probabilities against MLE", ("FILTER", "PARTICLE"), "MLE")
ARCHIVED = Scenario("archived", "Archive: probabilities against VITERBI", ("SMOOTH", "MARGINALS"), "VITERBI")


def simulate_round(options: Options, number: int) -> rfid.Rfid:
    """Simulate the people of one round, with their laptops."""
    people, minutes = (4, 15) if options.quick else (30, 60)
    return rfid.simulate(rfid.Options(people=people, objects=1, minutes=minutes), options.seed + number)


def open_session(spark: SparkSession, folder: Path, model: str, method: str, queries: str) -> Session:
    """Return a session with the queries, over a stream that is inferred by a model and a method."""
    workbook = folder / "quality.abq"
    workbook.write_text(INPUTS.format(model=model, method=METHODS[method]) + queries, encoding="utf-8")
    session = Session(spark)
    session.execute_file(str(workbook))
    return session
