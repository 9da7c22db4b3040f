"""Queries in a group give the same answers as alone."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.constrain.local import ConstrainRun
from tests.drawn import examples
from tests.local import FINGERPRINT, declared, make_job
from tests.oracles.events import frozen

from anabranch.binding.binder import bind
from anabranch.constrain.job import ConstrainJob
from anabranch.planning.layouts import layouts_for
from anabranch.planning.planner import Planner
from anabranch.transport.job import JobContext

STREAMS = """
    CREATE STREAM e KEY (id STRING) VALUE (kind STRING, temp INTEGER) TIME t INTEGER SPACE (x, y);
    CREATE STREAM f KEY (id STRING) TIME t INTEGER;
"""

#: Queries that are routed by location, by equal columns, by time, and to one bucket; with different strategies.
QUERY_TEXTS = (
    "u, v FROM e WHERE u.kind = 'A' AND DISTANCE(u, v) <= 2 AND v.t - u.t IN [0, 3]",
    "u, v, w FROM e WHERE u.id = v.id AND v.id = w.id AND u.t < v.t AND v.t < w.t AND w.t - u.t <= 6",
    "v*2 FROM e WHERE SPAN(v, v) <= 1 AND v.temp <> v.temp",
    "u, v FROM e WHERE u.kind = 'A' AND u.temp < v.temp AND v.kind = 'B' STRATEGY LOOSE",
    "u FROM e WHERE u.kind = 'C' AND u.temp > 1",
    "v*3 FROM e WHERE DISTANCE(v, v) <= 3 AND SPAN(v, v) <= 4 AND v.kind = 'A'",
)

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from("abc"),
            "kind": st.sampled_from(["A", "B", "C", None]),
            "temp": st.sampled_from([0, 1, 2, None]),
            "t": st.integers(0, 20),
            "x": st.integers(0, 8).map(float),
            "y": st.integers(0, 8).map(float),
        }
    ),
    max_size=25,
)


def job_of(queries: list[str]) -> ConstrainJob:
    text = STREAMS + "".join(f"CREATE QUERY q{n} AS CONSTRAIN {query};" for n, query in enumerate(queries))
    catalog = declared(text)
    bounds = [bind(query, catalog) for query in catalog.queries()]
    return make_job(bounds, JobContext(layouts_for(bounds[0].streams), {}, FINGERPRINT))


@examples(25)
@given(ROWS, st.sampled_from([1, 2, 7]))
def test_queries_in_a_group_give_the_same_answers_as_alone(rows: list[dict], n_buckets: int) -> None:
    together = ConstrainRun(job_of(list(QUERY_TEXTS)), n_buckets)
    together.step({"e": rows}, end=True)
    for number, query in enumerate(QUERY_TEXTS):
        alone = ConstrainRun(job_of([query]), n_buckets)
        alone.step({"e": rows}, end=True)
        assert Counter(map(frozen, together.answers(number))) == Counter(map(frozen, alone.answers()))


def test_queries_over_the_same_streams_share_a_pass() -> None:
    catalog = declared(
        STREAMS
        + """
        CREATE QUERY one AS CONSTRAIN u, v FROM e WHERE SPAN(u, v) <= 1;
        CREATE QUERY other AS CONSTRAIN u, v FROM e AS u, f AS v WHERE SPAN(u, v) <= 1;
        CREATE QUERY pattern AS PATTERN f(x) THEN f(y);
        CREATE QUERY two AS CONSTRAIN v*3 FROM e WHERE SPAN(v, v) <= 9;
        """
    )
    groups = Planner(catalog).groups(catalog.queries())
    assert [[query.name for query in group] for group in groups] == [["one", "two"], ["other"], ["pattern"]]
