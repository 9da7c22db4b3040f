"""Inferred streams on a worker, and in a query: equal to inference key by key, for any split of the readings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.binding.binder import declare
from anabranch.binding.derived_streams import METHOD_MODELS, WEIGHTED, WHOLE_ARCHIVE
from anabranch.catalog import Catalog
from anabranch.columns.times import TimeKind, order_doubles, step_times, steps_of
from anabranch.errors import WorkbookError
from anabranch.inference.hmm import Entries, Hmm, Sensing, make_hmm
from anabranch.inference.infer import Inference
from anabranch.inference.model import write_hmm
from anabranch.inference.stream import IMPOSSIBLE, UNKNOWN_READER, InferredFrom
from anabranch.language.parser import parse
from anabranch.language.types import Type
from anabranch.pattern.job import PatternJob
from anabranch.planning.inferred import inference_of
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext
from tests.inference.models import packed
from tests.local import FINGERPRINT, bound_query, make_job
from tests.pattern.local import LocalRun

ROOMS = ("hall", "office", "lab")
READERS = ("east", "west")

WORKBOOK = """
CREATE STREAM readings KEY (tag STRING) VALUE (reader STRING) TIME t {time} {watermark};
CREATE STREAM at KEY (tag STRING) VALUE (room STRING) TIME t {time}
  INFERRED FROM readings USING HMM 'model/' METHOD {method} {options};
CREATE STREAM given KEY (tag STRING) VALUE (room STRING) TIME t {time} MODEL {model};
CREATE QUERY q AS PATTERN {stream}(x, 'hall') THEN {stream}(x, r) WHERE r <> 'hall' GROUP BY x;
"""


def building() -> Hmm:
    """Three rooms in a row; the hall is read by both readers, the office by one."""
    moves = Entries.of_dense(np.array([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]]))
    seen = Entries.of_dense(np.array([[0.7, 0.0, 0.0], [0.4, 0.5, 0.0]]))
    return make_hmm(ROOMS, READERS, np.array([0.2, 0.3, 0.5]), moves, Sensing.DETECTION, seen)


def workbook_text(
    stream: str, method: str = "FILTER", time: str = "INTEGER", options: str = "", watermark: str = ""
) -> str:
    written = {"PARTICLE": "PARTICLE(50)", "LAG": "LAG 3"}.get(method, method)
    return WORKBOOK.format(
        stream=stream, method=written, time=time, options=options,
        watermark=watermark, model=METHOD_MODELS[method].value,
    )  # fmt: skip


def inferring_job(text: str, folder: Path, live: bool = False) -> PatternJob:
    """The job of a query over an inferred stream, as the session makes it."""
    catalog = Catalog()
    assert not declare(parse(text), catalog)
    at = catalog.stream("at")
    (layout,) = layouts_for([catalog.stream("readings")])
    layout = replace(layout, derivation=inference_of(at, at.source, layout, str(folder)))
    return make_job([bound_query(text, "q")], JobContext((layout,), {}, FINGERPRINT, live))


def random_readings(seed: int, keys: int = 4, steps: int = 12) -> list[dict]:
    """Tags that start at different steps, and are seen by each reader with probability 0.3."""
    draw = np.random.default_rng(seed)
    rows = []
    for key in range(keys):
        for t in range(int(draw.integers(0, 4)), steps - key):
            rows += [{"tag": f"tag{key}", "reader": r, "t": t} for r in READERS if draw.random() < 0.3]
    return rows


def inferred_rows(readings: list[dict], method: str, hmm: Hmm) -> list[dict]:
    """The rows of the stream, key by key, from the first reading of the key to the last reading of all keys."""
    inference = Inference(hmm, method, 50 if method == "PARTICLE" else 0)
    last = max(row["t"] for row in readings)
    rows = []
    for tag in dict.fromkeys(row["tag"] for row in readings):
        tag_rows = [row for row in readings if row["tag"] == tag]
        first = min(row["t"] for row in tag_rows)
        codes = [[READERS.index(row["reader"]) for row in tag_rows if row["t"] == t] for t in range(first, last + 1)]
        inferred = inference.advance(inference.start(0), *packed(codes))
        columns = (inferred.step, inferred.prev, inferred.location, inferred.p)
        for step, prev, location, p in zip(*columns, strict=True):
            before = {"prev_room": ROOMS[prev] if prev >= 0 else None}
            rows.append({"tag": tag, "room": ROOMS[location], "t": first + int(step), "p": float(p), **before})
    return rows


def answers(job: PatternJob, parts: list[dict[str, list[dict]]]) -> LocalRun:
    run = LocalRun(job, n_buckets=3)
    for part in parts:
        run.step(part)
    run.step({}, end=True)
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model."""
    path = tmp_path_factory.mktemp("inferred")
    write_hmm(building(), path / "model")
    return path


