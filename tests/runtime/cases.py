"""Random PATTERN cases as Spark inputs, the same in every run; batch and streaming are compared with them."""

from __future__ import annotations

from functools import cache

from pyspark.sql import SparkSession
from tests.drawn import drawn
from tests.local import local_job, to_table
from tests.pattern.local import LocalRun
from tests.pattern.strategies import EXTENDED, REGULAR, Case, pattern_cases

from anabranch import Session


@cache
def cases(per_kind: int, watermark: int | None = None) -> list[Case]:
    """The cases with most answers: `per_kind` with two streams, as many with GROUP BY, and as many with neither."""
    candidates = drawn(pattern_cases(classes=(REGULAR, EXTENDED), watermark=watermark), 150)
    answers = {id(case): len(local_run(case).answers()) for case in candidates}
    candidates.sort(key=lambda case: answers[id(case)], reverse=True)
    kinds: dict[tuple[bool, bool], list[Case]] = {}
    for case in candidates:
        kind = (len(case.rows) > 1, len(case.rows) == 1 and "GROUP BY" in case.workbook)
        if answers[id(case)]:
            kinds.setdefault(kind, []).append(case)
    assert len(kinds) == 3
    return [case for chosen in kinds.values() for case in chosen[:per_kind]]


def local_run(case: Case) -> LocalRun:
    """Run the whole case in one step, without Spark."""
    run = LocalRun(local_job(case.workbook, case.query, case.relations))
    run.step(case.rows, end=True)
    return run


def session_of(spark: SparkSession, case: Case) -> Session:
    """A session with the case declared and its relations bound."""
    session = Session(spark)
    session.execute(case.workbook)
    for name, rows in case.relations.items():
        columns = ", ".join(f"{c.name} {c.type.value}" for c in session.catalog.relation(name).columns)
        session.bind(name, spark.createDataFrame(rows, columns))
    return session


def tables_of(case: Case) -> dict:
    """The rows of each stream as an Arrow table."""
    job = local_job(case.workbook, case.query, case.relations)
    return {layout.name: to_table(job, number, case.rows[layout.name]) for number, layout in enumerate(job.layouts)}
