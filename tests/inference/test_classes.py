"""One model for each class of keys: answers against the enumeration of all paths, each key with its own model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.errors import DataError, WorkbookError
from anabranch.inference.classes import KeyClasses, class_folder, read_classes
from anabranch.inference.history import split_history
from anabranch.inference.hmm import Gaussians, Hmm
from anabranch.inference.infer import Inference
from anabranch.inference.model import write_hmm
from anabranch.inference.stream import OTHER_CLASS, UNKNOWN_CLASS, UNKNOWN_READER, InferredFrom
from anabranch.language.parser import parse
from anabranch.pattern.job import PatternJob
from anabranch.planning.inferred import inference_of
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext
from tests.inference.models import Dense, models, random_model
from tests.inference.test_joint import units_of, visible
from tests.local import FINGERPRINT, bound_query, make_job, prepared_query
from tests.oracles import inferred as oracle
from tests.pattern.local import LocalRun
from tests.splits import splits

WORKBOOK = """
CREATE STREAM readings KEY ({keys}) VALUE ({values}) TIME t INTEGER;
CREATE STREAM at KEY ({keys}) VALUE (room STRING) TIME t INTEGER
  INFERRED FROM readings USING HMM 'model/' BY {by} METHOD {method};
CREATE QUERY q AS PATTERN {query};
"""

QUERIES = (
    "at(x, 'x0') THEN at(x, r) WHERE r <> 'x0' GROUP BY x",
    "at('a', 'x0') THEN at('b', 'x1')",
    "at(x, l) THEN at(x, m) GROUP BY x, l, m",
)

CLASSES = ("cart", "staff")


def workbook(query: str, method: str = "JOINT", by: str = "kind", keys: str = "tag STRING", extra: str = "") -> str:
    in_key = "kind" in keys
    values = f"reader STRING{'' if in_key else ', kind STRING'}{extra}"
    return WORKBOOK.format(query=query, method=method, by=by, keys=keys, values=values)


def job_of(
    text: str, of_class: Sequence[Hmm], lag: int = 0, expire: int | None = None, names: tuple[str, ...] = CLASSES
) -> PatternJob:
    """The job of a query over a stream whose keys have one of these models."""
    catalog = Catalog()
    assert not declare(parse(text), catalog)
    at = catalog.stream("at")
    (layout,) = layouts_for([catalog.stream("readings")])
    inferences = tuple(Inference(hmm, at.source.method, lag=lag) for hmm in of_class)
    classes = KeyClasses("kind", names, 1, in_key=False)
    derivation = InferredFrom(inferences, layout.value_types[0], 1.0, expire=expire, classes=classes)
    return make_job(
        [bound_query(text, "q")], JobContext((replace(layout, derivation=derivation),), {}, FINGERPRINT, True)
    )


def used_rows(rows: Sequence[dict[str, Any]], of_class: Sequence[Dense]) -> dict[str, list[dict[str, Any]]]:
    """By the definition: the rows of each class that count, where a key has the class of its first reading."""
    by_class: dict[str, list[dict[str, Any]]] = {name: [] for name in CLASSES}
    for key in {row["tag"] for row in rows}:
        known = [row for row in rows if row["tag"] == key and row["kind"] in CLASSES]
        if known:
            name = min(known, key=lambda row: (row["t"], row["kind"]))["kind"]
            n_readers = len(of_class[CLASSES.index(name)].sensors)
            readers = {None, *(f"r{code}" for code in range(n_readers))}
            by_class[name] += [row for row in known if row["kind"] == name and row["reader"] in readers]
    return by_class


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Dense], list[dict[str, Any]]]:
    """Two models, and readings of three keys whose classes may be unknown, or change."""
    of_class = [draw(models()), draw(models())]
    readers = st.sampled_from([None, "r0", "r1", "r2"])
    kinds = st.sampled_from([*CLASSES, *CLASSES, "visitor", None])
    of_key = {key: draw(kinds) for key in "abc"}

    def row_of(tag: str, reader: str | None, t: int, kind: str | None, number: int) -> dict[str, Any]:
        return {"tag": tag, "reader": reader, "t": t, "kind": of_key[tag] if number else kind}

    row = st.builds(row_of, st.sampled_from("abc"), readers, st.integers(0, 3), kinds, st.integers(0, 5))
    return of_class, draw(st.lists(row, min_size=1, max_size=6, unique_by=lambda row: tuple(row.values())))


@pytest.mark.parametrize("query", QUERIES)
@given(data=st.data())
def test_each_key_is_inferred_by_the_model_of_its_class(query: str, data: st.DataObject) -> None:
    of_class, rows = data.draw(situations())
    method = data.draw(st.sampled_from(["JOINT", "LAG", "SMOOTH"]))
    lag = data.draw(st.integers(1, 2)) if method == "LAG" else 0
    expire = data.draw(st.sampled_from([None, 1, 2]))
    by_class = used_rows(rows, of_class)
    # Every key continues to the newest row of any key, also of one that is not used.
    last = max(row["t"] for row in rows)
    units = [
        unit
        for name, model in zip(CLASSES, of_class, strict=True)
        for unit in units_of(model, by_class[name], np.inf if expire is None else expire, last)
    ]
    text = workbook(query, f"LAG {lag}" if lag else method)
    expected = oracle.answers(bound_query(text, "q"), units, 99 if method == "SMOOTH" else lag)
    whole = [{"readings": rows}]
    for parts in (whole, whole if method == "SMOOTH" else data.draw(splits({"readings": rows}))):
        run = LocalRun(job_of(text, [model.hmm() for model in of_class], lag, expire))
        for part in parts[:-1]:
            run.step(part)
        run.step(parts[-1], end=True)
        assert visible(run.answers()) == pytest.approx(visible(expected), abs=1e-9)
        assert run.counts.read == run.counts.used + run.counts.duplicate + run.counts.quarantined


def test_rows_of_a_wrong_class_are_quarantined_with_the_reason() -> None:
    of_class = [random_model(2, 1, seed=1).hmm(), random_model(3, 2, seed=2).hmm()]
    rows = [
        {"tag": "a", "reader": "r0", "kind": "cart", "t": 0},
        {"tag": "a", "reader": "r0", "kind": "staff", "t": 1},
        {"tag": "a", "reader": "r1", "kind": "cart", "t": 1},
        {"tag": "b", "reader": "r1", "kind": "staff", "t": 1},
        {"tag": "c", "reader": "r0", "kind": "visitor", "t": 1},
        {"tag": "d", "reader": "r0", "kind": None, "t": 1},
    ]
    run = LocalRun(job_of(workbook(QUERIES[0], "FILTER"), of_class), 1)
    run.step({"readings": rows}, end=True)
    reasons = [reason for outcome in run.outcomes for reason in outcome.rejected["reason"].to_pylist()]
    assert sorted(reasons) == sorted([OTHER_CLASS, UNKNOWN_READER, UNKNOWN_CLASS, UNKNOWN_CLASS])
    assert (run.counts.used, run.counts.quarantined) == (2, 4)


@pytest.mark.parametrize("method", ["JOINT", "SMOOTH", "FILTER"])
def test_the_models_of_some_classes_may_have_stages(method: str) -> None:
    """Each key has the answers that it has if there is only the model of its class."""
    of_class = [
        random_model(3, 2, seed=6).hmm(),
        replace(random_model(2, 2, seed=7).hmm(), stages=np.array([3, 2], np.int32)),
    ]
    seen = [("a", "cart", 0, 0), ("b", "staff", 0, 1), ("a", "cart", 2, 1), ("b", "staff", 4, 0), ("a", "cart", 4, 0)]
    rows = [{"tag": tag, "reader": f"r{code}", "kind": kind, "t": t} for tag, kind, t, code in seen]
    text = workbook(QUERIES[0], method)
    run = LocalRun(job_of(text, of_class), 1)
    run.step({"readings": rows}, end=True)
    alone: dict[tuple, float] = {}
    for name, hmm in zip(CLASSES, of_class, strict=True):
        of_one = LocalRun(job_of(text, [hmm], names=(name,)), 1)
        of_one.step({"readings": [row for row in rows if row["kind"] == name]}, end=True)
        alone |= of_one.answers()
    assert {key for _, key in alone} == {"a", "b"}
    assert run.answers() == pytest.approx(alone, abs=1e-12)


# ---------------------------------------------------------------- folders


def with_measure(hmm: Hmm, names: tuple[str, ...], mean: float) -> Hmm:
    shape = (len(names), len(hmm.reader_p))
    return replace(
        hmm, gaussians=Gaussians(names, np.full(shape, mean) + np.arange(len(names))[:, None], np.ones(shape))
    )


def derivation_of(text: str, folder: Path) -> InferredFrom:
    catalog = Catalog()
    assert not declare(parse(text), catalog)
    at = catalog.stream("at")
    return inference_of(at, at.source, layouts_for([catalog.stream("readings")])[0], str(folder))


def test_a_folder_has_a_model_for_each_class(tmp_path: Path) -> None:
    for seed, name in enumerate(["a/b", "staff", ""]):
        write_hmm(random_model(2, 2, seed).hmm(), class_folder(tmp_path / "model", "kind", name))
    assert list(read_classes(tmp_path / "model", "KIND", "room", "reader")) == ["", "a/b", "staff"]
    derivation = derivation_of(workbook(QUERIES[0]), tmp_path)
    assert (derivation.classes.names, derivation.classes.position) == (("", "a/b", "staff"), 1)
    identity = derivation.identity()
    assert identity["by"] == "kind"
    assert len(set(identity["model"].values())) == 3


def test_the_class_may_be_a_part_of_the_key(tmp_path: Path) -> None:
    """The same answers as with the class as a value; a key of an unknown class is quarantined."""
    of_class = [random_model(2, 2, seed=3), random_model(3, 2, seed=4)]
    for name, model in zip(CLASSES, of_class, strict=True):
        write_hmm(model.hmm(), class_folder(tmp_path / "model", "kind", name))
    rows = [
        {"tag": tag, "reader": f"r{code}", "kind": kind, "t": t}
        for tag, kind, t, code in [
            ("a", "cart", 0, 0),
            ("b", "staff", 1, 1),
            ("c", "visitor", 1, 0),
            ("a", "cart", 3, 1),
        ]
    ]
    found = []
    for keys in ("tag STRING, kind STRING", "tag STRING"):
        terms = "x, k" if "kind" in keys else "x"
        text = workbook(f"at({terms}, 'x0') THEN at({terms}, r) WHERE r <> 'x0' GROUP BY x", keys=keys)
        catalog = Catalog()
        assert not declare(parse(text), catalog)
        (layout,) = layouts_for([catalog.stream("readings")])
        layout = replace(layout, derivation=derivation_of(text, tmp_path))
        run = LocalRun(make_job([bound_query(text, "q")], JobContext((layout,), {}, FINGERPRINT, True)), 1)
        run.step({"readings": rows[:2]})
        run.step({"readings": rows[2:]}, end=True)
        assert [r for o in run.outcomes for r in o.rejected["reason"].to_pylist()] == [UNKNOWN_CLASS]
        found.append(run.answers())
    assert found[0] == pytest.approx(found[1], abs=1e-12)
    assert {key for _, key in found[0]} == {"a", "b"}


def test_the_quantities_of_classes_may_be_listed_in_any_order(tmp_path: Path) -> None:
    hmm = random_model(2, 2, seed=5).hmm()
    write_hmm(with_measure(hmm, ("rssi", "phase"), 1.0), class_folder(tmp_path / "model", "kind", "cart"))
    write_hmm(with_measure(hmm, ("phase", "rssi"), 1.0), class_folder(tmp_path / "model", "kind", "staff"))
    text = workbook(QUERIES[0], extra=", rssi DOUBLE, phase DOUBLE")
    derivation = derivation_of(text, tmp_path)
    assert derivation.quantities == (2, 3)
    means = [inference.hmm.gaussians.mean[:, 0].tolist() for inference in derivation.inferences]
    assert means == [[1.0, 2.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("", "model: there is no folder kind=..., with the model of a class; fit it with --by kind"),
        (", rssi DOUBLE", "the model of kind = cart has no distribution of rssi, a VALUE column of readings"),
    ],
)
def test_a_wrong_folder_is_reported(extra: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    if extra:
        write_hmm(random_model(2, 2, seed=1).hmm(), class_folder(tmp_path / "model", "kind", "cart"))
    with pytest.raises(WorkbookError, match=message.replace("...", r"\.\.\.")):
        derivation_of(workbook(QUERIES[0], extra=extra), tmp_path)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("reader", "'reader' is the reader, which differs from reading to reading; a key has one class"),
        ("colour", "there is no column 'colour' in KEY and VALUE of readings"),
    ],
)
def test_a_column_that_is_no_class_is_refused(by: str, message: str) -> None:
    findings = declare(parse(workbook(QUERIES[0], by=by)), Catalog())
    assert any(message in finding.message.replace("`", "'") for finding in findings), findings


def test_explain_says_that_classes_have_models() -> None:
    plan = str(prepared_query(workbook(QUERIES[0], "LAG 3"), "q").plan)
    assert "LAG 3 with a model for each kind" in plan


# ---------------------------------------------------------------- history


def test_a_history_is_divided_by_class() -> None:
    truth = pa.table({"who": ["a", "b", "c", "a"], "room": ["x", "y", "x", "x"], "t": [0, 0, 0, 1]})
    readings = pa.table({"tag": ["b", "a", "b"], "reader": ["r", "s", "s"], "t": [0, 0, 1]})
    parts = split_history([truth], readings, 1, [pa.chunked_array([["staff", "cart", None]])])
    assert list(parts) == ["cart", "staff"]
    (known,), read = parts["cart"]
    assert (known["t"].to_pylist(), read["reader"].to_pylist()) == ([0, 1], ["s"])
    assert parts["staff"][1]["t"].to_pylist() == [0, 1]
    with pytest.raises(DataError, match="b has the classes cart and staff; a key has one class"):
        split_history([truth], readings, 1, [pa.chunked_array([["staff", "cart", "cart"]])])
    with pytest.raises(DataError, match="no reading has a class"):
        split_history([], readings, 1, [pa.chunked_array([pa.nulls(3, pa.string())])])