@pytest.mark.parametrize("method", sorted(METHOD_MODELS.keys() - {"PARTICLE", *WEIGHTED}))
def test_a_query_over_an_inferred_stream_equals_one_over_its_rows(method: str, folder: Path) -> None:
    for seed in range(5):
        readings = random_readings(seed)
        run = LocalRun(inferring_job(workbook_text("at", method), folder), n_buckets=3)
        run.step({"readings": readings}, end=True)
        text = workbook_text("given", method)
        query = bound_query(text, "q")
        given_run = LocalRun(make_job([query], JobContext(layouts_for(query.streams), {}, FINGERPRINT, False)))
        given_run.step({"given": inferred_rows(readings, method, building())}, end=True)
        assert run.answers() == pytest.approx(given_run.answers(), abs=1e-9)
        assert run.counts.read == run.counts.used == len(readings)


@given(data=st.data())
def test_any_split_gives_the_answers_of_an_archive(folder: Path, data: st.DataObject) -> None:
    method = data.draw(st.sampled_from(sorted(METHOD_MODELS.keys() - set(WHOLE_ARCHIVE))))
    readings = sorted(random_readings(data.draw(st.integers(0, 50))), key=lambda row: row["t"])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(readings)), max_size=3)))
    parts = [readings[a:b] for a, b in zip([0, *cuts], [*cuts, len(readings)], strict=True)]
    options = data.draw(st.sampled_from(["", "EXPIRE 2"]))
    job = inferring_job(workbook_text("at", method, options=options), folder, live=True)
    one_batch = answers(job, [{"readings": readings}])
    split = answers(job, [{"readings": part} for part in parts])
    assert split.counts.late == 0
    assert split.answers() == pytest.approx(one_batch.answers(), abs=1e-12)


def test_readings_of_unknown_readers_are_quarantined_with_the_reason(folder: Path) -> None:
    hmm = building()
    readings = [
        {"tag": "a", "reader": "east", "t": 0},
        {"tag": "a", "reader": "east", "t": 0},
        {"tag": "a", "reader": "attic", "t": 1},
        {"tag": "b", "reader": "cellar", "t": 1},
        {"tag": "a", "reader": None, "t": 2},
    ]
    assert len(hmm.readers) == 2
    run = LocalRun(inferring_job(workbook_text("at"), folder), 1)
    run.step({"readings": readings}, end=True)
    (outcome,) = run.outcomes
    assert outcome.rejected["reason"].to_pylist() == [UNKNOWN_READER] * 2
    assert (run.counts.read, run.counts.used, run.counts.duplicate, run.counts.quarantined) == (5, 2, 1, 2)


