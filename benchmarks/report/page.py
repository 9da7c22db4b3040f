"""The report: one page with all charts and measurements, which needs no network."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import vl_convert

from anabranch.plotting.style import THEMES, colours, config
from benchmarks import targets
from benchmarks.harness import format_ratio, format_value
from benchmarks.papers import FIGURES, Figure, Point, points
from benchmarks.report import charts
from benchmarks.results import Results

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Benchmarks of Anabranch</title>
<style>
{style}
</style>
</head>
<body>
<main>
<h1>Benchmarks of Anabranch</h1>
{body}
</main>
<script type="application/json" id="specifications">{specifications}</script>
<script type="application/json" id="configs">{configs}</script>
<script type="module">{script}</script>
</body>
</html>
"""

_STYLE = """:root { color-scheme: light dark; }
:root { --paper: %(light_paper)s; --ink: %(light_ink)s; --muted: %(light_muted)s; --grid: %(light_grid)s;
  --accent: %(light_accent)s; }
@media (prefers-color-scheme: dark) {
  :root { --paper: %(dark_paper)s; --ink: %(dark_ink)s; --muted: %(dark_muted)s; --grid: %(dark_grid)s;
    --accent: %(dark_accent)s; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); }
body { font: 15px/1.5 system-ui, "Segoe UI", Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 16px 20px 60px; }
h2 { margin: 44px 0 8px; border-top: 1px solid var(--grid); padding-top: 20px; }
h3 { margin: 26px 0 4px; }
h4 { margin: 10px 0 4px; font-weight: 600; font-size: 14px; }
p { max-width: 75ch; margin: 4px 0 10px; }
.note { color: var(--muted); font-size: 13px; overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%%, 480px), 1fr)); gap: 10px 28px; }
.grid > div { min-width: 0; }
.chart { width: 100%%; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; margin: 6px 0 12px; }
th, td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
summary { cursor: pointer; color: var(--accent); }
nav a { color: var(--accent); margin-right: 16px; }"""

# Charts are drawn again when the reader changes the colour scheme.
_SCRIPT = """
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const specifications = read("specifications"), configs = read("configs");
const dark = window.matchMedia("(prefers-color-scheme: dark)");
async function draw() {
  const theme = dark.matches ? "dark" : "light";
  const config = { ...configs[theme], padding: 4 };
  for (const [number, specification] of specifications.entries()) {
    const options = { config, renderer: "svg", actions: false, tooltip: { theme } };
    await vegaEmbed("#chart-" + number, specification, options);
  }
  document.body.dataset.drawn = theme;
}
dark.addEventListener("change", draw);
draw();
"""


