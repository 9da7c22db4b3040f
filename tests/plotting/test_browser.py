"""Charts in a real browser: Vega warns of nothing."""

from __future__ import annotations

from pathlib import Path

from tests.plotting.test_plot import DRAWN
from tests.serve.browser import Seen, chromium, opened


def test_no_chart_causes_a_warning_or_a_request(tmp_path: Path) -> None:
    with chromium() as browser:
        for name, make in DRAWN.items():
            make().save(tmp_path / f"{name}.html")
            seen = Seen()
            with opened(browser, f"file://{tmp_path}/{name}.html", seen) as page:
                page.wait_for_selector("#chart svg .role-mark")
            assert seen.console == [], name
            assert [url for url in seen.foreign if not url.startswith("file:")] == [], name
