"""A chart that is a page, a picture, notebook output or a specification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anabranch.errors import AnabranchError
from anabranch.plotting.page import frame, page
from anabranch.plotting.style import THEMES, config

SUFFIXES = (".html", ".png", ".svg", ".json")

PIXEL_RATIO = 2
"""Pixels of a PNG for each pixel of the chart, for displays with a high resolution."""


class Chart:
    """A chart of answers; a notebook displays it.

    Attributes
    ----------
    altair : altair.TopLevelMixin
        The chart without colours and fonts, for changes with Altair.
    title : str
    """

    def __init__(self, altair: Any, title: str) -> None:
        self.altair = altair
        self.title = title
        self._specification: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Chart: {self.title}>"

    def to_dict(self, theme: str = "light") -> dict[str, Any]:
        """Return the Vega-Lite specification, with the colours and fonts of a theme."""
        return {**self._plain(), "config": config(_checked(theme))}

    def to_html(self) -> str:
        """Return a page that needs no network; it is dark if the reader prefers that."""
        return page(self._plain(), self.title)

    def to_svg(self, theme: str = "light") -> str:
        """Return the chart as an SVG picture."""
        import vl_convert

        return str(vl_convert.vegalite_to_svg(self.to_dict(theme)))

    def to_png(self, theme: str = "light") -> bytes:
        """Return the chart as a PNG picture."""
        import vl_convert

        return bytes(vl_convert.vegalite_to_png(self.to_dict(theme), scale=PIXEL_RATIO))

    def save(self, path: str | Path, theme: str = "light") -> None:
        """Write the chart to a file; its extension is `.html`, `.png`, `.svg` or `.json` (the specification).

        A page has both themes. `theme` ('light' or 'dark') is that of the other files.
        """
        target, theme = Path(path), _checked(theme)
        match target.suffix.lower():
            case ".html":
                data = self.to_html().encode()
            case ".png":
                data = self.to_png(theme)
            case ".svg":
                data = self.to_svg(theme).encode()
            case ".json":
                data = (json.dumps(self.to_dict(theme), indent=1) + "\n").encode()
            case _:
                raise AnabranchError(f"{target}: a chart is written as {', '.join(SUFFIXES)}")
        target.write_bytes(data)

    def _repr_html_(self) -> str:
        return frame(self.to_html(), height=480)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _plain(self) -> dict[str, Any]:
        """The specification without configuration; Altair validates it."""
        if self._specification is None:
            specification = self.altair.to_dict()
            specification.pop("config", None)
            self._specification = specification
        return self._specification


def _checked(theme: str) -> str:
    if theme not in THEMES:
        raise AnabranchError(f"there is no theme {theme}; there are {' and '.join(THEMES)}")
    return theme
