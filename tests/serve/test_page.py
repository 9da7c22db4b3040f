"""The page in a real browser, with a real server and Spark.

With ANABRANCH_SCREENSHOTS, pictures of the views are written to that folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anabranch.cli.serve.gallery import EXAMPLES
from tests.runtime.office import ROWS
from tests.runtime.streams import Office
from tests.serve.browser import Seen, chromium, opened, served

pytestmark = pytest.mark.spark

#: The marks of the charts of the examples, and how many an answer has. The three events of the CONSTRAIN have two each:
#: a paler one of a less probable answer does not show the lines below it. The answers of a MONITOR share lanes.
MARKS = {"PATTERN": ("symbol", 1), "SEQUENCE": ("rule", 1), "RELATE": ("rect", 1), "CONSTRAIN": ("symbol", 6)}

HOSTILE = "<img src=x onerror=alert(1)>"

WORKBOOK = """\
CREATE STREAM door KEY (id STRING) VALUE (side STRING) TIME t INTEGER MODEL INDEPENDENT FROM 'door.csv';
CREATE QUERY passed AS PATTERN door(x, 'in') THEN door(x, 'out') GROUP BY x;
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "door.abq").write_text(WORKBOOK)
    rows = ["id,side,t,p", *(f"{key},{side},{t},{p}" for key in ("ana", HOSTILE)
            for side, t, p in (("in", 1, 0.9), ("out", 2, 0.4), ("in", 3, 0.5), ("out", 4, 0.7)))]  # fmt: skip
    (folder / "door.csv").write_text("\n".join(rows) + "\n")
    (folder / "truth.csv").write_text("x,t\nana,4\n")
    # A run that is long enough to be cancelled.
    many = (f"{n % 5000},{'in' if n % 2 else 'out'},{n},0.5" for n in range(400_000))
    (folder / "many.csv").write_text("id,side,t,p\n" + "\n".join(many) + "\n")
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with served(folder, "door.abq", "--truth", "truth.csv") as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def seen() -> Iterator[Seen]:
    """What the page did; nothing that it should not do."""
    seen = Seen()
    yield seen
    assert seen.console == []
    assert seen.foreign == []


@pytest.fixture
def page(browser: Any, address: str, seen: Seen) -> Iterator[Any]:
    with opened(browser, address, seen) as page:
        page.wait_for_selector("#run:enabled")
        if page.text_content("#title") != "door.abq":
            page.click("#show-examples")
            page.click("#own")
            page.wait_for_selector("#title:text('door.abq')")
        yield page


def _write(page: Any, text: str) -> None:
    """Replace the text of the editor, as a user who pastes."""
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def _run(page: Any) -> None:
    page.click("#run:enabled")
    page.wait_for_selector("#running", state="visible")
    page.wait_for_selector("#running", state="hidden")


