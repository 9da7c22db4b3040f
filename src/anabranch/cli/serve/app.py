"""The requests of the page: the page itself, and JSON about the workbook, its runs, and running streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from anabranch.cli.serve.gallery import EXAMPLES, Gallery
from anabranch.cli.serve.live import live_document
from anabranch.cli.serve.runs import Runs
from anabranch.cli.serve.workbench import Opened, checked, completions
from anabranch.editing.vocabulary import words
from anabranch.errors import AnabranchError

_PAGE = resources.files("anabranch.cli.serve") / "page"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

#: The function of Vega that the page calls, without `eval`.
_VEGA = "window.vegaEmbed = vegaEmbed;"


class Workshop:
    """What the page works on: the workbook, its runs, the examples, and the folders of a running stream.

    `opened` is the workbook that is shown: that of the user (`own`), or an example.
    """

    def __init__(
        self, opened: Opened, runs: Runs, gallery: Gallery, checkpoint: Path | None, output: Path | None
    ) -> None:
        self.opened = self.own = opened
        self.runs = runs
        self.gallery = gallery
        self.checkpoint = checkpoint
        self.output = output

    # ------------------------------------------------------------ the workbook

    def state(self) -> dict[str, Any]:
        """What the page needs when it is loaded."""
        last = self.runs.last
        return {
            "workbook": self.opened.document(),
            "own": self.own.title,
            "examples": [example.document() for example in EXAMPLES.values()],
            "words": _vocabulary(),
            "run": last.document() if last is not None and last.file == self.opened.file else None,
            "is_live": self.checkpoint is not None or self.output is not None,
            "has_charts": _has_charts(),
            "version": version("anabranch"),
        }

    def check(self, body: dict[str, Any]) -> dict[str, Any]:
        """What is wrong with a text, or the plans of its queries."""
        return checked(_text(body, "text"), self.opened)

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """What the word at a position can become."""
        return completions(_text(body, "text"), _number(body, "position"))

    def save(self, body: dict[str, Any]) -> dict[str, Any]:
        """Write the text to the file of the workbook."""
        self.opened = self.own = self.opened.saved(_text(body, "text"))
        return self.opened.document()

    def open_own(self, body: dict[str, Any]) -> dict[str, Any]:
        """Show the workbook with which the server was started, instead of an example."""
        self.opened = self.own
        return self.opened.document()

    def open_example(self, body: dict[str, Any]) -> dict[str, Any]:
        """Show an example instead of the workbook."""
        name = _text(body, "name")
        self.opened = self.gallery.open(name)
        return {**self.opened.document(), "query": EXAMPLES[name].query}

    # ------------------------------------------------------------ runs

    def run(self, body: dict[str, Any]) -> dict[str, Any]:
        """Start a query."""
        return self.runs.start(_text(body, "text"), _text(body, "query"), self.opened).document()

    def cancel(self, body: dict[str, Any]) -> dict[str, Any]:
        """Cancel the query that runs."""
        self.runs.cancel()
        return self.progress(body)

    def progress(self, body: dict[str, Any]) -> dict[str, Any]:
        """The state of the last run."""
        return self.runs.last.document() if self.runs.last else {}

    def rows(self, body: dict[str, Any]) -> dict[str, Any]:
        """Some answers of a run."""
        answers = self.runs.require_answers(_number(body, "run"))
        return answers.rows(_share(body, "threshold"), body.get("by") == "probability", _number(body, "first"))

    def thresholds(self, body: dict[str, Any]) -> dict[str, Any]:
        """How many answers of a run remain at each threshold, and how good they are."""
        return self.runs.require_answers(_number(body, "run")).thresholds

    def chart(self, body: dict[str, Any]) -> dict[str, Any]:
        """The chart of the answers of a run."""
        return self.runs.require_answers(_number(body, "run")).chart

    def why(self, body: dict[str, Any]) -> dict[str, Any]:
        """Why an answer has its probability."""
        return self.runs.why(_number(body, "run"), _number(body, "row"))

    def live(self, body: dict[str, Any]) -> dict[str, Any]:
        """What the streams of the checkpoint folder do."""
        return live_document(self.checkpoint, self.output)


def make_app(workshop: Workshop) -> Starlette:
    """The application, without a guard."""
    handlers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "check": workshop.check,
        "complete": workshop.complete,
        "save": workshop.save,
        "example": workshop.open_example,
        "own": workshop.open_own,
        "run": workshop.run,
        "cancel": workshop.cancel,
        "progress": workshop.progress,
        "rows": workshop.rows,
        "thresholds": workshop.thresholds,
        "chart": workshop.chart,
        "why": workshop.why,
        "live": workshop.live,
        "state": lambda body: workshop.state(),
    }
    calls = [Route(f"/api/{name}", partial(_answer, handler), methods=["POST"]) for name, handler in handlers.items()]
    return Starlette(routes=[Route("/", partial(_file, "index.html")), Route("/page/{name}", _named_file), *calls])


async def _answer(handler: Callable[[dict[str, Any]], dict[str, Any]], request: Request) -> Response:
    """Answer a call with JSON; an error of the user is one line, which the page shows."""
    try:
        body = await request.json()
    except ValueError:
        return JSONResponse({"refused": "the body is not JSON"}, 400)
    if not isinstance(body, dict):
        return JSONResponse({"refused": "the body is not an object"}, 400)
    try:
        return JSONResponse(await run_in_threadpool(handler, body))
    except AnabranchError as error:
        return JSONResponse({"refused": str(error)})


async def _named_file(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "vega.js" and _has_charts():
        return Response(await run_in_threadpool(_vega), media_type="text/javascript")
    # Only names in this folder: a name has no slash, and one that does not exist is not opened.
    if name not in {entry.name for entry in _PAGE.iterdir()}:
        return Response("there is no such file", 404, media_type="text/plain")
    return await _file(name, request)


async def _file(name: str, request: Request) -> Response:
    return Response((_PAGE / name).read_bytes(), media_type=_TYPES[Path(name).suffix])


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    return str(vl_convert.javascript_bundle(_VEGA))


def _has_charts() -> bool:
    return find_spec("altair") is not None and find_spec("vl_convert") is not None


@cache
def _vocabulary() -> dict[str, dict[str, str]]:
    """The words of the language with their class, and what is around them where they are no names."""
    return {
        text: {"class": word.word_class.value, "behind": word.behind, "ahead": word.ahead}
        for text, word in words().items()
    }


# ------------------------------------------------------------ parameters


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise AnabranchError(f"{name} must be a text")
    return value


def _number(body: dict[str, Any], name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise AnabranchError(f"{name} must be a number, and not negative")
    return value


def _share(body: dict[str, Any], name: str) -> float:
    value = body.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise AnabranchError(f"{name} must be a number from 0 to 1")
    return float(value)