class Page:
    """Collects the parts of the page, and the specifications of its charts."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._specifications: list[charts.Specification] = []

    def add(self, element: str, text: str, kind: str = "") -> None:
        """Add an element with text."""
        written = f' class="{kind}"' if kind else ""
        self._parts.append(f"<{element}{written}>{html.escape(text)}</{element}>")

    def section(self, name: str, title: str) -> None:
        """Add the title of a section."""
        self._parts.append(f'<h2 id="{name}">{html.escape(title)}</h2>')

    def grid(self, titled: Iterable[tuple[str, charts.Specification]]) -> None:
        """Add charts side by side."""
        self._parts.append('<div class="grid">')
        for title, specification in titled:
            self._parts.append(f"<div><h4>{html.escape(title)}</h4>{self._chart(title, specification)}</div>")
        self._parts.append("</div>")

    def chart(self, title: str, specification: charts.Specification) -> None:
        """Add one chart."""
        self._parts.append(self._chart(title, specification))

    def _chart(self, title: str, specification: charts.Specification) -> str:
        self._specifications.append(specification)
        number = len(self._specifications) - 1
        return f'<div class="chart" id="chart-{number}" role="img" aria-label="{html.escape(title, quote=True)}"></div>'

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> None:
        """Add a table; its first `texts` columns are text, the others numbers."""

        def cells(element: str, row: Sequence[str]) -> str:
            kinds = ["" if number < texts else ' class="number"' for number in range(len(row))]
            return "".join(
                f"<{element}{kind}>{html.escape(cell)}</{element}>" for kind, cell in zip(kinds, row, strict=True)
            )

        body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
        self._parts.append(
            f'<div class="wide"><table><thead><tr>{cells("th", header)}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def details(self, summary: str) -> None:
        """Begin a part that the reader opens; `end_details` ends it."""
        self._parts.append(f"<details><summary>{html.escape(summary)}</summary>")

    def end_details(self) -> None:
        """End a part that the reader opens."""
        self._parts.append("</details>")

    def links(self, links: dict[str, str]) -> None:
        """Add links to sections."""
        shown = " ".join(f'<a href="#{name}">{html.escape(text)}</a>' for name, text in links.items())
        self._parts.append(f"<nav>{shown}</nav>")

    def text(self) -> str:
        """Return the page."""
        names = ("paper", "ink", "muted", "grid", "accent")
        look = {f"{theme}_{name}": getattr(colours(theme), name) for theme in THEMES for name in names}
        bundle = str(vl_convert.javascript_bundle(_SCRIPT)).replace("</script", "<\\/script")
        return _PAGE.format(
            style=_STYLE % look,
            body="\n".join(self._parts),
            specifications=_json(self._specifications),
            configs=_json({theme: config(theme) for theme in THEMES}),
            script=bundle,
        )


def _json(value: Any) -> str:
    """Return JSON that cannot end the element it is in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


# ------------------------------------------------------------ sections

PEER_COLUMNS = ("seconds", "first", "processor", "memory")

SECTIONS = {
    "targets": "Targets",
    "stages": "Where the time goes",
    "growth": "Growth",
    "peers": "Peers",
    "papers": "The figures of the papers",
    "all": "All measurements",
}


def report(results: Results) -> str:
    """Return the page of some measurements; a section without measurements says so."""
    page = Page()
    page.add(
        "p",
        "Compare times within one part only: parts may be from different machines and commits, which each part names. "
        "A plus after a commit means that the source had uncommitted changes.",
    )
    page.links(SECTIONS)
    sections = {"targets": _targets, "stages": _stages, "growth": _growth, "peers": _peers, "papers": _papers}
    for name, add in sections.items():
        page.section(name, SECTIONS[name])
        if not add(page, results):
            page.add("p", "Not measured.", "note")
    page.section("all", SECTIONS["all"])
    _everything(page, results)
    return page.text()


def _origins(page: Page, results: Results) -> None:
    for origin in results.origins:
        page.add("p", str(origin), "note")


def _targets(page: Page, results: Results) -> bool:
    measured = results.of("whole.large")
    if not measured:
        return False
    rows = targets.table(results)
    page.add("p", "Ratios and rates within one run, with the sources before the work on them and with those of now.")
    page.table(rows[0], rows[1:], texts=2)
    _origins(page, measured)
    return True


def _stages(page: Page, results: Results) -> bool:
    stages = results.of("whole.stages")
    if not stages:
        return False
    rows = charts.stage_rows(stages)
    page.add(
        "p",
        "The processor time of each stage in one process. The shuffle is the time that Spark's tasks write it and wait "
        "for it. The rest of Spark is the other processor time of a run by Spark: the JVM, its exchange with Python, "
        "and the driver. RELATE decides pairs in its kernel stage.",
    )
    page.chart("Shares of the stages", charts.stage_chart(rows))
    page.add("h4", "Seconds per million rows")
    by_kind = {kind: list(group) for kind, group in groupby(rows, lambda row: row["kind"])}
    page.table(
        ["", *charts.stage_order()],
        ([kind, *(format_value(row["seconds"]) for row in of_kind)] for kind, of_kind in by_kind.items()),
    )
    _origins(page, stages)
    return True


