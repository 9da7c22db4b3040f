"""`anabranch fit`: models from labelled history, and the errors if nothing can be learned."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command

from anabranch.inference.hmm import Sensing
from anabranch.inference.model import read_hmm

HISTORY = """
CREATE STREAM truth KEY (tag) VALUE (place) TIME t FROM 'truth.csv';
CREATE STREAM seen KEY (tag) VALUE (antenna) TIME t FROM 'seen.csv';
"""


def write(path: Path, header: str, *rows: str) -> None:
    path.write_text("\n".join([header, *rows]) + "\n")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """One tag in two rooms for six steps; it is read at three of them, and later at an unknown location."""
    places = ["hall", "hall", "lab", "lab", "lab", "hall"]
    write(tmp_path / "truth.csv", "tag,place,t", *(f"a,{place},{t}" for t, place in enumerate(places)))
    write(tmp_path / "seen.csv", "tag,antenna,t", "a,east,0", "a,east,0", "a,west,3", "a,west,4", "a,east,9")
    path = tmp_path / "history.abq"
    path.write_text(HISTORY)
    return path


def table(path: Path) -> dict[tuple[str, ...], float]:
    with path.open() as file:
        return {tuple(names): float(p) for *names, p in list(csv.reader(file))[1:]}


def test_counts_become_a_model(spark: SparkSession, history: Path, tmp_path: Path, anabranch: Command) -> None:
    options = ("--truth", "TRUTH", "--readings", "seen", "--output", tmp_path / "model")
    done = anabranch("fit", "hmm", history, *options, "--smoothing", "0")
    assert (done.status, done.out) == (0, "")
    assert done.err.splitlines() == [
        "2 locations, 2 readers, 4 transitions; counted over 6 steps of 1 key, 3 of them without a reading",
        f"written to {tmp_path / 'model'}; next: INFERRED FROM seen USING HMM 'model' METHOD ...",
    ]
    model = tmp_path / "model"
    assert table(model / "initial.csv") == {("hall",): 0.5, ("lab",): 0.5}
    assert table(model / "detection.csv") == pytest.approx({("east", "hall"): 1 / 3, ("west", "lab"): 2 / 3})
    assert table(model / "transition.csv") == pytest.approx(
        {("hall", "hall"): 1 / 2, ("hall", "lab"): 1 / 2, ("lab", "hall"): 1 / 3, ("lab", "lab"): 2 / 3}
    )
    smoothed = anabranch("fit", "hmm", history, *options)
    assert smoothed.status == 0, "a model of the same kind is replaced"
    assert table(model / "detection.csv")["east", "hall"] == pytest.approx(1.5 / 4)


def test_a_step_without_readings_is_a_reading_of_emission(
    spark: SparkSession, history: Path, tmp_path: Path, anabranch: Command
) -> None:
    options = ("--truth", "truth", "--readings", "seen", "--sensing", "emission", "--output", tmp_path / "model")
    assert anabranch("fit", "hmm", history, *options, "--smoothing", "0").status == 0
    hmm = read_hmm(tmp_path / "model")
    assert hmm.sensing is Sensing.EMISSION
    assert hmm.silence.tolist() == pytest.approx([2 / 3, 1 / 3])


def test_activations_stages_tempering_and_quantities(spark: SparkSession, tmp_path: Path, anabranch: Command) -> None:
    """Rooms as stays and sensors as activations, with gaps; the strength of a sensor depends on the room."""
    stays = [("hall", 50 * n, 50 * n + 20) for n in range(12)] + [("lab", 50 * n + 24, 50 * n + 48) for n in range(12)]
    seen = [(place, since + 1, until - 1, -60 if place == "hall" else -40) for place, since, until in stays]
    write(tmp_path / "truth.csv", "tag,place,since,until", *(f"a,{place},{t},{u}" for place, t, u in stays))
    write(tmp_path / "seen.csv", "tag,antenna,since,until,rssi", *(f"a,east,{t},{u},{s}" for _, t, u, s in seen))
    (tmp_path / "home.abq").write_text(
        "CREATE STREAM truth KEY (tag) VALUE (place) TIME (since, until) FROM 'truth.csv';"
        "CREATE STREAM seen KEY (tag) VALUE (antenna, rssi) TIME (since, until) FROM 'seen.csv';"
    )
    options = ("--truth", "truth", "--readings", "seen", "--output", tmp_path / "model", "--between", "stairs")
    done = anabranch("fit", "hmm", tmp_path / "home.abq", *options, "--stages", "6", "--tempered")
    assert done.status == 0, done.err
    assert done.err.splitlines()[0].startswith("3 locations, 1 readers")
    assert done.err.splitlines()[1] == "stages: hall 6, lab 6, stairs 6"
    hmm = read_hmm(tmp_path / "model")
    assert hmm.stages.tolist() == [6, 6, 6]
    assert hmm.gaussians.quantities == ("rssi",)
    by_place = dict(zip((hmm.locations[x] for x in hmm.reader_locations), hmm.gaussians.mean[0], strict=True))
    assert (by_place["hall"], by_place["lab"]) == pytest.approx((-60, -40), abs=1)


def test_rows_that_cannot_be_used_are_counted(
    spark: SparkSession, history: Path, tmp_path: Path, anabranch: Command
) -> None:
    history.write_text(HISTORY.replace("TIME t", "TIME t INTEGER"))
    with (tmp_path / "seen.csv").open("a") as file:
        file.write("a,east,noon\n,east,1\n")
    done = anabranch("fit", "hmm", history, "--truth", "truth", "--readings", "seen", "--output", tmp_path / "model")
    assert done.status == 0, done.err
    assert done.first == "seen: 2 invalid rows were left out"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--truth", "tea"), 2, "there is no stream tea; the workbook has: truth, seen, noisy, guessed"),
        (("--truth", "noisy"), 2, "noisy is INDEPENDENT, but a history must be CERTAIN"),
        (("--truth", "guessed"), 2, "guessed is inferred, but a model is learned from observed streams"),
        (("--sensing", "smell"), 2, "--sensing is detection or emission, not smell"),
        (("--stages", "51"), 2, "--stages is from 1 to 50, not 51"),
        (("--step", "0"), 2, "--step is above 0, not 0"),
        (("--smoothing", "-1"), 2, "--smoothing is at least 0, not -1"),
        (("--step", "0.5"), 1, "the step is 0.5, but the times are integers; use an integer step"),
        (("--input", "seen=other.csv"), 1, "the truth and the readings have no key in common"),
    ],
)
def test_the_error_of_a_failed_fit_is_one_line(
    spark: SparkSession, history: Path, tmp_path: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...], status: int, message: str,
) -> None:  # fmt: skip
    history.write_text(
        HISTORY + "CREATE STREAM noisy KEY (tag) VALUE (place) TIME t MODEL INDEPENDENT;\n"
        "CREATE STREAM guessed KEY (tag) VALUE (place) TIME t INFERRED FROM seen USING HMM 'model/' METHOD VITERBI;"
    )
    write(tmp_path / "other.csv", "tag,antenna,t", "b,east,0")
    monkeypatch.chdir(tmp_path)
    options = {"--truth": "truth", "--readings": "seen", "--output": "model"} | dict([arguments])
    wrong = anabranch("fit", "hmm", history, *(text for pair in options.items() for text in pair))
    assert (wrong.status, wrong.out, wrong.err.count("\n")) == (status, "", 1), wrong.err
    assert message in wrong.first
    assert not (tmp_path / "model").exists()


def test_a_folder_with_a_model_of_the_other_kind_is_not_changed(
    history: Path, tmp_path: Path, anabranch: Command
) -> None:
    write(tmp_path / "emission.csv", "location,reader,p", "hall,east,1")
    wrong = anabranch("fit", "hmm", history, "--truth", "truth", "--readings", "seen", "--output", tmp_path)
    assert (wrong.status, wrong.err.count("\n")) == (1, 1)
    assert "has a model with emission.csv; use another folder" in wrong.first


def test_fit_help_lists_the_commands(anabranch: Command) -> None:
    help_output = anabranch("fit", "--help")
    assert help_output.status == 0
    assert re.search(r"^ +hmm ", help_output.out, re.MULTILINE)


def test_a_fitted_model_answers_queries(spark: SparkSession, tmp_path: Path, anabranch: Command) -> None:
    folder = tmp_path / "rfid"
    small = ("--people", "3", "--objects", "1", "--minutes", "6", "--rooms", "24", "--seed", "5")
    assert anabranch("simulate", "rfid", "--output", folder, *small).status == 0
    streams = """
      CREATE STREAM truth KEY (tag) VALUE (location) TIME t FROM 'true_locations.parquet';
      CREATE STREAM readings KEY (tag) VALUE (reader) TIME t FROM 'readings.parquet';
    """
    (folder / "history.abq").write_text(streams)
    learned = anabranch(
        "fit", "hmm", folder / "history.abq", "--truth", "truth", "--readings", "readings", "--output",
        folder / "learned",
    )  # fmt: skip
    assert learned.status == 0, learned.err
    assert f"steps of {3 * 2} keys" in learned.err
    (folder / "walking.abq").write_text(
        streams
        + """
        CREATE RELATION corridor (location) FROM 'corridor.csv';
        CREATE STREAM at KEY (tag) VALUE (location) TIME t
          INFERRED FROM readings USING HMM 'learned/' METHOD SMOOTH;
        CREATE QUERY walking AS PATTERN at(x, l)[corridor(l)] GROUP BY x;
        """
    )
    done = anabranch("run", folder / "walking.abq", "--output", tmp_path / "out")
    assert done.status == 0, done.err
    assert re.search(r" 0 late, 0 quarantined", done.err), "the model can explain the readings it was learned from"
    answers = pq.read_table(tmp_path / "out" / "walking")
    assert pc.all(pc.equal(answers["lower"], answers["probability"])).as_py()
    true = pq.read_table(folder / "true_locations.parquet").to_pandas()
    first = pq.read_table(folder / "readings.parquet").to_pandas().groupby("tag")["t"].min()
    with (folder / "corridor.csv").open() as file:
        corridor = {row[0] for row in csv.reader(file)}
    walked = sum(row.location in corridor and row.t >= first.get(row.tag, 10**9) for row in true.itertuples())
    assert pc.sum(answers["probability"]).as_py() == pytest.approx(walked, rel=0.25)


def test_a_model_without_labels(spark: SparkSession, history: Path, tmp_path: Path, anabranch: Command) -> None:
    options = ("--readings", "seen", "--output", tmp_path / "guessed")
    done = anabranch("fit", "hmm", history, *options, "--unlabelled", "--locations", "2")
    assert done.status == 0, done.err
    assert "2 locations: " in done.err
    assert "log likelihood per step of held-out keys: not known: there are fewer than three keys" in done.err
    assert len(read_hmm(tmp_path / "guessed").locations) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--truth is missing; name the stream with the true locations, or use --unlabelled"),
        (
            ("--unlabelled", "--tempered"),
            "--tempered needs true locations, which --unlabelled does without",
        ),
        (("--truth", "truth", "--locations", "2"), "--locations is for --unlabelled; a truth has its own locations"),
    ],
)
def test_labels_are_given_or_not(
    options: tuple[str, ...], message: str, history: Path, tmp_path: Path, anabranch: Command
) -> None:
    wrong = anabranch("fit", "hmm", history, "--readings", "seen", "--output", tmp_path / "model", *options)
    assert wrong.status == 2
    assert message in " ".join(wrong.err.split())


BY_KIND = """
CREATE STREAM truth KEY (tag) VALUE (place) TIME t FROM 'truth.csv';
CREATE STREAM seen KEY (tag STRING) VALUE (antenna STRING, kind STRING) TIME t INTEGER FROM 'seen.csv';
CREATE STREAM at KEY (tag STRING) VALUE (place STRING) TIME t INTEGER
  INFERRED FROM seen USING HMM 'model' BY kind METHOD JOINT;
