"""A server and a browser for the tests of the page."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.servers.ports import wait_for

#: Without them, Chromium looks for hosts that a closed network does not have.
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync",
          "--disable-component-update", "--no-first-run")  # fmt: skip

#: The start of Spark on a busy machine.
_LONG_MS = 180_000


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[str]:
    """The address, with its token, of a server that runs in a folder until the block ends."""
    command = [sys.executable, "-m", "anabranch", "serve", *arguments, "--port", "0", "--master", "local[2]"]
    log = folder / "serve.log"
    with log.open("w") as stderr, subprocess.Popen(command, cwd=folder, stderr=stderr) as process:
        try:
            wait_for(lambda: "\n" in log.read_text() or process.poll() is not None, "starting the server")
            found = re.match(r"open (http://127\.0\.0\.1:\d+/\?token=[\w-]+); Ctrl-C ends the server", log.read_text())
            assert found, log.read_text()
            yield found[1]
        finally:
            process.send_signal(signal.SIGINT)


@dataclass
class Seen:
    """What a page did besides what it shows.

    Attributes
    ----------
    console : warnings and errors
    foreign : requests to other hosts
    """

    console: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def watch(self, page: Any) -> None:
        """Collect the messages and requests of a page."""
        page.on("console", lambda message: self._message(message.type, message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", lambda request: self._request(request.url))

    def _message(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.console.append(text)

    def _request(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            self.foreign.append(url)


@contextmanager
def opened(browser: Any, address: str, seen: Seen, **options: Any) -> Iterator[Any]:
    """A page of a new user, who has no cookies, and by default wants no animations: they would take a core."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options})
    try:
        page = context.new_page()
        page.set_default_timeout(_LONG_MS)
        seen.watch(page)
        page.goto(address)
        yield page
    finally:
        context.close()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()
