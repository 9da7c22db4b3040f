"""A stream of events with an id and a kind on a line, and queries on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from tests.cases import Case
from tests.constrain.local import ConstrainRun, truth_of
from tests.local import FINGERPRINT, declared, make_job
from tests.oracles.events import frozen
from tests.splits import disordered_splits

from anabranch.binding.binder import bind
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext

STREAM = "CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t INTEGER SPACE (x, y) WATERMARK 2;"

#: With EMIT EARLY or without it.
PAIR = "u, v FROM e WHERE u.kind = 'A' AND DISTANCE(u, v) <= 2 AND v.t - u.t IN [0, 3]{early}"


def at(id_: str, t: int, kind: str, x: float | None = 0.0) -> dict[str, Any]:
    return {"id": id_, "kind": kind, "t": t, "x": x, "y": 0.0}


def query(text: str) -> str:
    return f"{STREAM} CREATE QUERY q AS CONSTRAIN {text};"


def rows_of_events(most: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    """At most this many events of a few ids, kinds and locations."""
    ids, kinds = st.sampled_from("abc"), st.sampled_from("ABC")
    return st.lists(st.builds(at, ids, st.integers(0, 20), kinds, st.integers(0, 4).map(float)), max_size=most)


def group(texts: Sequence[str], live: bool) -> Any:
    """The job of several queries in one pass."""
    catalog = declared(STREAM + "".join(f"CREATE QUERY q{n} AS CONSTRAIN {text};" for n, text in enumerate(texts)))
    bound = [bind(query, catalog) for query in catalog.queries()]
    return make_job(bound, JobContext(layouts_for(bound[0].streams), {}, FINGERPRINT, live=live))


def assert_same_as_alone(data: st.DataObject, rows: list[dict[str, Any]], texts: Sequence[str], early: str) -> None:
    """Check that queries in one pass over any split of the rows have the answers of the oracle."""
    texts = [text.format(early=early) for text in texts]
    batches = data.draw(disordered_splits({"e": rows}, 2))
    together = ConstrainRun(group(texts, live=True), data.draw(st.sampled_from([1, 7])))
    together.run(batches)
    for number, text in enumerate(texts):
        case = Case(query(text), "q", {"e": rows})
        assert Counter(map(frozen, together.answers(number))) == truth_of(case)