def _picture(page: Any, name: str) -> None:
    if folder := os.environ.get("ANABRANCH_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


def _marks(page: Any, mark: str) -> int:
    """How many marks of a type the chart has; axes and legends are not among them."""
    found: int = page.locator(f"#view-chart svg .role-mark.mark-{mark} > *").count()
    return found


def _with_answers(page: Any) -> None:
    """Wait for the answers of the last run, or run the query."""
    from playwright.sync_api import TimeoutError as NotShown

    page.wait_for_selector("#run:enabled")
    try:
        page.wait_for_selector("#summary", timeout=5_000)
    except NotShown:
        _run(page)
    page.wait_for_selector("#view-answers tbody tr")


def _serious(page: Any) -> list[str]:
    """The findings of Axe that are serious or critical."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html']}" for each in violations if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_each_kind_runs_with_one_click(page: Any, name: str) -> None:
    example = EXAMPLES[name]
    page.click("#show-examples")
    page.click(f"#examples .card:has-text('{example.question}')")
    page.wait_for_selector(f"#summary-text:has-text('of {example.query};')")
    page.wait_for_selector("#view-answers tbody tr")
    n_answers = int(page.text_content("#summary-text strong").split()[0].replace(",", ""))
    assert n_answers > 0
    assert page.text_content("#view-answers th:first-child") == "probability"
    assert page.locator("#view-answers tbody tr:first-child .end button").is_visible()
    _picture(page, f"answers-{name}")
    assert _serious(page) == []
    _assert_chart(page, example.kind, n_answers)
    _picture(page, f"chart-{name}")
    page.click("#tab-plan")
    assert example.query in page.text_content("#view-plan")
    page.click("#tab-answers")
    page.click("#view-answers tbody tr:first-child button")
    page.wait_for_selector("#why-content .answer")
    page.wait_for_selector("#why-content .history")
    assert page.text_content("#why-content .answer strong") == page.text_content("td.probability span")
    _picture(page, f"why-{name}")
    assert _serious(page) == []


def _assert_chart(page: Any, kind: str, n_answers: int) -> None:
    """The chart has the marks of the answers, is not wider than the view, and follows the threshold."""
    from playwright.sync_api import expect

    page.click("#tab-chart")
    page.wait_for_selector("#view-chart svg")
    if kind == "MONITOR":
        assert _marks(page, "rect") >= _marks(page, "text") > 40, "a bar with a label for each answer in 40 lanes"
    else:
        mark, each = MARKS[kind]
        assert _marks(page, mark) == each * n_answers
    view = page.locator("#view-chart")
    assert view.evaluate("element => element.scrollWidth <= element.clientWidth")
    if kind == "PATTERN":
        page.fill("#threshold", "40")
        page.wait_for_selector(f"#remaining:not(:has-text('{n_answers} of'))")
        remaining = int(page.text_content("#remaining").split()[0])
        expect(page.locator("#view-chart svg .role-mark.mark-symbol > *")).to_have_count(remaining)
        page.fill("#threshold", "0")


def test_the_editor_shows_errors_below_their_line_and_completes_words(page: Any) -> None:
    _write(page, WORKBOOK.replace("THEN door", "THEN dor"))
    page.wait_for_selector(".finding")
    assert "did you mean 'door'?" in page.text_content(".finding")
    assert page.is_disabled("#run")
    assert page.text_content("#checked").startswith("1 error")
    _picture(page, "error")
    assert _serious(page) == []
    _write(page, WORKBOOK.replace("door.csv", "../door.csv"))
    page.wait_for_selector(".finding:has-text('not in the folder')")
    _write(page, WORKBOOK)
    page.wait_for_selector("#run:enabled")
    assert page.query_selector(".finding") is None
    _write(page, WORKBOOK + "CREATE QUERY more AS PATTERN doo")
    page.keyboard.press("Control+Space")
    page.wait_for_selector(".cm-tooltip-autocomplete li:has-text('door')")
    _picture(page, "completion")
    page.wait_for_timeout(200)  # the editor ignores keys just after it has opened the list
    page.keyboard.press("Enter")
    page.wait_for_selector(".cm-line:has-text('more AS PATTERN door')")


def test_answers_are_text_and_the_threshold_hides_some(page: Any) -> None:
    _run(page)
    page.wait_for_selector("#view-answers tbody tr")
    assert page.locator("#view-answers tbody tr").count() == 4
    assert HOSTILE in page.locator("#view-answers tbody").inner_text()
    assert page.query_selector("#view-answers img") is None
    assert page.locator("#view-answers th").all_inner_texts()[:3] == ["probability", "t", "x"], (
        "no bounds that are equal"
    )
    assert "precision" in page.text_content("#remaining")
    page.fill("#threshold", "50")
    page.wait_for_selector("#remaining:not(:has-text('4 of 4'))")
    page.wait_for_selector("#view-answers tbody tr:nth-child(4)", state="detached")
    shown = page.locator("#view-answers tbody tr").count()
    assert f"{shown} of 4 answers" in page.text_content("#remaining")
    page.click("#view-answers th button")
    page.wait_for_selector("th[aria-sort=descending]")


def test_a_failed_run_and_a_cancelled_run_say_so_and_a_workbook_is_saved(page: Any, folder: Path) -> None:
    _write(page, WORKBOOK.replace("door.csv", "missing.csv"))
    page.wait_for_timeout(600)
    page.click("#run:enabled")
    page.wait_for_selector("#view-answers .failed")
    assert "missing.csv" in page.text_content("#view-answers")
    changed = WORKBOOK + "-- a remark\n"
    _write(page, changed)
    page.wait_for_selector("#title.changed")
    page.keyboard.press("Control+s")
    page.wait_for_selector("#title:not(.changed)")
    assert (folder / "door.abq").read_text() == changed
    _write(page, WORKBOOK)
    page.click("#save")
    page.wait_for_selector("#title:not(.changed)")
    _write(page, WORKBOOK.replace("door.csv", "many.csv"))
    page.wait_for_timeout(600)
    page.click("#run:enabled")
    page.click("#cancel")
    page.wait_for_selector("#view-answers:has-text('was cancelled')")
    _write(page, WORKBOOK)
    page.wait_for_selector("#title:not(.changed)")


def test_the_keyboard_is_enough(page: Any) -> None:
    for _ in range(12):
        if page.evaluate("document.activeElement.id") == "show-examples":
            break
        page.keyboard.press("Tab")
    _picture(page, "focus")
    page.keyboard.press("Enter")
    page.wait_for_selector("#examples[open]")
    _picture(page, "examples")
    page.keyboard.press("Escape")
    page.wait_for_selector("#examples", state="hidden")
    page.focus(".cm-content")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#view-answers tbody tr")
    page.focus("#tab-answers")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-plan"
    assert page.is_visible("#view-plan")
    page.focus(".cm-content")
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.classList.contains('cm-content')"), "Tab leaves the editor"


@pytest.mark.parametrize(
    "options",
    [{"color_scheme": "dark", "reduced_motion": "no-preference"}, {"viewport": {"width": 390, "height": 800}}],
    ids=["dark", "narrow"],
)
def test_dark_and_narrow(browser: Any, address: str, seen: Seen, options: dict[str, Any]) -> None:
    with opened(browser, address, seen, **options) as page:
        _with_answers(page)
        name = "dark" if "color_scheme" in options else "narrow"
        _picture(page, name)
        assert _serious(page) == []
        page.click("#tab-chart")
        page.wait_for_selector("#view-chart svg")
        assert _marks(page, "symbol") == 4
        _picture(page, f"{name}-chart")
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], "the page does not scroll sideways"
        page.click("#tab-answers")
        page.click("#view-answers tbody tr:first-child button")
        page.wait_for_selector("#why-content .history")
        _picture(page, f"{name}-why")
        assert _serious(page) == []


def test_the_live_view_follows_a_stream(browser: Any, seen: Seen, spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("first", *ROWS, ("eva", "hall", 6, 0.5))
    office.process_files()
    read = "#view-live div:has(> dt:text-is('read')) > dd:text-is('{}')"
    with (
        ExitStack() as finally_do,
        served(tmp_path, "--checkpoint", "checkpoint", "--output", "out") as address,
        opened(browser, address, seen) as page,
    ):
        finally_do.callback(office.stop)
        page.wait_for_selector("#view-live .stream.runs")
        assert "coffee" in page.inner_text("#view-live")
        page.wait_for_selector(read.format(7))
        assert page.locator("#view-live tbody tr").count() == 3
        office.add("second", ("eva", "coffee", 7, 0.5), ("eva", "hall", 12, 0.5))
        office.process_files()
        page.wait_for_selector("#view-live td:has-text('eva')")
        page.wait_for_selector(read.format(9))
        assert page.locator("#view-live .spark rect").count() >= 2
        _picture(page, "live")
        assert _serious(page) == []
        office.stop()
        page.wait_for_selector("#view-live .stream:not(.runs) small:text-is('does not run')")
