"""What the options of Spark's JVM gain for a small query: `python -m benchmarks.start` (Linux only).

Runs `anabranch run` on the coffee example in processes of its own, and measures the processor time of their JVMs by
looking at them until they exit. A JVM without options of ours, one with the archive of classes, and one with all
options take turns; the median is shown.
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

WORKBOOK = Path(__file__).parents[1] / "examples" / "coffee.abq"

#: Names the processes of one measurement, which inherit it.
MARKER = "ANABRANCH_MEASURED"

_TICKS = os.sysconf("SC_CLK_TCK")


def measure(environment: dict[str, str]) -> tuple[float, float]:
    """Run the example; return the seconds until the command has ended, and the processor seconds of its JVMs."""
    marker = f"{MARKER}={uuid.uuid4()}"
    name, value = marker.split("=")
    command = [sys.executable, "-m", "anabranch", "run", str(WORKBOOK)]
    begin = time.monotonic()
    process = subprocess.Popen(
        command, env={**environment, name: value}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    seconds, used = 0.0, {}
    while True:
        running = _java_processes(marker)
        used |= running
        if process.poll() is not None:
            seconds = seconds or time.monotonic() - begin
            if not running:
                break
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
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
        first = measure(usual)
        time.sleep(12)  # the archive of the first session is used when it is ten seconds old
        measure(usual)
        (archive,) = Path(folder).rglob("*.jsa")
        variants = {
            "no options": {**usual, "SPARK_SUBMIT_OPTS": "-Xlog:disable"},
            "archive of classes": {**usual, "SPARK_SUBMIT_OPTS": f"-XX:SharedArchiveFile={archive} -Xlog:disable"},
            "all options": usual,
        }
        results: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
        for _ in range(rounds):
            for name, environment in variants.items():
                results[name].append(measure(environment))
    print("| JVM | seconds | processor seconds of the JVM |\n| --- | --- | --- |")
    print(f"| first session, which writes the archive | {first[0]:.1f} | {first[1]:.1f} |")
    for name, measured in results.items():
        seconds, processor = (statistics.median(column) for column in zip(*measured, strict=True))
        print(f"| {name} | {seconds:.1f} | {processor:.1f} |")


if __name__ == "__main__":
    main()
