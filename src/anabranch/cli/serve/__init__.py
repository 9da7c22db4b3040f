"""`anabranch serve`: a page on this machine to write workbooks, run them, see answers, and watch streams."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.common import spark_settings
from anabranch.cli.messages import say
from anabranch.errors import AnabranchError

#: Only this machine: the server has no TLS and no users.
HOST = "127.0.0.1"

Workbook = Annotated[Path | None, typer.Argument(metavar="[WORKBOOK]", help="File with CREATE statements (*.abq).")]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", metavar="DIR", help="Show the streams with this checkpoint folder.")
]
Output = Annotated[
    Path | None, typer.Option("--output", metavar="DIR", help="Show the newest answers in this output folder.")
]
Truth = Annotated[
    Path | None, typer.Option("--truth", metavar="FILE", help="Events that happened, for precision and recall.")
]
Tolerance = Annotated[
    str,
    typer.Option("--tolerance", metavar="D", help="Largest distance in time between an answer and its event."),
]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Port; 0: any that is free.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]


def command(
    workbook: Workbook = None,
    checkpoint: Checkpoint = None,
    output: Output = None,
    truth: Truth = None,
    tolerance: Tolerance = "0",
    port: Port = 8765,
    open: Open = False,
    master: options.Master = None,
    conf: options.Conf = None,
    packages: options.Packages = None,
    verbose: options.Verbose = False,
) -> None:
    """Write workbooks, run them and see their answers on a page; only this machine can open it."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise AnabranchError("the page needs Starlette and uvicorn; install them: pip install 'anabranch[serve]'")
    import uvicorn

    from anabranch.cli.evaluate import duration
    from anabranch.cli.serve.app import Workshop, make_app
    from anabranch.cli.serve.gallery import Gallery
    from anabranch.cli.serve.guard import Guard
    from anabranch.cli.serve.runs import Runs
    from anabranch.cli.serve.runs import Truth as TrueEvents
    from anabranch.cli.serve.workbench import Opened
    from anabranch.runtime.spark import make_session
    from anabranch.session import Session

    for folder in (checkpoint, output):
        if folder is not None and not folder.is_dir():
            raise typer.BadParameter(f"{folder} is not a folder")
    events = TrueEvents.of_file(truth, duration("--tolerance", tolerance)) if truth is not None else None
    settings = spark_settings(conf, packages)
    session = Session(start=lambda: make_session(master, verbose, settings=settings))
    opened = Opened.of_file(workbook) if workbook is not None else Opened.empty()
    gallery = Gallery()
    with _listening(port) as listener:
        number = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        workshop = Workshop(opened, Runs(session, events), gallery, checkpoint, output)
        app = Guard(make_app(workshop), number, token)
        address = f"http://{HOST}:{number}/?token={token}"
        say(f"open {address}; Ctrl-C ends the server")
        if open:
            webbrowser.open(address)
        config = uvicorn.Config(app, lifespan="off", log_level="warning", access_log=False, server_header=False)
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            gallery.close()


def _listening(port: int) -> socket.socket:
    """A socket on this machine that waits for connections."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        raise AnabranchError(f"port {port} is in use; name another one with --port") from None
    return listener
