"""Kills a stream many times while a million events arrive, and compares its answers with those of `run`.

Run as `make recovery` or `python -m tests.recovery.long`. The queries of all chosen kinds are in one workbook, so one
kill hits all of them. The exit status is 1 if an answer is lost, repeated or different.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from statistics import median

from tests import spark_home
from tests.recovery.campaign import Campaign, drawn_victims
from tests.recovery.readers import Comparison, compare, installed_readers
from tests.recovery.workload import GROUPS, Size

from anabranch import Session


def report_of(campaign: Campaign, comparisons: list[Comparison], seconds: float) -> dict:
    """The figures of a campaign: of all kinds together, and of each."""
    times = [kill.first_output for kill in campaign.kills if kill.first_output is not None]
    victims = Counter(kill.victim for kill in campaign.kills)
    kinds = {}
    for kind, group in zip(campaign.kinds, campaign.groups, strict=True):
        own = [comparison for comparison in comparisons if comparison.query in group.queries]
        kinds[kind] = {
            "queries": list(group.queries),
            "kills": len(campaign.kills),
            "after a committed micro-batch": sum(group.checkpoint in kill.committed for kill in campaign.kills),
            "answers": sum(comparison.answers for comparison in own if comparison.reader == own[0].reader),
            "lost": max(comparison.lost for comparison in own),
            "repeated": max(comparison.repeated for comparison in own),
            "wrong": max(comparison.wrong for comparison in own),
        }
    return {
        "seed": campaign.seed,
        "events per stream": {name: rows.num_rows for name, rows in campaign.files.rows.items()},
        "files": campaign.files.count,
        "killed": dict(victims),
        "process starts": campaign.starts,
        "seconds to first answers after a restart": {
            "median": round(median(times), 1), "longest": round(max(times), 1),
        } if times else {},
        "readers": sorted({comparison.reader for comparison in comparisons}),
        "minutes": round(seconds / 60, 1),
        "kinds": kinds,
        "comparisons": [asdict(comparison) for comparison in comparisons],
    }  # fmt: skip


def as_text(report: dict) -> str:
    """The report as lines of text."""
    lines = [f"{name}: {report[name]}" for name in report if name not in ("kinds", "comparisons")]
    columns = ["kills", "after a committed micro-batch", "answers", "lost", "repeated", "wrong"]
    lines += ["", " | ".join(["kind", *columns])]
    lines += [" | ".join([kind, *(f"{row[name]:,}" for name in columns)]) for kind, row in report["kinds"].items()]
    return "\n".join(lines) + "\n"


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--events", type=int, default=1_000_000, help="rows of each stream")
    parser.add_argument("--files", type=int, default=250, help="files in which the rows of a stream arrive")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="kill no more after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="an empty folder; the default is a temporary one")
    parser.add_argument("--report", type=Path, default=Path("recovery.json"))
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    with tempfile.TemporaryDirectory(prefix="anabranch-recovery-") as temporary:
        report = run(options, options.folder or Path(temporary))
    options.report.write_text(json.dumps(report, indent=1) + "\n")
    sys.stdout.write(as_text(report))
    failed = any(row["lost"] or row["repeated"] or row["wrong"] for row in report["kinds"].values())
    return 1 if failed else 0


def run(options: argparse.Namespace, folder: Path) -> dict:
    """Kill, restart, finish and compare."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(folder, options.kinds, Size(options.events, options.files), options.seed)
    victims = drawn_victims(options.kills, random.Random(options.seed))
    try:
        for number, victim in enumerate(victims, 1):
            campaign.attack(victim, options.kills - number)
            _say(f"{number}/{options.kills} {campaign.kills[-1]} at {(time.monotonic() - began) / 60:.1f} min")
            if time.monotonic() - began > 60 * options.minutes:
                break
        campaign.finish()
    finally:
        campaign.close()
    session = Session()
    session.execute_file(str(folder / "workbook.abq"))
    comparisons = compare(session, folder / "out", campaign.queries, installed_readers())
    return report_of(campaign, comparisons, time.monotonic() - began)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    spark_home.use()
    sys.exit(main(sys.argv[1:]))
