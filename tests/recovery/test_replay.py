"""A micro-batch that Spark replays, because the machine stopped before the commit, writes its answers once."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.runtime.office import ANSWERS, ROWS, same
from tests.runtime.streams import Office


def test_a_batch_that_is_replayed_after_its_file_was_written_gives_its_answers_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    office = Office(spark, tmp_path)
    for number, row in enumerate(ROWS):
        office.add(str(number), row)
    office.add("9", ("ann", "hall", 9, 1.0), (None, "hall", 9, 1.0))
    office.process_files()
    office.stop()
    answers, quarantined_rows = office.answers, office.quarantined()
    assert same(answers, ANSWERS)
    # As if the machine had stopped after the sink's rename, before Spark's commit of the batch.
    commits = tmp_path / "checkpoint" / "spark" / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)
    restarted = Office(spark, tmp_path)
    restarted.process_files()
    assert restarted.counts.read == 2, "the batch was replayed"
    assert same(restarted.answers, answers)
    assert restarted.quarantined() == quarantined_rows
    restarted.end()
    restarted.stop()
    assert same(restarted.answers, ANSWERS)
