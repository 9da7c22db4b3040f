"""Inferred streams on a worker, and through a query: the same as inference key by key, whatever the splits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.binding.binder import declare
from anabranch.binding.derived_streams import METHOD_MODELS, WHOLE_ARCHIVE
from anabranch.catalog import Catalog
from anabranch.columns.times import TimeKind, order_doubles, step_times, steps_of
from anabranch.errors import WorkbookError
from anabranch.inference.infer import Inference
from anabranch.inference.model import Entries, Hmm, Sensing, make_hmm, write_hmm
from anabranch.inference.stream import IMPOSSIBLE, UNKNOWN_READER, InferredFrom
from anabranch.language.parser import parse
from anabranch.pattern.job import PatternJob
from anabranch.planning.inferred import inference_of
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext
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
    move = np.array([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]])
    rows, columns = np.nonzero(move)
    seen = Entries(np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32), np.array([0.7, 0.4, 0.5]))
    moves = Entries(rows.astype(np.int32), columns.astype(np.int32), move[rows, columns])
    return make_hmm(ROOMS, READERS, np.array([0.2, 0.3, 0.5]), moves, Sensing.DETECTION, seen)


def filled(stream: str, method: str = "FILTER", time: str = "INTEGER", options: str = "", watermark: str = "") -> str:
    return WORKBOOK.format(
        stream=stream, method=method.replace("PARTICLE", "PARTICLE(50)"), time=time, options=options,
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


def some_readings(seed: int, keys: int = 4, steps: int = 12) -> list[dict]:
    """Tags that begin at different steps, and are missed as often as not."""
    draw = np.random.default_rng(seed)
    rows = []
    for key in range(keys):
        for t in range(int(draw.integers(0, 4)), steps - key):
            rows += [{"tag": f"tag{key}", "reader": r, "t": t} for r in READERS if draw.random() < 0.3]
    return rows


def inferred_rows(readings: list[dict], method: str, hmm: Hmm) -> list[dict]:
    """The rows of the stream, key by key, from each one's first reading to the last of all."""
    inference = Inference(hmm, method, 50 if method == "PARTICLE" else 0)
    last = max(row["t"] for row in readings)
    rows = []
    for tag in dict.fromkeys(row["tag"] for row in readings):
        own = [row for row in readings if row["tag"] == tag]
        first = min(row["t"] for row in own)
        sets = [[READERS.index(row["reader"]) for row in own if row["t"] == t] for t in range(first, last + 1)]
        starts = np.concatenate([[0], np.cumsum([len(each) for each in sets])])
        found = inference.advance(inference.start(0), starts, np.array(sum(sets, []), np.int32))
        for step, prev, location, p in zip(found.step, found.prev, found.location, found.p, strict=True):
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
    place = tmp_path_factory.mktemp("inferred")
    write_hmm(building(), place / "model")
    return place


@pytest.mark.parametrize("method", sorted(METHOD_MODELS.keys() - {"PARTICLE"}))
def test_a_query_over_an_inferred_stream_equals_one_over_its_rows(method: str, folder: Path) -> None:
    for seed in range(5):
        readings = some_readings(seed)
        run = LocalRun(inferring_job(filled("at", method), folder), n_buckets=3)
        run.step({"readings": readings}, end=True)
        text = filled("given", method)
        query = bound_query(text, "q")
        given_run = LocalRun(make_job([query], JobContext(layouts_for(query.streams), {}, FINGERPRINT, False)))
        given_run.step({"given": inferred_rows(readings, method, building())}, end=True)
        assert run.answers() == pytest.approx(given_run.answers(), abs=1e-9)
        assert run.counts.read == run.counts.used == len(readings)


@given(data=st.data())
def test_any_split_gives_the_answers_of_an_archive(folder: Path, data: st.DataObject) -> None:
    method = data.draw(st.sampled_from(sorted(METHOD_MODELS.keys() - set(WHOLE_ARCHIVE))))
    readings = sorted(some_readings(data.draw(st.integers(0, 50))), key=lambda row: row["t"])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(readings)), max_size=3)))
    parts = [readings[a:b] for a, b in zip([0, *cuts], [*cuts, len(readings)], strict=True)]
    job = inferring_job(filled("at", method), folder, live=True)
    whole = answers(job, [{"readings": readings}])
    split = answers(job, [{"readings": part} for part in parts])
    assert split.counts.late == 0
    assert split.answers() == pytest.approx(whole.answers(), abs=1e-12)


def test_readings_that_cannot_be_used_are_set_aside_with_the_reason(folder: Path) -> None:
    hmm = building()
    readings = [
        {"tag": "a", "reader": "east", "t": 0},
        {"tag": "a", "reader": "east", "t": 0},
        {"tag": "a", "reader": "attic", "t": 1},
        {"tag": "b", "reader": "cellar", "t": 1},
        {"tag": "a", "reader": None, "t": 2},
    ]
    assert len(hmm.readers) == 2
    run = LocalRun(inferring_job(filled("at"), folder), 1)
    run.step({"readings": readings}, end=True)
    (outcome,) = run.outcomes
    assert outcome.rejected["reason"].to_pylist() == [UNKNOWN_READER] * 2
    assert (run.counts.read, run.counts.used, run.counts.duplicate, run.counts.quarantined) == (5, 2, 1, 2)