def test_a_reading_that_the_model_cannot_explain_is_quarantined() -> None:
    """The second reader sees only the lab, and the lab cannot be reached from the hall."""
    moves, seen = Entries.of_dense(np.eye(2)), Entries.of_dense(0.5 * np.eye(2))
    hmm = make_hmm(("hall", "lab"), READERS, np.full(2, 0.5), moves, Sensing.DETECTION, seen)
    catalog = Catalog()
    text = workbook_text("at")
    declare(parse(text), catalog)
    (layout,) = layouts_for([catalog.stream("readings")])
    layout = replace(layout, derivation=InferredFrom((Inference(hmm, "FILTER"),), pa.string(), 1.0))
    run = LocalRun(make_job([bound_query(text, "q")], JobContext((layout,), {}, FINGERPRINT, True)), 1)
    run.step(
        {"readings": [{"tag": "a", "reader": r, "t": t} for t, r in enumerate(["east", "west", "east"])]}, end=True
    )
    (outcome,) = run.outcomes
    assert outcome.rejected["reason"].to_pylist() == [IMPOSSIBLE]
    assert (run.counts.used, run.counts.quarantined) == (2, 1)


def test_models_with_different_silence_have_different_identities() -> None:
    identities = [
        InferredFrom((Inference(replace(building(), silence=quiet), "FILTER"),), pa.string(), 1.0).identity()
        for quiet in (None, np.full(3, 0.5), np.full(3, 0.25))
    ]
    assert len({identity["model"] for identity in identities}) == 3


def test_a_step_with_a_fraction_is_refused_for_integer_times(folder: Path) -> None:
    """With declared types by the binder, else when the source is known."""
    message = "STEP 0.5 is no integer, and the times of readings are integers"
    (finding,) = declare(parse(workbook_text("at", options="STEP 0.5")), Catalog())
    assert finding.message == message
    catalog = Catalog()
    assert not declare(parse(workbook_text("at", options="STEP 0.5", time="")), catalog)
    at, readings = catalog.stream("at"), catalog.stream("readings").with_types({"t": Type.INTEGER})
    with pytest.raises(WorkbookError, match=message):
        inference_of(at, at.source, layouts_for([readings])[0], str(folder))


def test_an_error_in_a_model_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WorkbookError, match="model: there is no such folder"):
        inferring_job(workbook_text("at"), tmp_path)
    (tmp_path / "model").mkdir()
    with pytest.raises(WorkbookError, match=r"there is neither detection\.csv nor emission\.csv"):
        inferring_job(workbook_text("at"), tmp_path)


@pytest.mark.parametrize(
    ("kind", "step", "times", "numbers"),
    [
        (TimeKind.INTEGER, 5.0, [-1, 0, 4, 5], [-1, 0, 0, 1]),
        (TimeKind.TIMESTAMP, 0.5, [499_999, 500_000, -1], [0, 1, -1]),
        (TimeKind.DOUBLE, 0.1, [0.7, 0.69, -0.05], [7, 6, -1]),
    ],
)
def test_times_fall_into_steps(kind: TimeKind, step: float, times: list, numbers: list[int]) -> None:
    codes = order_doubles(np.array(times)) if kind is TimeKind.DOUBLE else np.array(times)
    assert steps_of(codes, step, kind).tolist() == numbers
    start_times = step_times(np.array(numbers), step, kind)
    assert steps_of(start_times, step, kind).tolist() == numbers
    assert (start_times <= codes + 8).all()  # doubles may differ in their last bits


