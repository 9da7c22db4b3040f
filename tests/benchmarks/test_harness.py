"""The shared code of the benchmarks: records, tables, and workloads that are reproducible and valid for their model."""

from __future__ import annotations

import io
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.__main__ import main
from benchmarks.engines import largest_difference, make_job, run_in_process
from benchmarks.harness import Options, Record, append_json, interleaved, print_table
from benchmarks.pattern.kernels import prepare
from benchmarks.pattern.queries import workbook
from benchmarks.profile import profile
from benchmarks.workloads import MODELS, Spec, archive, make_relations, make_stream, micro_batches
from rich.console import Console

RECORDS = [
    Record("pattern.batch", "a small workload", "in process", 1_234_567.8, "rows/s"),
    Record("pattern.batch", "a small workload", "Spark", 700_000.0, "rows/s", "in process", 0.567),
]

pytestmark = pytest.mark.usefixtures("cache_folder")


def test_a_record_has_its_provenance():
    record = json.loads(RECORDS[1].to_json(Options(rounds=3)))
    assert list(record) == [
        "benchmark", "workload", "metric", "value", "unit", "baseline", "ratio", "seed",
        "rounds", "quick", "machine", "versions", "commit", "date",
    ]  # fmt: skip
    assert record["ratio"] == 0.567
    assert (record["rounds"], record["quick"]) == (3, False)
    assert record["versions"]["numpy"] == np.__version__


def test_json_has_one_line_per_measurement(tmp_path):
    path = tmp_path / "results.jsonl"
    append_json(RECORDS[:1], str(path), Options())
    append_json(RECORDS[1:], str(path), Options())
    assert [json.loads(line)["metric"] for line in path.read_text().splitlines()] == ["in process", "Spark"]


def test_the_table_names_each_workload_once():
    text = io.StringIO()
    print_table(RECORDS, Console(file=text, width=100))
    assert text.getvalue().count("a small workload") == 1
    assert "1,234,568" in text.getvalue()
    assert "0.57" in text.getvalue()


def test_contestants_take_turns_after_a_warm_up():
    turns: list[str] = []
    contestants = {"a": lambda: turns.append("a"), "b": lambda: turns.append("b")}
    seconds = interleaved(contestants, rounds=3)
    assert turns == ["a", "b", "b", "a", "a", "b"]
    assert set(seconds) == {"a", "b"}
    turns.clear()
    interleaved(contestants, rounds=1, warm_up=True)
    assert turns == ["a", "b", "a", "b"]


def test_an_unknown_name_is_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["pattern.kernel", "nothing"])
    assert "pattern.kernel" in capsys.readouterr().err


@pytest.mark.parametrize("model", MODELS)
def test_the_same_spec_gives_the_same_rows(model):
    spec = Spec(model, keys=5, instants=4)
    assert make_stream(spec).equals(make_stream(spec))
    assert spec.rows_per_instant * spec.instants >= make_stream(spec).num_rows > 0
    assert model == "CERTAIN" or not make_stream(spec).equals(make_stream(Spec(model, keys=5, instants=4, seed=8)))


@pytest.mark.parametrize("model", MODELS)
def test_a_workload_is_valid_for_its_model(model):
    spec = Spec(model, keys=7, instants=6)
    rows = make_stream(spec)
    keys = ["person", "t"] + (["prev_room"] if model == "MARKOV" else [])
    alternatives = rows.group_by([*keys, "room"]).aggregate([([], "count_all")])
    assert alternatives.num_rows == rows.num_rows, "no alternative occurs twice"
    if model != "CERTAIN":
        sums = rows.group_by(keys).aggregate([("p", "sum")])["p_sum"].to_numpy()
        assert np.all((sums > 0.9) & (sums <= 1))
    if model == "MARKOV":
        first = rows.filter(pa.array(rows["t"].to_numpy() == 0))
        assert first["prev_room"].null_count == first.num_rows == spec.keys * spec.alternatives


@pytest.mark.parametrize("model", MODELS)
def test_micro_batches_have_the_rows_of_the_archive_in_order(model):
    spec = Spec(model, keys=3, instants=6)
    paths = sorted((micro_batches(spec, files=3) / "stream").iterdir())
    assert len(paths) == 3
    assert sorted(paths, key=os.path.getmtime) == paths
    parts = pa.concat_tables([pq.read_table(path) for path in paths])
    assert parts.equals(pq.read_table(archive(spec) / "stream.parquet"))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("query", ["three", "coffee"])
def test_a_run_in_process_uses_every_row(model, query):
    spec = Spec(model, keys=20, instants=40)
    path = archive(spec) / "stream.parquet"
    job = make_job(workbook(path.parent, spec), query, make_relations(spec))
    answers = run_in_process(job, path)
    assert answers.num_rows > 0
    assert len(prepare(spec, query).batch.rows) == pq.read_metadata(path).num_rows
    assert {"read Parquet", "encode values", "gather by bucket", "clean", "step"} <= set(
        profile(lambda: run_in_process(job, path))
    )


def test_different_answers_are_an_error():
    answers = pa.table({"t": [1, 2], "p": ["a", "b"], "probability": [0.5, 0.25]})
    assert largest_difference(answers.take([1, 0]), answers) == 0.0
    with pytest.raises(AssertionError, match="differ by"):
        largest_difference(answers.set_column(2, "probability", [[0.5, 0.3]]), answers)
    with pytest.raises(AssertionError, match="1 answers instead of the expected 2"):
        largest_difference(answers.slice(0, 1), answers)