def test_a_reading_that_the_model_cannot_explain_is_set_aside() -> None:
    """From the hall there is no way to the lab within a step, where alone the second reader reads."""
    moves = Entries(np.array([0, 1], np.int32), np.array([0, 1], np.int32), np.ones(2))
    seen = Entries(np.array([0, 1], np.int32), np.array([0, 1], np.int32), np.full(2, 0.5))
    hmm = make_hmm(("hall", "lab"), READERS, np.full(2, 0.5), moves, Sensing.DETECTION, seen)
    catalog = Catalog()
    text = filled("at")
    declare(parse(text), catalog)
    (layout,) = layouts_for([catalog.stream("readings")])
    layout = replace(layout, derivation=InferredFrom(Inference(hmm, "FILTER"), pa.string(), 1.0))
    run = LocalRun(make_job([bound_query(text, "q")], JobContext((layout,), {}, FINGERPRINT, True)), 1)
    run.step(
        {"readings": [{"tag": "a", "reader": r, "t": t} for t, r in enumerate(["east", "west", "east"])]}, end=True
    )
    (outcome,) = run.outcomes
    assert outcome.rejected["reason"].to_pylist() == [IMPOSSIBLE]
    assert (run.counts.used, run.counts.quarantined) == (2, 1)


def test_state_is_only_good_for_a_model_with_the_same_silence() -> None:
    identities = [
        InferredFrom(Inference(replace(building(), silence=quiet), "FILTER"), pa.string(), 1.0).identity()
        for quiet in (None, np.full(3, 0.5), np.full(3, 0.25))
    ]
    assert len({identity["model"] for identity in identities}) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("STEP 0.5", "STEP 0.5 is no integer, and the times of readings are integers"),
        ("", "there is neither detection.csv nor emission.csv"),
    ],
)
def test_what_is_wrong_with_a_model_is_one_line(options: str, message: str, tmp_path: Path) -> None:
    if options:
        write_hmm(building(), tmp_path / "model")
    with pytest.raises(WorkbookError, match=message):
        inferring_job(filled("at", options=options), tmp_path)


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
    begins = step_times(np.array(numbers), step, kind)
    assert steps_of(begins, step, kind).tolist() == numbers
    assert (begins <= codes + 8).all()  # doubles may differ in their last bits


def test_a_step_of_several_instants_takes_all_their_readings(folder: Path) -> None:
    """Readings at 10, 13 and 21 with steps of 5: one step with both readers, one without, one with the first."""
    job = inferring_job(filled("at", "MLE", options="STEP 5"), folder)
    run = LocalRun(job, 1)
    rows = [{"tag": "a", "reader": r, "t": t} for r, t in (("east", 10), ("west", 13), ("east", 21))]
    run.step({"readings": rows[:2]})
    assert not run.answers()
    run.step({"readings": rows[2:]}, end=True)
    text = filled("given", "MLE")
    query = bound_query(text, "q")
    by_hand = LocalRun(make_job([query], JobContext(layouts_for(query.streams), {}, FINGERPRINT, False)))
    made = inferred_rows([{"tag": "a", "reader": row["reader"], "t": row["t"] // 5} for row in rows], "MLE", building())
    by_hand.step({"given": [{**row, "t": 5 * row["t"]} for row in made]}, end=True)
    assert run.answers() == by_hand.answers()


# ---------------------------------------------------------------- steps beside instants

BESIDE = """
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
    inferred = [not isinstance(stream.source, type(None)) for stream in streams]
    read = [
        catalog.stream("readings") if is_inferred else each for each, is_inferred in zip(streams, inferred, strict=True)
    ]
    layouts = [
        replace(layout, derivation=inference_of(stream, stream.source, layout, str(folder))) if is_inferred else layout
        for layout, stream, is_inferred in zip(layouts_for(read), streams, inferred, strict=True)
    ]
    return make_job([bound_query(text, "q")], JobContext(tuple(layouts), {}, FINGERPRINT, True))


def run_two(job: PatternJob, batches: list[dict[str, list[dict]]]) -> LocalRun:
    """Both streams of a job may read `readings`; LocalRun hands rows to every layout of that name."""
    run = answers(job, batches)
    assert run.counts.late == 0
    assert run.counts.read == run.counts.used + run.counts.duplicate + run.counts.quarantined
    return run


@pytest.mark.parametrize("step", [1, 7, 10])
def test_the_last_rows_of_a_plain_stream_are_not_lost_beside_long_steps(folder: Path, step: int) -> None:
    text = BESIDE.format(first=step, other=PLAIN, name="door", value="'open'")
    job = two_streams(folder, text, ("at", "door"))
    readings = [{"tag": "a", "reader": "east", "t": t} for t in range(0, 96, 5)]
    doors = [{"tag": "a", "side": "open", "t": t} for t in (3, 50, 105)]
    whole = run_two(job, [{"readings": readings, "door": doors}])
    assert max(t for t, _ in whole.answers()) == 105
    parts = [
        {"readings": [r for r in readings if lo <= r["t"] < hi], "door": [r for r in doors if lo <= r["t"] < hi]}
        for lo, hi in ((0, 23), (23, 61), (61, 200))
    ]
    assert run_two(job, parts).answers() == pytest.approx(whole.answers(), abs=1e-12)
    one_after_the_other = run_two(job, [{"readings": readings}, {"door": doors}])
    assert one_after_the_other.answers() == pytest.approx(whole.answers(), abs=1e-12)


@pytest.mark.parametrize(("first", "second"), [(5, 7), (7, 5), (1, 4)])
def test_streams_of_different_steps_go_together(folder: Path, first: int, second: int) -> None:
    text = BESIDE.format(first=first, other=SLOWER.format(second=second), name="slow", value="'office'")
    job = two_streams(folder, text, ("at", "slow"))
    readings = sorted(some_readings(5, keys=3, steps=27), key=lambda row: row["t"])
    whole = run_two(job, [{"readings": readings}])
    assert whole.answers()
    cut = len(readings) // 2
    parts = [{"readings": readings[:cut]}, {"readings": readings[cut:]}]
    assert run_two(job, parts).answers() == pytest.approx(whole.answers(), abs=1e-12)
