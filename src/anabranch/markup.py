"""HTML for notebooks. It needs no script, and is readable on light and dark backgrounds.

Notebooks do not say which theme they have. So text has the colour around it, lines and tracks are a transparent grey,
and the hue of bars has enough contrast on white and on black.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape


class Markup(str):
    """Text that is HTML already; every other text is escaped."""

    __slots__ = ()


#: Class names are doubled, so that these rules win over those that notebooks have for tables.
_STYLE = """\
<style>
.anabranch.anabranch{font:13px/1.5 system-ui,'Segoe UI','Helvetica Neue',Arial,sans-serif;color:inherit;\
overflow-x:auto;margin:2px 0 6px}
.anabranch.anabranch table{border-collapse:collapse;border:0;margin:2px 0 8px;font-size:inherit;table-layout:auto;\
font-variant-numeric:tabular-nums}
.anabranch.anabranch tbody tr:nth-child(n){background:none}
.anabranch.anabranch th,.anabranch.anabranch td{padding:3px 18px 3px 0;border:0;\
border-bottom:1px solid rgba(128,128,128,.28);text-align:left;vertical-align:top;white-space:normal;max-width:none;\
color:inherit}
.anabranch.anabranch th{font-weight:500;white-space:nowrap}
.anabranch.anabranch th,.anabranch.anabranch .note{color:color-mix(in srgb,currentColor 68%,transparent)}
.anabranch.anabranch .number{text-align:right;white-space:nowrap}
.anabranch.anabranch .best td{font-weight:600}
.anabranch.anabranch .title{font-weight:600}
.anabranch.anabranch .title .note{font-weight:400;margin-left:8px}
.anabranch.anabranch .share{white-space:nowrap}
.anabranch.anabranch .value{display:inline-block;min-width:3.2em}
.anabranch.anabranch .bar{display:inline-block;position:relative;width:96px;height:9px;margin-left:6px;\
border-radius:2px;background:rgba(128,128,128,.22)}
.anabranch.anabranch .bar i{position:absolute;left:0;top:0;bottom:0;border-radius:2px;background:#2f86c6}
.anabranch.anabranch .bar b{position:absolute;top:-3px;bottom:-3px;width:2px;background:#d9730d}
.anabranch.anabranch pre{margin:0;padding:0;border:0;background:none;color:inherit;white-space:pre-wrap;\
font:12px/1.5 ui-monospace,Menlo,Consolas,'Liberation Mono',monospace}
.anabranch.anabranch img{max-width:100%;height:auto;border-radius:4px}
</style>"""


def output(title: str, *parts: str, note: str = "") -> str:
    """The HTML of one notebook output: a title with a remark, and the parts below it."""
    heading = f'<div class="title">{escaped(title)}<span class="note">{escaped(note)}</span></div>' if title else ""
    return f'{_STYLE}<div class="anabranch">{heading}{"".join(map(escaped, parts))}</div>'


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """A table of names and texts; a name that repeats is written once."""
    rows, previous = [], None
    for name, text in pairs:
        rows.append(f"<tr><th>{'' if name == previous else escaped(name)}</th><td>{escaped(text)}</td></tr>")
        previous = name
    return Markup(f"<table><tbody>{''.join(rows)}</tbody></table>")


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    numeric: Collection[int] = (),
    best: int | None = None,
) -> Markup:
    """A table; `numeric` are the indices of the columns that are aligned to the right, `best` that of a bold row."""
    classes = [' class="number"' if index in numeric else "" for index in range(len(headings))]
    head = "".join(f"<th{its}>{escaped(text)}</th>" for its, text in zip(classes, headings, strict=True))
    body = ""
    for index, row in enumerate(rows):
        cells = (f"<td{its}>{escaped(text)}</td>" for its, text in zip(classes, row, strict=True))
        body += ('<tr class="best">' if index == best else "<tr>") + "".join(cells) + "</tr>"
    return Markup(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def share_bar(text: str, share: float, mark: float | None = None) -> Markup:
    """A number with a bar for a share between 0 and 1, and a line across it at `mark`.

    Every share above 0 is visible, and only 1 fills the bar.
    """
    inner = f'<i style="width:{_percent(share):g}%"></i>'
    inner += "" if mark is None else f'<b style="left:{_percent(mark):g}%"></b>'
    bar = f'<span class="bar" aria-hidden="true">{inner}</span>'
    return Markup(f'<span class="share"><span class="value">{escape(text)}</span>{bar}</span>')


def _percent(share: float) -> float:
    share = min(max(share, 0.0), 1.0)
    return min(max(round(100 * share, 1), 1.0), 99.0) if 0 < share < 1 else 100 * share


def code(text: str) -> Markup:
    """Text with a fixed width, in its own lines."""
    return Markup(f"<pre>{escape(text)}</pre>")


def remark(text: str) -> Markup:
    """A line of text that is less prominent."""
    return Markup(f'<div class="note">{escape(text)}</div>')


def escaped(text: str) -> str:
    """The text as HTML."""
    return text if isinstance(text, Markup) else escape(text)
