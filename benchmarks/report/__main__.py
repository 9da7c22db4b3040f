"""`python -m benchmarks.report [RESULTS]`: write all measurements as one page that needs no network."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.report.page import report
from benchmarks.results import RESULTS, Results


def main(arguments: list[str] | None = None) -> int:
    """Write the page; return 2 if there is nothing to show."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__.split(":", 1)[1].strip())
    parser.add_argument("results", type=Path, nargs="*", default=[RESULTS], help="files or folders of measurements")
    parser.add_argument("-o", "--output", type=Path, help="the page (default: report.html beside the first results)")
    parsed = parser.parse_args(arguments)
    try:
        results = Results.read(parsed.results)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if not results:
        parser.error(f"there are no measurements in {', '.join(map(str, parsed.results))}")
    first = parsed.results[0]
    output = parsed.output or (first if first.is_dir() else first.parent) / "report.html"
    output.write_text(report(results), encoding="utf-8")
    print(f"wrote {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
