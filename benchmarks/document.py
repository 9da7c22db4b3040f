"""`python -m benchmarks.document [RESULTS]`: write the tables of the documentation from measurements.

A page has the text, and a pair of comments around each table: `results: NAME` and `end`. What is between them is
replaced by the table of that name, with the machine, the commit and the day. If its parts are not in the results, what
is there stays as it is. `--check` writes nothing, and fails if a page would change.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import scale, tables, targets
from benchmarks.results import RESULTS, Results

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("benchmarks.md", "scale.md")

_REGION = re.compile(r"(<!-- results: (?P<name>[\w.]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)

Rows = Sequence[Sequence[str]]

#: The tables: the parts that each needs, and the function that makes its rows, the first of which is the header.
TABLES: dict[str, tuple[tuple[str, ...], Callable[[Results], Rows]]] = {
    "targets": (("whole.large", "whole.clustered"), targets.table),
    "whole": (("whole.pattern", "whole.sequence", "whole.relate", "whole.monitor", "whole.constrain"), tables.whole),
    "micro_batches": (("streaming.batches",), tables.micro_batches),
    "operators": (("streaming.operators",), tables.operators),
    "latencies": (("streaming.rates",), tables.latencies),
    "idle": (("whole.idle",), tables.idle),
    "stages": (("whole.stages",), tables.stages),
    "memory": (("whole.memory",), tables.memory),
    "growth": (tables.GROWTH_PARTS, tables.growth),
    "peers": (("peers",), tables.peers),
    "cost": (("whole.cost", "whole.stages"), scale.cost_table),
    "scale": (("whole.cost", "whole.stages"), scale.scale_table),
    "inference.kernel": (("inference.kernel",), tables.inference),
    "pattern.kernel": (("pattern.kernel",), tables.pattern_kernel),
    "objects": (("objects.realtime", "objects.archived", "objects.safe"), tables.objects),
    **{part: ((part,), tables.figure(part)) for part in tables.FIGURE_PARTS},
}


def document(text: str, results: Results) -> str:
    """Return a page with its tables made from results."""

    def replaced(match: re.Match[str]) -> str:
        parts, make = TABLES[match["name"]]
        used = [results.of(part) for part in parts]
        if not all(used):
            return match[0]
        origins = dict.fromkeys(str(origin) for found in used for origin in found.origins)
        body = "\n".join([markdown(make(results)), "", *(f"*{origin}*\n" for origin in origins)])
        return f"{match[1]}\n{body}\n{match[4]}"

    return _REGION.sub(replaced, text)


def markdown(rows: Rows) -> str:
    r"""Return a table.

    >>> print(markdown([["a", "b"], ["1", "x|y"]]))
    | a | b |
    | --- | --- |
    | 1 | x\|y |
    """
    header, *body = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(re.sub(r"\|  (?=\|)", "| ", f"| {' | '.join(line)} |") for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.document", description=__doc__.split(":", 1)[1].strip())
    parser.add_argument("results", type=Path, nargs="*", default=[RESULTS], help="files or folders of measurements")
    parser.add_argument("--check", action="store_true", help="fail if a page would change")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder of the pages")
    parsed = parser.parse_args(arguments)
    results = Results.read(parsed.results)
    changed = []
    for name in PAGES:
        page = parsed.docs / name
        text = page.read_text(encoding="utf-8")
        new = document(text, results)
        if new != text:
            changed.append(name)
            if not parsed.check:
                page.write_text(new, encoding="utf-8")
    print(f"{'would change' if parsed.check else 'changed'}: {', '.join(changed) or 'nothing'}")
    return 1 if parsed.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
