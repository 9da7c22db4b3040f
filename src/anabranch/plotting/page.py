"""A chart as a page that needs no network: Vega is part of it."""

from __future__ import annotations

import html
import json
from functools import cache
from typing import Any

from anabranch.plotting.style import THEMES, colours, config

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<main id="chart" role="img" aria-label="{title}"></main>
<script type="application/json" id="specification">{specification}</script>
<script type="application/json" id="configs">{configs}</script>
<script type="module">{script}</script>
</body>
</html>
"""

_STYLE = """:root { color-scheme: light dark; }
:root { --paper: %(light_paper)s; --ink: %(light_ink)s; --accent: %(light_accent)s; }
@media (prefers-color-scheme: dark) {
  :root { --paper: %(dark_paper)s; --ink: %(dark_ink)s; --accent: %(dark_accent)s; }
}
body { margin: 0; background: var(--paper); color: var(--ink); }
body { font: 14px/1.5 system-ui, "Segoe UI", Arial, sans-serif; }
#chart { overflow-x: auto; }
.vega-bindings, .vega-bind { padding: 0 18px 8px; }
.vega-bind label { display: flex; align-items: center; gap: 10px; }
.vega-bind-name { margin: 0; }
.vega-bind input { accent-color: var(--accent); width: 220px; }"""

# The chart is drawn again when the reader changes the colour scheme. In a notebook, the frame gets the height of the
# page; a frame of another origin keeps its own.
_SCRIPT = """
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const specification = read("specification"), configs = read("configs");
const dark = window.matchMedia("(prefers-color-scheme: dark)");
async function draw() {
  const config = configs[dark.matches ? "dark" : "light"];
  const options = {
    config, renderer: "svg", actions: { export: true, source: false, compiled: false, editor: false },
    tooltip: { theme: dark.matches ? "dark" : "light" },
  };
  const { view } = await vegaEmbed("#chart", specification, options);
  window.chartView = view;
  try {
    if (window.frameElement) window.frameElement.style.height = document.documentElement.scrollHeight + "px";
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
  }
}
dark.addEventListener("change", draw);
draw();
"""


def page(specification: dict[str, Any], title: str) -> str:
    """Return the page of a specification without configuration; it follows the colour scheme of the reader."""
    look = {f"{theme}_{name}": getattr(colours(theme), name) for theme in THEMES for name in ("paper", "ink", "accent")}
    return _PAGE.format(
        title=html.escape(title),
        style=_STYLE % look,
        specification=_json(specification),
        configs=_json({theme: config(theme) for theme in THEMES}),
        script=_bundle(),
    )


def frame(document: str, height: int) -> str:
    """Return a page as a frame of a notebook: its script and style do not touch the notebook."""
    source = html.escape(document, quote=True)
    return f'<iframe srcdoc="{source}" style="width: 100%; height: {height}px; border: 0"></iframe>'


def _json(value: Any) -> str:
    """Return JSON that cannot end the element it is in: names and values come from the data."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite, Vega-Embed and the script of the page as one script."""
    import vl_convert

    return str(vl_convert.javascript_bundle(_SCRIPT)).replace("</script", "<\\/script")
