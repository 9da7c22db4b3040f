"""Run as a program by test_java.py: uses each feature of Spark that Anabranch needs, on the Java from pip."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from anabranch.runtime.java import ensure_java

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class RunningTotal(StatefulProcessor):
    """Keeps the total of each key from one micro-batch to the next."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", "total long")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        before = self.total.get()[0] if self.total.exists() else 0
        total = before + sum(row.n for row in rows)
        self.total.update((total,))
        yield Row(key=key[0], total=total)

    def close(self) -> None:
        pass


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Double every number, in Arrow."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.compute.multiply(batch.column(0), 2)], names=["id"])


def totals(spark: SparkSession, folder: Path) -> dict[str, object]:
    """The final running totals of two files, one a micro-batch, with the state in RocksDB."""
    source = folder / "source"
    source.mkdir()
    for number, values in enumerate(([1, 2, 3], [10, 20, 30])):
        rows = pa.table({"key": ["a", "b", "a"], "n": pa.array(values, pa.int64())})
        pyarrow.parquet.write_table(rows, source / f"{number}.parquet")
    stream = spark.readStream.schema("key string, n long").option("maxFilesPerTrigger", 1).parquet(str(source))
    answers = stream.groupBy("key").transformWithState(RunningTotal(), "key string, total long", "Update", "None")
    query = (
        answers.writeStream.format("memory")
        .queryName("totals")
        .outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.table("totals").collect()
    return {
        "totals": {key: max(row.total for row in rows if row.key == key) for key in ("a", "b")},
        "batches": len(rows) // 2,
    }


def main(folder: Path) -> None:
    """Print the results as one line of JSON."""
    home = ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .getOrCreate()
    )
    numbers = spark.range(1000)
    results = {
        "home": str(home),
        "java": spark.sparkContext._jvm.System.getProperty("java.home"),
        "count": spark.sql("SELECT count(*) FROM range(1000) WHERE id % 2 = 0").first()[0],
        "doubled": numbers.mapInArrow(doubled, "id long").selectExpr("sum(id)").first()[0],
        **totals(spark, folder),
        "state": sorted({path.suffix for path in (folder / "checkpoint" / "state").rglob("*") if path.suffix}),
    }
    spark.stop()
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
