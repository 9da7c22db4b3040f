"""Queries that are added to a group and removed from it between any two micro-batches.

A query that is never removed gives the answers of the oracle over the events it sees: those newer than every row that
was read before it was added. The others go on as if nothing had happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cold import few_are_hot
from tests.constrain.local import ConstrainRun
from tests.drawn import examples
from tests.local import FINGERPRINT, bound_query, declared, make_job
from tests.oracles import constrain, sequence
from tests.oracles.events import frozen
from tests.sequence.local import SequenceRun
from tests.splits import Draw, Rows, disordered_splits

from anabranch.binding.binder import bind
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext

#: The allowance of the streams.
DELAY = 3


@dataclass(frozen=True)
class Kind:
    """Queries of one kind over the same streams, and how they are run and enumerated."""

    name: str
    run: type[ConstrainRun] | type[SequenceRun]
    enumerate: Callable[..., Sequence[dict[str, Any]]]
    streams: str
    texts: tuple[str, ...]

    def query(self, text: str) -> str:
        """The declaration of a query; its name is part of its identity."""
        return f"CREATE QUERY q{self.texts.index(text)} AS {self.name} {text};"

    def job(self, texts: Sequence[str]) -> Any:
        """The job of a group."""
        catalog = declared(self.streams + "".join(map(self.query, texts)))
        bound = [bind(catalog.query(f"q{self.texts.index(text)}"), catalog) for text in texts]
        ids = tuple(sha256(text.encode()).hexdigest()[:16] for text in texts)
        streams = sorted(bound[0].streams, key=lambda stream: stream.name)
        return make_job(
            bound, JobContext(layouts_for(streams), {}, FINGERPRINT, True, (".",) * len(texts), queries=ids)
        )

    def truth(self, text: str, rows: Rows) -> Counter:
        """The answers of the oracle over rows."""
        bound = bound_query(self.streams + self.query(text), f"q{self.texts.index(text)}")
        return Counter(map(rounded, self.enumerate(bound, rows, {})))


CONSTRAIN = Kind(
    "CONSTRAIN",
    ConstrainRun,
    constrain.solutions,
    f"""
    CREATE STREAM e KEY (id STRING) VALUE (kind STRING, temp INTEGER) TIME t INTEGER SPACE (x, y) WATERMARK {DELAY};
    CREATE STREAM f KEY (id STRING) VALUE (kind STRING, temp INTEGER) TIME t INTEGER SPACE (x, y) WATERMARK {DELAY};
    """,
    (
        "u, v FROM e AS u, f AS v WHERE u.kind = 'A' AND DISTANCE(u, v) <= 2 AND v.t - u.t IN [0, 3]",
        "u, v, w FROM f AS u, e AS v, e AS w WHERE u.id = v.id AND v.id = w.id AND u.t < v.t AND v.t < w.t AND "
        "w.t - u.t <= 6",
        "v*2, u FROM e AS v, f AS u WHERE SPAN(v, v) <= 1 AND SPAN(v, u) <= 2 STRATEGY LOOSE",
        "u, v FROM e AS u, f AS v WHERE SPAN(u, v) <= 2 AND u.kind = 'B' AND v.kind = 'A' EMIT EARLY",
        "u, NOT v FROM e AS u, f AS v WHERE u.kind = 'C' AND DISTANCE(u, v) <= 3 AND v.t - u.t IN [-2, 4]",
        "u, v, NOT w FROM f AS u, f AS v, e AS w WHERE u.t < v.t AND SPAN(u, v) <= 3 AND w.t - u.t IN [0, 9] AND "
        "u.id = w.id",
    ),
)
SEQUENCE = Kind(
    "SEQUENCE",
    SequenceRun,
    sequence.matches,
    CONSTRAIN.streams,
    (
        "(x, z) FROM e AS x, f AS z WHERE x.kind = 'A' AND z.kind = 'B' WITHIN 4",
        "(x, !y, z) FROM f AS x, e AS y, e AS z WHERE x.id = y.id AND y.id = z.id AND x.kind = 'A' AND y.kind = 'B' "
        "AND z.kind = 'C' MISS y 0.2 DELAY x UNIFORM(0, 4), y EXPONENTIAL(3) WITHIN 6",
        "(x, z) FROM e AS x, f AS z WHERE x.kind = 'B' AND z.kind = 'C' AND x.id = z.id EMIT NEXT WITHIN 5",
        "(x, !y) FROM f AS x, e AS y WHERE x.kind = 'C' AND y.kind = 'A' AND x.id = y.id WITHIN 3 ENDING OPEN",
        "(x, z) FROM f AS x, e AS z WHERE x.temp > 0 AND z.temp < 2 EMIT EXPIRED WITHIN 2",
    ),
)
KINDS = (CONSTRAIN, SEQUENCE)


def rounded(answer: dict[str, Any]) -> Any:
    """An answer that can be counted."""
    return frozen({**answer, "probability": round(answer.get("probability", 1.0), 9)})


def rows_of_a_stream() -> st.SearchStrategy[list]:
    return st.lists(
        st.fixed_dictionaries(
            {
                "id": st.sampled_from("ab"),
                "kind": st.sampled_from(["A", "B", "C"]),
                "temp": st.sampled_from([0, 1, 2, None]),
                "t": st.integers(0, 20),
                "x": st.integers(0, 4).map(float),
                "y": st.just(0.0),
            }
        ),
        max_size=12,
    )


ROWS = st.fixed_dictionaries({"e": rows_of_a_stream(), "f": rows_of_a_stream()})


@dataclass(eq=False)
class Life:
    """A query from the micro-batch in which it was added to the one before which it was removed."""

    text: str
    after: float
    answers: Counter = field(default_factory=Counter)


def lives_of(
    kind: Kind, batches: Sequence[Rows], groups: Sequence[Sequence[str]], n_buckets: int
) -> tuple[list[Life], list[Life]]:
    """Run each micro-batch, and the end of the input, with its own group; returns all lives, and those at the end."""
    run = kind.run(kind.job(groups[0]), n_buckets)
    lives: list[Life] = []
    current: dict[str, Life] = {}
    newest = float("-inf")
    for number, group in enumerate(groups):
        current = {text: current.get(text) or Life(text, newest) for text in group}
        lives += [life for life in current.values() if life not in lives]
        run.job, run.outcomes = kind.job(group), []
        is_last = number == len(batches)
        run.step({} if is_last else batches[number], end=is_last)
        for index, text in enumerate(group):
            current[text].answers.update(map(rounded, run.answers(index)))
        if not is_last:
            newest = max([newest, *(row["t"] for rows in batches[number].values() for row in rows)])
    counts = run.counts
    assert counts.read == counts.used + counts.duplicate + counts.late + counts.quarantined
    assert counts.late == 0
    return lives, list(current.values())


@st.composite
def changing_groups(draw: Draw, kind: Kind, count: int) -> list[list[str]]:
    """Groups in any order, each with up to two queries added or removed."""
    a_query = st.sampled_from(kind.texts)
    group = draw(st.sets(a_query, min_size=1))
    groups = []
    for _ in range(count):
        group = group ^ draw(st.sets(a_query, max_size=2)) or group
        groups.append(draw(st.permutations(sorted(group))))
    return groups


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@examples(30)
@given(st.data(), ROWS, st.sampled_from([1, 2, 7]))
def test_each_query_answers_about_the_events_after_it_was_added(
    kind: Kind, data: st.DataObject, rows: Rows, n_buckets: int
) -> None:
    batches = data.draw(disordered_splits(rows, DELAY))
    with few_are_hot() if data.draw(st.booleans()) else nullcontext():
        lives, last = lives_of(kind, batches, data.draw(changing_groups(kind, len(batches) + 1)), n_buckets)
    for life in lives:
        seen = {name: [row for row in part if row["t"] > life.after] for name, part in rows.items()}
        truth = kind.truth(life.text, seen)
        event(f"{'some' if truth else 'no'} answers, {'at the end' if life in last else 'removed'}")
        assert life.answers == truth if life in last else life.answers <= truth
