"""Validation of inputs of each model: it rejects the same rows as a run."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local import local_job
from tests.pattern.local import LocalRun
from tests.transport.layouts import table_of

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog, Model
from anabranch.language.parser import parse
from anabranch.pattern import kernel
from anabranch.planning.layouts import layouts_for
from anabranch.runtime.validation import validate
from anabranch.transport.checks import TOLERANCE

NAN, INF = float("nan"), float("inf")


def found(declaration: str, rows: list[dict]) -> list[tuple[str, dict]]:
    catalog = Catalog()
    assert not declare(parse(f"CREATE STREAM s {declaration};"), catalog)
    stream = catalog.stream("s")
    (layout,) = layouts_for([stream])
    rejected = validate(table_of(layout, rows), layout).to_pylist()
    return [(row["reason"], json.loads(row["row"])) for row in rejected]


@pytest.mark.parametrize(
    ("declaration", "good", "bad"),
    [
        (
            "KEY (k STRING) VALUE (v STRING) TIME t INTEGER",
            [{"k": "a", "v": "x", "t": 1}, {"k": "a", "v": None, "t": 1}],
            [({"k": None, "v": "x", "t": 1}, "k is NULL"), ({"k": "a", "v": "x", "t": None}, "t is NULL")],
        ),
        (
            "KEY (k STRING) VALUE (v STRING) TIME t DOUBLE MODEL INDEPENDENT",
            [{"k": "a", "v": "x", "t": 1.0, "p": 0.5}, {"k": "a", "v": "y", "t": 1.0, "p": 0.5}],
            [
                ({"k": "b", "v": "x", "t": INF, "p": 0.5}, "t is not a finite number"),
                ({"k": "b", "v": "x", "t": 1.0, "p": NAN}, "p is not a number"),
                ({"k": "b", "v": "x", "t": 1.0, "p": -0.1}, "p is outside [0, 1]"),
                ({"k": "b", "v": "x", "t": 1.0, "p": None}, "p is NULL"),
            ],
        ),
        (
            "KEY (k STRING) TIME t DOUBLE ORDER seq MODEL INTERVALS",
            [{"k": "a", "t": None, "seq": 2}, {"k": "a", "t": 1.0, "seq": 1}, {"k": "a", "t": 1.5, "seq": 4}],
            [
                ({"k": "b", "t": 1.0, "seq": None}, "seq is not a position: it must be 1 or more"),
                ({"k": "b", "t": 1.0, "seq": 0}, "seq is not a position: it must be 1 or more"),
                ({"k": "c", "t": 1.0, "seq": 1}, "the times of its entity do not increase with the position"),
                ({"k": "c", "t": None, "seq": 2}, "the times of its entity do not increase with the position"),
                ({"k": "c", "t": 1.0, "seq": 4}, "the times of its entity do not increase with the position"),
            ],
        ),
        (
            "KEY (k STRING) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR 1 PERIOD 5",
            [{"k": "a", "x": 1.0, "x_rate": 0.0, "t": 1}],
            [
                ({"k": "a", "x": NAN, "x_rate": 0.0, "t": 1}, "x is not a finite number"),
                ({"k": "a", "x": 1.0, "x_rate": None, "t": 1}, "x_rate is NULL"),
            ],
        ),
        (
            "KEY (k STRING) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR spread PERIOD 5",
            [{"k": "a", "x": 1.0, "x_rate": 0.0, "t": 1, "spread": 0.0}],
            [
                ({"k": "a", "x": 1.0, "x_rate": 0.0, "t": 1, "spread": None}, "spread is NULL"),
                ({"k": "a", "x": 1.0, "x_rate": 0.0, "t": 1, "spread": -1.0}, "spread is negative"),
            ],
        ),
    ],
)
def test_bad_rows_are_found_and_good_ones_are_not(declaration: str, good: list[dict], bad: list[tuple]) -> None:
    assert found(declaration, good) == []
    reasons = [reason for reason, _ in found(declaration, [*good, *(row for row, _ in bad)])]
    assert Counter(reasons) == Counter(reason for _, reason in bad)


def test_the_kernel_and_the_checks_agree_on_the_tolerance() -> None:
    assert kernel.TOLERANCE == TOLERANCE


PROBABILITIES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, -1.0, NAN])


@st.composite
def uncertain_rows(draw: st.DrawFn) -> list[dict]:
    value = st.sampled_from(["a", "b", None])
    row = st.fixed_dictionaries(
        {"k": st.sampled_from(["x", "y"]), "v": value, "prev_v": value, "t": st.integers(1, 2), "p": PROBABILITIES}
    )
    return draw(st.lists(row, max_size=12))


@given(uncertain_rows(), st.sampled_from([Model.INDEPENDENT, Model.MARKOV]))
def test_an_input_by_itself_is_judged_as_a_run_judges_it(rows: list[dict], model: Model) -> None:
    declaration = f"KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL {model.value}"
    job = local_job(f"CREATE STREAM s {declaration}; CREATE QUERY q AS PATTERN s(p, 'a') GROUP BY p;", "q")
    run = LocalRun(job)
    run.step({"s": rows}, end=True)
    assert run.counts.quarantined == len(found(declaration, rows))