def test_a_step_combines_the_readings_of_several_instants(folder: Path) -> None:
    """Readings at 10, 13 and 21 with steps of 5: one step with both readers, one without, one with the first."""
    job = inferring_job(workbook_text("at", "MLE", options="STEP 5"), folder)
    run = LocalRun(job, 1)
    rows = [{"tag": "a", "reader": r, "t": t} for r, t in (("east", 10), ("west", 13), ("east", 21))]
    run.step({"readings": rows[:2]})
    assert not run.answers()
    run.step({"readings": rows[2:]}, end=True)
    text = workbook_text("given", "MLE")
    query = bound_query(text, "q")
    expected = LocalRun(make_job([query], JobContext(layouts_for(query.streams), {}, FINGERPRINT, False)))
    by_step = [{"tag": "a", "reader": row["reader"], "t": row["t"] // 5} for row in rows]
    given_rows = [{**row, "t": 5 * row["t"]} for row in inferred_rows(by_step, "MLE", building())]
    expected.step({"given": given_rows}, end=True)
    assert run.answers() == expected.answers()


# ---------------------------------------------------------------- an inferred and another stream in one query

TWO_STREAMS = """
CREATE STREAM readings KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;
CREATE STREAM at KEY (tag STRING) VALUE (room STRING) TIME t INTEGER
  INFERRED FROM readings USING HMM 'model/' METHOD FILTER STEP {first};
CREATE STREAM {other};
CREATE QUERY q AS PATTERN at(x, 'hall') THEN {name}(x, {value}) GROUP BY x;
"""
PLAIN = "door KEY (tag STRING) VALUE (side STRING) TIME t INTEGER"
SLOWER = (
    "slow KEY (tag STRING) VALUE (room STRING) TIME t INTEGER "
    "INFERRED FROM readings USING HMM 'model/' METHOD FILTER STEP {second}"
)


def two_streams(folder: Path, text: str, names: tuple[str, str]) -> PatternJob:
    """A job over an inferred stream and another, inferred or not."""
    catalog = Catalog()
    assert not declare(parse(text), catalog)
    streams = [catalog.stream(name) for name in names]
    sources = [stream if stream.source is None else catalog.stream("readings") for stream in streams]
    layouts = [
        layout
        if stream.source is None
        else replace(layout, derivation=inference_of(stream, stream.source, layout, str(folder)))
        for layout, stream in zip(layouts_for(sources), streams, strict=True)
    ]
    return make_job([bound_query(text, "q")], JobContext(tuple(layouts), {}, FINGERPRINT, True))


def run_two(job: PatternJob, batches: list[dict[str, list[dict]]]) -> LocalRun:
    """Run a job whose streams may both read `readings`: LocalRun passes rows to every layout of that name."""
    run = answers(job, batches)
    assert run.counts.late == 0
    assert run.counts.read == run.counts.used + run.counts.duplicate + run.counts.quarantined
    return run


@pytest.mark.parametrize("step", [1, 7, 10])
def test_the_last_rows_of_a_plain_stream_are_not_lost_with_long_steps_of_another(folder: Path, step: int) -> None:
    text = TWO_STREAMS.format(first=step, other=PLAIN, name="door", value="'open'")
    job = two_streams(folder, text, ("at", "door"))
    readings = [{"tag": "a", "reader": "east", "t": t} for t in range(0, 96, 5)]
    doors = [{"tag": "a", "side": "open", "t": t} for t in (3, 50, 105)]
    one_batch = run_two(job, [{"readings": readings, "door": doors}])
    assert max(t for t, _ in one_batch.answers()) == 105
    parts = [
        {"readings": [r for r in readings if lo <= r["t"] < hi], "door": [r for r in doors if lo <= r["t"] < hi]}
        for lo, hi in ((0, 23), (23, 61), (61, 200))
    ]
    assert run_two(job, parts).answers() == pytest.approx(one_batch.answers(), abs=1e-12)
    readings_first = run_two(job, [{"readings": readings}, {"door": doors}])
    assert readings_first.answers() == pytest.approx(one_batch.answers(), abs=1e-12)


@pytest.mark.parametrize(("first", "second"), [(5, 7), (7, 5), (1, 4)])
def test_a_query_can_use_streams_with_different_steps(folder: Path, first: int, second: int) -> None:
    text = TWO_STREAMS.format(first=first, other=SLOWER.format(second=second), name="slow", value="'office'")
    job = two_streams(folder, text, ("at", "slow"))
    readings = sorted(random_readings(5, keys=3, steps=27), key=lambda row: row["t"])
    one_batch = run_two(job, [{"readings": readings}])
    assert one_batch.answers()
    cut = len(readings) // 2
    parts = [{"readings": readings[:cut]}, {"readings": readings[cut:]}]
    assert run_two(job, parts).answers() == pytest.approx(one_batch.answers(), abs=1e-12)
