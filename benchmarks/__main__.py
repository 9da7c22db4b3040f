"""`python -m benchmarks [names]`: run benchmarks, print a table, and with --json also save the measurements."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from importlib import import_module

from benchmarks.harness import Options, Record, append_json, print_table

#: The families, and the module of each; it has a dict PARTS of the functions that measure.
FAMILIES = {
    "whole": "benchmarks.whole",
    "streaming": "benchmarks.live",
    "pattern": "benchmarks.pattern",
    "classes": "benchmarks.pattern.classes",
    "objects": "benchmarks.pattern.objects",
    "inference": "benchmarks.inference",
    "quality_rfid": "benchmarks.quality",
    "sequence": "benchmarks.sequence",
    "relate": "benchmarks.relate",
    "monitor": "benchmarks.monitor",
    "constrain": "benchmarks.constrain",
    "calibration": "benchmarks.calibration",
}

Part = Callable[[Options], Iterable[Record]]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks that the command line names."""
    parts = _all_parts()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split(":", 1)[1].strip())
    parser.add_argument("names", nargs="*", help=f"families or parts (default: all): {', '.join(parts)}")
    parser.add_argument("--json", metavar="FILE", help="append one record per measurement to FILE, as JSON lines")
    parser.add_argument("--quick", action="store_true", help="small workloads, to check that everything runs")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each measurement (default: %(default)s)")
    parser.add_argument("--profile", action="store_true", help="also print a profile of the in-process run")
    parsed = parser.parse_args(arguments)
    selected = _select(parts, parsed.names)
    if not selected:
        parser.error(f"no benchmark is named {' or '.join(parsed.names)}; the names are: {', '.join(parts)}")
    options = Options(quick=parsed.quick, rounds=parsed.rounds, profile=parsed.profile)
    for name in selected:
        records = list(parts[name](options))
        print_table(records)
        if parsed.json:
            append_json(records, parsed.json, options)
    return 0


def _all_parts() -> dict[str, Part]:
    """Return every part by its full name, family.part."""
    return {
        f"{family}.{part}": run
        for family, module in FAMILIES.items()
        for part, run in import_module(module).PARTS.items()
    }


def _select(parts: dict[str, Part], names: list[str]) -> list[str]:
    """Return the parts that the names stand for: all without names, none if some name matches nothing."""
    if not names:
        return list(parts)
    matches = [[part for part in parts if part == name or part.startswith(f"{name}.")] for name in names]
    return [part for matching in matches for part in matching] if all(matches) else []


if __name__ == "__main__":
    sys.exit(main())
