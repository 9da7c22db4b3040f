"""`python -m benchmarks [names]`: run benchmarks, print a table, and with --json keep the figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from importlib import import_module

from benchmarks.harness import Options, Record, append_json, print_table

#: The families that have benchmarks; each is a module of this package with a dict PARTS of what it measures.
FAMILIES = (
    "whole",
    "pattern",
    "classes",
    "inference",
    "quality_rfid",
    "sequence",
    "relate",
    "monitor",
    "constrain",
)

Part = Callable[[Options], Iterable[Record]]


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for."""
    parts = _all_parts()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split(":", 1)[1].strip())
    parser.add_argument("names", nargs="*", help=f"a family, or a part of one: {', '.join(parts)}")
    parser.add_argument("--json", metavar="FILE", help="append one record a figure to FILE, as JSON lines")
    parser.add_argument("--quick", action="store_true", help="small workloads: does everything run? not for figures")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each measurement (default %(default)s)")
    parser.add_argument("--profile", action="store_true", help="also print where the time of the in-process run goes")
    given = parser.parse_args(arguments)
    chosen = _chosen(parts, given.names)
    if not chosen:
        parser.error(f"there is no benchmark {' '.join(given.names)}; there are: {', '.join(parts)}")
    options = Options(quick=given.quick, rounds=given.rounds, profile=given.profile)
    for name in chosen:
        records = list(parts[name](options))
        print_table(records)
        if given.json:
            append_json(records, given.json)
    return 0


def _all_parts() -> dict[str, Part]:
    """Every part by its full name, family.part."""
    return {
        f"{family}.{part}": run
        for family in FAMILIES
        for part, run in import_module(f"benchmarks.{family}").PARTS.items()
    }


def _chosen(parts: dict[str, Part], names: list[str]) -> list[str]:
    """The parts that the names ask for, all of them without names; none where a name asks for nothing."""
    if not names:
        return list(parts)
    found = [[part for part in parts if part == name or part.startswith(f"{name}.")] for name in names]
    return [part for each in found for part in each] if all(found) else []


if __name__ == "__main__":
    sys.exit(main())
