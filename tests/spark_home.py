"""A SPARK_HOME for the tests: the installed Spark, set up to start faster.

- It has no zip file with Spark's Python sources. A Python process that Spark starts would import them instead of the
  installed ones, and compile them each time, which takes most of a second. There is one such process for each session
  and each start of a stream, and the tests start hundreds.
- `python -m tests.spark_home` writes a Java class archive (CDS) with the classes that a session and a stream load. It
  halves the start of a session. Without it, or if Java rejects it, the tests are slower.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyspark
from pyspark import SparkContext

HOME = Path(__file__).parents[1] / ".pytest_cache" / f"spark-{pyspark.__version__}"
CLASSES = HOME / "classes.jsa"

#: The JVMs of the tests are short-lived. The second compiler (C2), made for programs that run for hours, and the
#: garbage collector for many cores would take half of their time; the first compiler (C1) may start earlier. Without
#: C2, Java has a small cache for compiled code and discards what does not fit, so the cache is enlarged.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:CompileThresholdScaling=0.3 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
_OPTIONS = f"{SHORT_LIVED} -Xmn1g -Xlog:disable -Xlog:all=error:stderr"


def use() -> None:
    """Make this process, and those that it starts, use this SPARK_HOME."""
    HOME.mkdir(parents=True, exist_ok=True)
    for part in ("bin", "sbin", "jars", "data"):
        if not (HOME / part).exists():
            _link(HOME / part, Path(pyspark.__file__).parent / part)
    os.environ.setdefault("SPARK_HOME", str(HOME))
    archive = f" -XX:SharedArchiveFile={CLASSES}" if CLASSES.exists() else ""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _OPTIONS + archive)


def _link(path: Path, target: Path) -> None:
    """Create a link, also where another process creates the same one at this moment."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        (Path(folder) / "link").symlink_to(target)
        os.replace(Path(folder) / "link", path)


def write_class_archive() -> None:
    """Run a stream and let Java archive the classes that it has loaded."""
    archive = CLASSES.with_suffix(".new")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_OPTIONS} -XX:ArchiveClassesAtExit={archive}"
    use()

    from anabranch.runtime.spark import make_session
    from tests.runtime.office import ROWS
    from tests.runtime.streams import Office

    spark = make_session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    with tempfile.TemporaryDirectory() as folder:
        office = Office(spark, Path(folder))
        office.add("rows", *ROWS)
        office.process_files()
        office.end()
        office.stop()
        office.session.run("coffee").collect()
    java = SparkContext._gateway.proc
    spark.stop()
    # Java writes the archive when it exits, which it does when its standard input is closed.
    java.stdin.close()
    java.wait()
    if archive.exists():
        archive.replace(CLASSES)


if __name__ == "__main__" and not CLASSES.exists():
    write_class_archive()
