"""`python -m tests.conformance`: every case, in batch and as a stream, on any Spark and any number of partitions."""

from __future__ import annotations

import argparse
import sys
import time

from tests.conformance.cases import FOLDERS, MODES, SHAPES, load_folder
from tests.conformance.sessions import SESSIONS


def main(arguments: list[str] | None = None) -> int:
    """Run the selected cases, and print a line for each folder, mode and number of partitions."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__.split(":", 1)[1].strip())
    parser.add_argument("folders", nargs="*", metavar="folder", help=f"{', '.join(FOLDERS)} (all of them)")
    parser.add_argument("--master", default="local[2]", help="where Spark runs (%(default)s)")
    parser.add_argument("--session", choices=list(SESSIONS), default="own", help="how Spark is set up (%(default)s)")
    parser.add_argument("--mode", choices=list(MODES), action="append", help="batch or streaming (both)")
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 2, 7], metavar="N", help="how many (1 2 7)")
    parser.add_argument(
        "--shape", action="append", default=[], help=f"the shapes of {', '.join(SHAPES)} (supported ones)"
    )
    options = parser.parse_args(arguments)
    unknown = set(options.folders) - set(FOLDERS)
    if unknown:
        parser.error(f"there is no folder {', '.join(sorted(unknown))}; there are: {', '.join(FOLDERS)}")
    runs = [
        (mode, folder, partitions)
        for mode in options.mode or MODES
        for folder in MODES[mode].folders
        for partitions in options.partitions
        if folder in (options.folders or FOLDERS)
    ]
    spark = SESSIONS[options.session](options.master)
    sys.stdout.write(f"Spark {spark.version}, {options.session} session on {options.master}\n")
    failed = 0
    try:
        for mode, folder, partitions in runs:
            started = time.monotonic()
            verdict = MODES[mode].run(spark, load_folder(folder, options.shape), partitions)
            took = time.monotonic() - started
            sys.stdout.write(f"{folder:15} {mode:10} {partitions:2} partitions {took:6.1f} s  {verdict.output}\n")
            sys.stdout.flush()
            failed += not verdict.passed
    finally:
        spark.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
