"""The built site: all links have targets, and a browser can search it from the file system, without a network."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scripts.build_docs import build, pages

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def first_page() -> Path:
    """The first page of the site; the build fails on a link or an anchor without a target."""
    return build()


def test_each_page_is_built(first_page: Path) -> None:
    folder = first_page.parent
    built = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.html")}
    # The first page of a section has the name of an index.
    expected = {Path(page).with_suffix("").as_posix().replace("README", "index") for page in pages().values()}
    assert expected <= built


def test_the_site_searches_without_a_network(first_page: Path) -> None:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api")
    requests: list[str] = []
    errors: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(first_page.as_uri())
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("watermark", delay=20)
        page.get_by_text("Our own watermark").first.wait_for()
        browser.close()
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert errors == []
