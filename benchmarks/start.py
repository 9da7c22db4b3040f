"""What the options of Spark's JVM gain for a small query: `python -m benchmarks.start` (Linux only).

Runs `anabranch run` on the coffee example in processes of its own, and measures the processor time of their JVMs by
looking at them until the command has ended. A JVM without options of ours, one with the archive of classes, one with
all options, one without an archive, and one that will write an archive take turns; the median is shown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from anabranch.runtime.class_archive import WRITES

WORKBOOK = Path(__file__).parents[1] / "examples" / "coffee.abq"

#: Names the processes of one measurement, which inherit it.
MARKER = "ANABRANCH_MEASURED"

_QUIET_SECONDS = 8

_TICKS = os.sysconf("SC_CLK_TCK")


def measure(environment: dict[str, str]) -> tuple[float, float]:
    """Run the example; return the seconds until the command has ended, and the processor seconds of its JVMs by then.

    Waits for JVMs that outlive the command: they would slow down the next measurement.
    """
    marker = f"{MARKER}={uuid.uuid4()}"
    name, value = marker.split("=")
    command = [sys.executable, "-m", "anabranch", "run", str(WORKBOOK)]
    begin = time.monotonic()
    process = subprocess.Popen(
        command, env={**environment, name: value}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    used = {}
    while process.poll() is None:
        used |= _java_processes(marker)
        time.sleep(0.05)
    seconds = time.monotonic() - begin
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    # A process in the background starts its JVM seconds after the command has ended.
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _QUIET_SECONDS:
        if _java_processes(marker):
            quiet_since = time.monotonic()
        time.sleep(0.5)
    return seconds, sum(used.values())


def _java_processes(marker: str) -> dict[int, float]:
    """The processor seconds so far of each JVM that inherited the marker."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if "java" not in (folder / "comm").read_text() or marker.encode() not in (folder / "environ").read_bytes():
                continue
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        found[int(folder.name)] = (int(fields[11]) + int(fields[12])) / _TICKS
    return found


def main() -> None:
    """Measure all variants and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="anabranch-start-") as folder:
        usual = {**os.environ, "ANABRANCH_CACHE": folder}
        usual.pop("SPARK_SUBMIT_OPTS", None)
        measure(usual)  # afterwards, a process in the background writes the archive
        time.sleep(12)  # an archive is used when it is ten seconds old
        measure(usual)
        (archive,) = Path(folder).rglob("*.jsa")
        variants = {
            "no options": {**usual, "SPARK_SUBMIT_OPTS": "-Xlog:disable"},
            "archive of classes": {**usual, "SPARK_SUBMIT_OPTS": f"-XX:SharedArchiveFile={archive} -Xlog:disable"},
            "all options": usual,
            "all options, first session": usual,
            "all options, first session, if it wrote the archive": {**usual, WRITES: "1"},
        }
        results: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
        for number in range(rounds):
            for name, environment in variants.items():
                if "first session" in name:
                    environment = {**environment, "ANABRANCH_CACHE": os.path.join(folder, f"{name} {number}")}
                results[name].append(measure(environment))
    print("| JVM | seconds | processor seconds of the JVM |\n| --- | --- | --- |")
    for name, measured in results.items():
        seconds, processor = (statistics.median(column) for column in zip(*measured, strict=True))
        print(f"| {name} | {seconds:.1f} | {processor:.1f} |")


if __name__ == "__main__":
    main()
