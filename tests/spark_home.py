"""Spark for the tests: the installed one, made to start faster.

- Its copy of its Python sources in an archive is left out. A Python process that Spark starts takes these before the
  installed ones, and compiles them each time: most of a second. There is one such process for each session and each
  start of a stream, and the tests start hundreds.
- `python -m tests.spark_home` lets Java keep the classes that a session and a stream need, as it has them in memory:
  that is half of the start of a session. Without, or where Java does not want them, all is slower, and the same.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyspark
from pyspark import SparkContext

HOME = Path(__file__).parents[1] / ".pytest_cache" / f"spark-{pyspark.__version__}"
CLASSES = HOME / "classes.jsa"

#: A JVM of the tests, here or in a process of its own, does little and not for long: the compiler that makes code fast
#: for hours, and the collector for many cores, would take half of its time. The other compiler may begin earlier.
#: Without the first, Java has little room for compiled code: what does not fit is thrown away, and compiled again.
_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:CompileThresholdScaling=0.3 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xmn1g "
    "-Xlog:disable -Xlog:all=error:stderr"
)


def use() -> None:
    """Let this process, and those that it starts, use Spark from here."""
    HOME.mkdir(parents=True, exist_ok=True)
    for part in ("bin", "sbin", "jars", "data"):
        if not (HOME / part).exists():
            _link(HOME / part, Path(pyspark.__file__).parent / part)
    os.environ.setdefault("SPARK_HOME", str(HOME))
    kept = f" -XX:SharedArchiveFile={CLASSES}" if CLASSES.exists() else ""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _OPTIONS + kept)


def _link(place: Path, target: Path) -> None:
    """Make a link that another process may be making too."""
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        (Path(folder) / "link").symlink_to(target)
        os.replace(Path(folder) / "link", place)


def keep_classes() -> None:
    """Run a stream and let Java write down what it has loaded."""
    made = CLASSES.with_suffix(".new")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_OPTIONS} -XX:ArchiveClassesAtExit={made}"
    use()

    from anabranch.runtime.spark import make_session
    from tests.runtime.office import ROWS
    from tests.runtime.streams import Office

    spark = make_session("local[2]", spark__sql__shuffle__partitions="2")
    with tempfile.TemporaryDirectory() as folder:
        office = Office(spark, Path(folder))
        office.add("rows", *ROWS)
        office.take()
        office.end()
        office.stop()
        office.session.run("coffee").collect()
    java = SparkContext._gateway.proc
    spark.stop()
    # Java ends, and writes, when nobody speaks to it any more.
    java.stdin.close()
    java.wait()
    if made.exists():
        made.replace(CLASSES)


if __name__ == "__main__" and not CLASSES.exists():
    keep_classes()
