"""How long a new user waits, step by step: `python -m benchmarks.first_use`.

Three installations start from nothing: a clean clone, a wheel in a new environment, and the same wheel for a user
without a home directory who can write nothing but a temporary folder. In each, the first run of each kind is compared
with the second. The clone has an empty cache, and so has the wheel. The packages are downloaded by pip, from its own
cache where that has them. Root takes the rights of `nobody` for the third installation, so `--python` must then name a
Python that all users can read.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

#: A small scenario of each kind: its name and its options.
SCENARIOS = {
    "PATTERN": ("office", "--people", "2", "--minutes", "20"),
    "SEQUENCE": ("shop", "--items", "200"),
    "RELATE": ("traffic",),
    "MONITOR": ("vehicles", "--objects", "30"),
    "CONSTRAIN": ("buoys",),
}

#: The user of the third installation; nobody's numbers on Linux.
NOBODY = 65534


class Step(NamedTuple):
    """A step and its time: by the clock, and of the processor without Spark's JVM, which outlives the command."""

    name: str
    seconds: float
    processor: float


@dataclass(frozen=True)
class Installation:
    """Where commands come from, and in which environment they run."""

    name: str
    folder: Path
    environment: dict[str, str]
    user: int | None = None

    def time(self, name: str, *command: str) -> Step:
        """Run a command and measure it; what it prints is shown if it fails."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.monotonic()
        finished = subprocess.run(
            command, cwd=self.folder, env=self.environment, user=self.user, group=self.user,
            capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.monotonic() - begin
        if finished.returncode:
            raise SystemExit(f"{name} failed:\n{finished.stdout}{finished.stderr}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{self.name:<12} {name:<40} {seconds:7.1f} s {processor:7.1f} CPU s", flush=True)
        return Step(name, seconds, processor)


def steps_of(installation: Installation, bin_folder: Path, scenarios: Path) -> Iterator[Step]:
    """The steps after an installation: small commands, each kind twice, and the demo."""
    command = str(bin_folder / "anabranch")
    yield installation.time("anabranch --version", command, "--version")
    yield installation.time("anabranch --help", command, "--help")
    coffee = str(scenarios / "examples" / "coffee.abq")
    yield installation.time("anabranch check", command, "check", coffee)
    for kind, (scenario, *_) in SCENARIOS.items():
        (workbook,) = (scenarios / scenario).glob("*.abq")
        for turn in ("first", "second"):
            yield installation.time(f"anabranch run, {kind}, {turn}", command, "run", str(workbook))


def environment_with(**changes: str) -> dict[str, str]:
    """The environment without anything that names another installation or cache."""
    removed = ("PYTHONPATH", "VIRTUAL_ENV", "ANABRANCH_CACHE", "XDG_CACHE_HOME", "SPARK_HOME", "SPARK_SUBMIT_OPTS")
    return {**{name: value for name, value in os.environ.items() if name not in removed}, **changes}


def simulate(folder: Path) -> None:
    """Write the scenarios, with the installation that runs this benchmark, and copy the examples."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    for scenario, *options in SCENARIOS.values():
        subprocess.run(
            [sys.executable, "-m", "anabranch", "simulate", scenario, "--output", str(folder / scenario), *options],
            check=True, capture_output=True,
        )  # fmt: skip
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)


def clone(folder: Path, scenarios: Path, python: str) -> Iterator[Step]:
    """A clean clone: `make install`, `make demo`, and the commands."""
    target = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(target)], check=True)
    installation = Installation("clone", target, environment_with(ANABRANCH_CACHE=str(folder / "cache-clone")))
    yield installation.time("make install", "make", "install", f"PYTHON={python}")
    yield installation.time("make demo, first", "make", "demo")
    yield installation.time("make demo, second", "make", "demo")
    yield from steps_of(installation, target / ".venv" / "bin", scenarios)


def wheel(folder: Path, scenarios: Path, python: str) -> Iterator[Step]:
    """A wheel in a new environment."""
    installation = Installation("wheel", folder, environment_with(ANABRANCH_CACHE=str(folder / "cache-wheel")))
    yield installation.time("make wheel", sys.executable, str(ROOT / "scripts" / "build_wheel.py"), str(folder))
    (built,) = folder.glob("*.whl")
    # Debian's Python has no pip for new environments, so the pip of this one is used.
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    bin_folder = folder / "venv" / "bin"
    pip = (sys.executable, "-m", "pip", "--python", str(bin_folder / "python"))
    yield installation.time("pip install", *pip, "install", "--quiet", str(built))
    yield from steps_of(installation, bin_folder, scenarios)


def read_only(folder: Path, scenarios: Path, python: str) -> Iterator[Step]:
    """The environment of the wheel for a user without a home, who can write a temporary folder only."""
    temporary = folder / "temporary"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o777)
    environment = environment_with(HOME="/nonexistent", TMPDIR=str(temporary), SPARK_LOCAL_DIRS=str(temporary))
    installation = Installation("read-only", temporary, environment, NOBODY if os.getuid() == 0 else None)
    yield from steps_of(installation, folder / "venv" / "bin", scenarios)


def main() -> None:
    """Run all installations and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="a new folder to work in, which stays (default: a temporary one)")
    parser.add_argument("--python", default=sys.executable, help="the Python of the installations (default: this one)")
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help="clone, wheel, read-only (in the environment of wheel); default: all",
    )
    arguments = parser.parse_args()
    parts = {part.__name__.replace("_", "-"): part for part in (clone, wheel, read_only)}
    if unknown := set(arguments.parts) - set(parts):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; choose from {', '.join(parts)}")
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="anabranch-first-use-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    scenarios = folder / "scenarios"
    simulate(scenarios)
    try:
        tables = {
            name: list(part(folder, scenarios, arguments.python))
            for name, part in parts.items()
            if not arguments.parts or name in arguments.parts
        }
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    names = list(dict.fromkeys(step.name for steps in tables.values() for step in steps))
    print(f"\n| step | {' | '.join(tables)} |\n| --- |{' --- |' * len(tables)}")
    for name in names:
        times = [next((f"{step.seconds:.1f}" for step in steps if step.name == name), "") for steps in tables.values()]
        print(f"| {name} | {' | '.join(times)} |")


if __name__ == "__main__":
    main()
