"""`python -m benchmarks [names]`: run benchmarks, print tables, and save the measurements with --json or --save."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from benchmarks import targets
from benchmarks.harness import Options, Record, append_json, print_table
from benchmarks.results import RESULTS, save

#: The families, and the modules of each; a module has a dict PARTS of the functions that measure.
FAMILIES = {
    "whole": "benchmarks.whole benchmarks.stages benchmarks.memory benchmarks.cost",
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
    "composed": "benchmarks.composed",
    "calibration": "benchmarks.calibration",
    "peers": "benchmarks.peers",
}

#: Names that stand for several parts: `chosen` takes less than half an hour on two cores, `small --quick` one minute.
SETS = {
    "chosen": (
        "whole.stages whole.cost whole.memory pattern.growth inference.growth sequence.growth relate.growth "
        "monitor.growth constrain.growth objects.realtime objects.archived objects.safe relate.lost constrain.queries "
        "peers"
    ),
    "targets": targets.MEASURED,
    "small": "pattern.growth inference.growth sequence.growth relate.lost monitor.growth",
}

Part = Callable[[Options], Iterable[Record]]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks that the command line names; return 1 if a part failed."""
    parts = _all_parts()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split(":", 1)[1].strip())
    names = f"families, parts or sets ({', '.join(SETS)}); the default is all parts: {', '.join(parts)}"
    parser.add_argument("names", nargs="*", help=names)
    parser.add_argument("--json", metavar="FILE", help="append one record per measurement to FILE, as JSON lines")
    parser.add_argument(
        "--save",
        metavar="FOLDER",
        type=Path,
        nargs="?",
        const=RESULTS,
        help=f"replace the records of these parts in FOLDER, one file per family (default: {RESULTS.name} beside this)",
    )
    parser.add_argument("--quick", action="store_true", help="small workloads, to check that everything runs")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each measurement (default: %(default)s)")
    parser.add_argument("--rows", type=int, help="the most rows, for parts whose size can be chosen (whole.memory)")
    parser.add_argument("--profile", action="store_true", help="also print a profile of the in-process run")
    parsed = parser.parse_args(arguments)
    selected = _select(parts, [part for name in parsed.names for part in SETS.get(name, name).split()])
    if not selected:
        parser.error(f"no benchmark is named {' or '.join(parsed.names)}; the names are: {', '.join(parts)}")
    options = Options(quick=parsed.quick, rounds=parsed.rounds, profile=parsed.profile, rows=parsed.rows)
    failed = [name for name in selected if not _run(name, parts[name], options, parsed.json, parsed.save)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _run(name: str, part: Part, options: Options, json: str | None, folder: Path | None) -> bool:
    """Run one part; returns whether it succeeded. A failure does not end a run of several hours."""
    try:
        records = list(part(options))
    except Exception:
        print(f"{name} failed:", file=sys.stderr)
        traceback.print_exc()
        return False
    print_table(records)
    if json:
        append_json(records, json, options)
    if folder:
        save(records, folder, options)
    return True


def _all_parts() -> dict[str, Part]:
    """Return every part by its full name, family.part."""
    return {
        f"{family}.{part}": run
        for family, modules in FAMILIES.items()
        for module in modules.split()
        for part, run in import_module(module).PARTS.items()
    }


def _select(parts: dict[str, Part], names: list[str]) -> list[str]:
    """Return the parts that the names stand for: all without names, none if some name matches nothing."""
    if not names:
        return list(parts)
    matches = [[part for part in parts if part == name or part.startswith(f"{name}.")] for name in names]
    return list(dict.fromkeys(part for matching in matches for part in matching)) if all(matches) else []


if __name__ == "__main__":
    sys.exit(main())
