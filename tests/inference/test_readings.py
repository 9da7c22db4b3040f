"""Models with stages, activations and measured quantities in queries, in batch and in any split of the readings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.errors import WorkbookError
from anabranch.inference.hmm import Gaussians
from anabranch.inference.infer import Inference
from anabranch.inference.model import write_hmm
from anabranch.inference.stream import InferredFrom
from anabranch.language.parser import parse
from anabranch.transport.activations import TOO_LONG
from anabranch.transport.inbox import Inbox
from tests.drawn import examples
from tests.inference.models import packed
from tests.inference.test_stream import READERS, ROOMS, answers, building, inferring_job, random_readings, workbook_text
from tests.oracles import hmm as oracle
from tests.pattern.local import LocalRun

STAGES = np.array([3, 1, 2], np.int32)


def write_model(folder: Path, **extras: object) -> Path:
    write_hmm(replace(building(), **extras), folder / "model")
    return folder


# ---------------------------------------------------------------- stages


def test_a_query_over_smoothed_stages_is_exact(tmp_path: Path) -> None:
    """The probability of a move in explicit durations: the stream of locations alone is no Markov chain."""
    folder = write_model(tmp_path, stages=STAGES, exponent=0.5)
    transition = np.array([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]])
    detection = np.array([[0.7, 0.0, 0.0], [0.4, 0.5, 0.0]])
    for seed in range(3):
        readings = random_readings(seed, keys=1, steps=7)
        run = LocalRun(inferring_job(workbook_text("at", "SMOOTH"), folder), n_buckets=2)
        run.step({"readings": readings}, end=True)
        first, last = (end(row["t"] for row in readings) for end in (min, max))
        seen = [{READERS.index(row["reader"]) for row in readings if row["t"] == t} for t in range(first, last + 1)]
        likelihoods = oracle.detection_likelihoods(detection, seen) ** 0.5
        paths = oracle.posterior(oracle.stay_paths(np.array([0.2, 0.3, 0.5]), transition, STAGES.tolist(), likelihoods))
        expected = {
            (first + t, "tag0"): sum(p for path, p in paths.items() if path[t - 1] == 0 and path[t] != 0)
            for t in range(1, last - first + 1)
        }
        assert run.answers() == pytest.approx({key: p for key, p in expected.items() if p > 0}, abs=1e-9)


@examples(20)
@given(seed=st.integers(0, 50), cut=st.integers(0, 30), method=st.sampled_from(["FILTER", "PARTICLE", "MLE"]))
def test_any_split_of_readings_gives_the_answers_of_an_archive(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cut: int, method: str
) -> None:
    folder = write_model(tmp_path_factory.mktemp("staged"), stages=STAGES, exponent=0.3)
    readings = sorted(random_readings(seed), key=lambda row: row["t"])
    job = inferring_job(workbook_text("at", method), folder, live=True)
    split = answers(job, [{"readings": readings[:cut]}, {"readings": readings[cut:]}])
    assert split.answers() == pytest.approx(answers(job, [{"readings": readings}]).answers(), abs=1e-12)


def test_every_part_of_a_model_is_part_of_its_identity() -> None:
    normal = Gaussians(("rssi",), np.zeros((1, 3)), np.ones((1, 3)))
    models = [
        building(),
        replace(building(), stages=STAGES),
        replace(building(), exponent=0.5),
        replace(building(), gaussians=normal),
        replace(building(), gaussians=replace(normal, mean=np.ones((1, 3)))),
    ]
    digests = {InferredFrom((Inference(hmm, "FILTER"),), None, 1.0).identity()["model"] for hmm in models}
    assert len(digests) == len(models)


# ---------------------------------------------------------------- activations

ACTIVATIONS = """
CREATE STREAM readings KEY (tag STRING) VALUE (reader STRING) TIME (since INTEGER, until INTEGER) {watermark};
CREATE STREAM at KEY (tag STRING) VALUE (room STRING) TIME t INTEGER
  INFERRED FROM readings USING HMM 'model/' METHOD FILTER STEP 5;