CREATE QUERY moved AS PATTERN at(x, 'hall') THEN at(x, 'lab') GROUP BY x;
"""


@pytest.fixture
def kinds(tmp_path: Path) -> Path:
    """A cart that never moves, and a person who moves every second step."""
    places = {"ann": ["hall", "lab"] * 3, "cart": ["hall"] * 6}
    write(
        tmp_path / "truth.csv", "tag,place,t", *(f"{k},{x},{t}" for k, xs in places.items() for t, x in enumerate(xs))
    )
    rows = [f"ann,east,staff,{t}" for t in (0, 2, 4)] + [f"cart,east,cart,{t}" for t in range(0, 6, 2)]
    write(tmp_path / "seen.csv", "tag,antenna,kind,t", *rows, "dog,east,dog,5")
    path = tmp_path / "kinds.abq"
    path.write_text(BY_KIND)
    return path


def test_classes_of_keys_are_learned_and_used_in_batch_and_streaming(
    spark: SparkSession, kinds: Path, tmp_path: Path, anabranch: Command
) -> None:
    options = ("--truth", "truth", "--readings", "seen", "--by", "kind", "--output", tmp_path / "model")
    history = (tmp_path / "seen.csv").read_text()
    without_dog = history.replace("dog,east,dog,5\n", "")
    (tmp_path / "seen.csv").write_text(without_dog)
    done = anabranch("fit", "hmm", kinds, *options, "--smoothing", "0")
    assert done.status == 0, done.err
    assert done.err.splitlines()[0].startswith("kind = cart: 1 locations, 1 readers, 1 transitions")
    assert done.err.splitlines()[-1].endswith("USING HMM 'model' BY kind METHOD ...")
    assert table(tmp_path / "model" / "kind=staff" / "transition.csv")["hall", "lab"] == 1.0
    assert read_hmm(tmp_path / "model" / "kind=cart").locations == ("hall",)
    (tmp_path / "seen.csv").write_text(history)
    batch = anabranch("run", kinds, "--output", tmp_path / "batch")
    assert batch.status == 0, batch.err
    assert "1 quarantined" in batch.err, "the dog has no model"
    stream = anabranch("stream", kinds, "--once", "--output", tmp_path / "live", "--checkpoint", tmp_path / "state")
    assert stream.status == 0, stream.err
    for folder in ("batch", "live"):
        rows = pq.read_table(tmp_path / folder / "moved").to_pylist()
        assert {(row["t"], row["x"]): row["probability"] for row in rows} == pytest.approx(
            {(1, "ann"): 1.0, (3, "ann"): 1.0, (5, "ann"): 1.0}, abs=1e-9
        )


@pytest.mark.parametrize(
    ("by", "status", "message"),
    [
        ("colour", 2, "--by colour is no class of keys; seen has the columns tag, kind"),
        ("kind", 1, "ann has the classes cart and staff; a key has one class"),
    ],
)
def test_wrong_classes_are_refused(
    by: str, status: int, message: str, spark: SparkSession, kinds: Path, tmp_path: Path, anabranch: Command
) -> None:
    with (tmp_path / "seen.csv").open("a") as file:
        file.write("ann,east,cart,5\n")
    options = ("--readings", "seen", "--unlabelled", "--by", by, "--output", tmp_path / "model")
    wrong = anabranch("fit", "hmm", kinds, *options)
    assert wrong.status == status
    assert message in " ".join(wrong.err.split())