def _growth(page: Page, results: Results) -> bool:
    parts = [part for part in results.parts if part.endswith(".growth")]
    if parts:
        page.add(
            "p",
            "The processor time as one dimension grows, relative to its first value. The number in brackets is the "
            "exponent that fits best: 1 is proportional (the dashed line), 2 quadratic, 0 constant.",
        )
    for part in parts:
        page.add("h3", part.partition(".")[0])
        of_part = results.of(part)
        page.grid(
            (workload, charts.growth_chart(rows))
            for workload, of_workload in of_part.by_workload().items()
            if (rows := charts.growth_rows(of_workload))
        )
        _origins(page, of_part)
    return bool(parts)


def _peers(page: Page, results: Results) -> bool:
    peers = results.of("peers")
    if not peers:
        return False
    page.add(
        "p",
        "The same file and the same answers, each system through its own interface, on two cores. A time is from the "
        "file to sums over all answers, in a process that has answered before. Memory is the peak of all processes.",
    )
    for part in peers.parts:
        page.add("h3", part.partition(".")[2])
        of_part = peers.of(part)
        for workload, of_workload in of_part.by_workload().items():
            rows = charts.peer_rows(of_workload)
            page.add("h4", workload)
            page.chart(workload, charts.peer_chart(rows))
            page.table(
                ["", "seconds", "first run, s", "processor time, s", "peak memory, MB"],
                (
                    [row["name"], *("" if row[name] is None else format_value(row[name]) for name in PEER_COLUMNS)]
                    for row in rows
                ),
            )
        _origins(page, of_part)
    return True


def _papers(page: Page, results: Results) -> bool:
    measured = [(figure, found) for figure in FIGURES if (found := points(figure, results))]
    if measured:
        page.add(
            "p",
            "Solid lines are Anabranch, dashed lines the algorithms that a paper describes or compares with, run on "
            "the same machine. Crosses are numbers that a paper states, from its own machine and data. AYAC has no "
            "experiments.",
        )
    for paper, group in groupby(measured, lambda item: item[0].paper):
        page.add("h3", paper)
        for figure, found in group:
            _figure(page, figure, found)
            _origins(page, results.of(figure.part))
    missing = [figure for figure in FIGURES if not points(figure, results)]
    if missing:
        page.add("p", "Not measured: " + "; ".join(f"{figure.paper}, {figure.number}" for figure in missing), "note")
    return bool(measured)


def _figure(page: Page, figure: Figure, found: Sequence[Point]) -> None:
    page.add("h4", f"{figure.number}: {figure.title}")
    page.add("p", f"The paper: {figure.reports}")
    workloads = list(dict.fromkeys(point.workload for point in found))
    by_workload = {name: [point for point in found if point.workload == name] for name in workloads}
    page.grid((name, charts.figure_chart(figure, of_workload)) for name, of_workload in by_workload.items())
    sizes = sorted({point.x for point in found})
    page.details("Numbers")
    for name, of_workload in by_workload.items():
        series = dict.fromkeys((point.series, point.source) for point in of_workload)
        values = {(point.series, point.x): point.y for point in of_workload}
        page.add("p", f"{name}; {figure.unit or 'share'}", "note")
        page.table(
            [figure.x_title, "", *(f"{size:g}" for size in sizes)],
            (
                [one, source, *(format_value(values[one, size]) if (one, size) in values else "" for size in sizes)]
                for one, source in series
            ),
            texts=2,
        )
    page.end_details()


def _everything(page: Page, results: Results) -> None:
    for part in results.parts:
        of_part = results.of(part)
        page.details(part)
        _origins(page, of_part)
        for workload, of_workload in of_part.by_workload().items():
            page.add("p", workload)
            page.table(
                ["", "value", "unit", "ratio", "to"],
                (
                    [
                        record["metric"], format_value(record["value"]), record["unit"],
                        format_ratio(record["ratio"]), record["baseline"] or "",
                    ]
                    for record in of_workload
                ),
            )  # fmt: skip
        page.end_details()