CREATE QUERY q AS PATTERN at(x, 'hall') THEN at(x, r) WHERE r <> 'hall' GROUP BY x;
"""

ON = [
    {"tag": "a", "reader": "east", "since": 2, "until": 17},
    {"tag": "a", "reader": "west", "since": 12, "until": 12},
    {"tag": "b", "reader": "west", "since": 20, "until": 35},
]


def readings_in_steps() -> list[dict]:
    """The same as readings at points, as a loop over the steps finds them."""
    return [
        {"tag": row["tag"], "reader": row["reader"], "t": max(row["since"], 5 * n)}
        for row in ON
        for n in range(10)
        if 5 * n <= row["since"] < 5 * (n + 1) or row["since"] < 5 * n < row["until"]
    ]


def test_an_activation_is_a_reading_in_each_step(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    run = LocalRun(inferring_job(ACTIVATIONS.format(watermark=""), folder), n_buckets=2)
    run.step({"readings": ON}, end=True)
    points = LocalRun(inferring_job(workbook_text("at", options="STEP 5"), folder), n_buckets=2)
    points.step({"readings": readings_in_steps()}, end=True)
    assert run.answers() == points.answers()
    assert run.counts.read == run.counts.used == len(readings_in_steps())


def test_an_activation_that_ends_late_is_in_time_with_a_long_watermark(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    job = inferring_job(ACTIVATIONS.format(watermark="WATERMARK 20"), folder, live=True)
    once = answers(job, [{"readings": ON}])
    split = answers(job, [{"readings": [row]} for row in ON])
    assert (split.counts.late, split.answers()) == (0, once.answers())
    short = inferring_job(ACTIVATIONS.format(watermark=""), folder, live=True)
    assert answers(short, [{"readings": [row]} for row in (ON[1], ON[0], ON[2])]).counts.late > 0


def test_an_activation_of_a_million_steps_is_quarantined(tmp_path: Path) -> None:
    run = LocalRun(inferring_job(ACTIVATIONS.format(watermark=""), write_model(tmp_path)), n_buckets=1)
    run.step({"readings": [*ON, {"tag": "a", "reader": "east", "since": 0, "until": 10**9}]}, end=True)
    assert [row["reason"] for row in run.rejected] == [TOO_LONG]
    assert run.counts.read == run.counts.used + 1


# ---------------------------------------------------------------- measured quantities

MEASURED = """
CREATE STREAM readings KEY (tag STRING) VALUE (reader STRING{quantity}) TIME t INTEGER;
CREATE STREAM at KEY (tag STRING) VALUE (room STRING) TIME t INTEGER
  INFERRED FROM readings USING HMM 'model/' METHOD FILTER;
CREATE QUERY q AS PATTERN at(x, 'hall') THEN at(x, r) WHERE r <> 'hall' GROUP BY x;
"""
NORMAL = Gaussians(("rssi",), np.array([[-60.0, -50.0, -55.0]]), np.array([[3.0, 2.0, 4.0]]))


def measured_readings(seed: int) -> list[dict]:
    draw = np.random.default_rng(seed)
    return [{**row, "rssi": None if draw.random() < 0.2 else draw.normal(-55, 5)} for row in random_readings(seed)]


@examples(20)
@given(seed=st.integers(0, 50), cut=st.integers(0, 30))
def test_measured_quantities_count_in_a_query_and_in_any_split(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cut: int
) -> None:
    folder = write_model(tmp_path_factory.mktemp("measured"), gaussians=NORMAL)
    readings = sorted(measured_readings(seed), key=lambda row: row["t"])
    job = inferring_job(MEASURED.format(quantity=", rssi DOUBLE"), folder, live=True)
    split = answers(job, [{"readings": readings[:cut]}, {"readings": readings[cut:]}])
    inference = Inference(replace(building(), gaussians=NORMAL), "FILTER")
    last, expected = max(row["t"] for row in readings), {}
    for tag in {row["tag"] for row in readings}:
        own = [row for row in readings if row["tag"] == tag]
        steps = [[row for row in own if row["t"] == t] for t in range(min(row["t"] for row in own), last + 1)]
        codes = [[READERS.index(row["reader"]) for row in step] for step in steps]
        numbers = [[np.nan if row["rssi"] is None else row["rssi"]] for step in steps for row in step]
        inferred = inference.advance(inference.start(), *packed(codes), np.array(numbers))
        p = np.zeros((len(steps), len(ROOMS)))
        p[inferred.step, inferred.location] = inferred.p
        expected |= {(last + 1 - len(steps) + t, tag): p[t - 1, 0] * (1 - p[t, 0]) for t in range(1, len(steps))}
    assert split.answers() == pytest.approx({key: p for key, p in expected.items() if p > 0}, abs=1e-9)


def test_the_dictionary_of_measurements_does_not_grow(tmp_path: Path) -> None:
    folder = write_model(tmp_path, gaussians=NORMAL)
    job = inferring_job(MEASURED.format(quantity=", rssi DOUBLE"), folder, live=True)
    sizes = []
    save = Inbox.save

    def counting(self: Inbox) -> dict:
        tables = save(self)
        sizes.append(tables["values 0"].num_rows)
        return tables

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Inbox, "save", counting)
        rows = [{"tag": "a", "reader": "east", "rssi": -50.0 - t / 7, "t": t} for t in range(60)]
        answers(job, [{"readings": rows[start : start + 10]} for start in range(0, 60, 10)])
    assert max(sizes) <= 3, "nothing, and the row of the newest instant"


@pytest.mark.parametrize(
    ("quantity", "gaussians", "message"),
    [
        (", rssi DOUBLE", None, "the model has no distribution of rssi, a VALUE column of readings"),
        ("", NORMAL, "the model measures rssi, but readings has no such VALUE column"),
    ],
)
def test_the_readings_and_the_model_measure_the_same(
    tmp_path: Path, quantity: str, gaussians: Gaussians | None, message: str
) -> None:
    write_model(tmp_path, gaussians=gaussians)
    with pytest.raises(WorkbookError, match=message):
        inferring_job(MEASURED.format(quantity=quantity), tmp_path)


def test_a_measured_quantity_is_a_number() -> None:
    findings = declare(parse(MEASURED.format(quantity=", note STRING")), Catalog())
    assert [finding.message for finding in findings] == [
        "what a reading measures must be a number, but 'note' is a STRING"
    ]
