"""`python -m tests.conformance`: every case, in batch and as a stream, on any Spark and any number of partitions."""

from __future__ import annotations

import argparse
import sys
import time

from anabranch.runtime.spark import make_session
from tests.conformance.cases import FOLDERS, WAYS


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; a line for each folder, way and number of partitions."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__.split(":", 1)[1].strip())
    parser.add_argument("folders", nargs="*", metavar="folder", help=f"{', '.join(FOLDERS)} (all of them)")
    parser.add_argument("--master", default="local[2]", help="where Spark runs (%(default)s)")
    parser.add_argument("--way", choices=list(WAYS), action="append", help="batch or streaming (both)")
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 2, 7], metavar="N", help="how many (1 2 7)")
    given = parser.parse_args(arguments)
    unknown = set(given.folders) - set(FOLDERS)
    if unknown:
        parser.error(f"there is no folder {', '.join(sorted(unknown))}; there are: {', '.join(FOLDERS)}")
    runs = [
        (way, folder, partitions)
        for way in given.way or WAYS
        for folder in WAYS[way].folders
        for partitions in given.partitions
        if folder in (given.folders or FOLDERS)
    ]
    spark = make_session(given.master)
    wrong = 0
    try:
        for way, folder, partitions in runs:
            started = time.monotonic()
            verdict = WAYS[way].run(spark, folder, partitions)
            took = time.monotonic() - started
            sys.stdout.write(f"{folder:15} {way:10} {partitions:2} partitions {took:6.1f} s  {verdict.said}\n")
            sys.stdout.flush()
            wrong += not verdict.right
    finally:
        spark.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
