"""What notebooks display: complete, escaped, and without scripts."""

from html.parser import HTMLParser

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch.charts import answers_html
from anabranch.evaluation import evaluate
from anabranch.markup import code, output, share_bar, table
from anabranch.notebook.answers import ShownAnswers
from anabranch.notebook.progress import ProgressLine
from anabranch.plan import Plan
from anabranch.transport.operator import Counts

HOSTILE = "<script>alert('x')</script>&\x1b[31m"


class Page(HTMLParser):
    """The elements and the text of some HTML; every element that is opened is closed."""

    def __init__(self, html):
        super().__init__()
        self.opened, self.tags, self.texts, self.attributes = [], [], [], []
        self.feed(html)
        assert self.opened == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ("img", "source"):
            self.opened.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        if self.opened and self.opened[-1] != "style":
            self.texts.append(data)


def shown(html):
    """The page, which has neither scripts nor addresses."""
    page = Page(html)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert all(
        value.startswith("data:image/svg+xml;base64,") for name, value in page.attributes if name in ("src", "srcset")
    )
    return page


def test_answers_are_a_table_with_bars_and_hide_what_says_nothing():
    answers = pa.table(
        {
            "t": [3, 4],
            HOSTILE: [HOSTILE, None],
            "probability": [0.25, 1e-9],
            "lower": [0.25, 1e-9],
            "upper": [0.25, 1e-9],
        }
    )
    page = shown(output("q", answers_html(answers)))
    assert page.texts.count("<script>alert('x')</script>&\\x1b[31m") == 2
    assert page.texts[1:] == [*page.texts[1:4], "3", page.texts[5], "0.250", "4", "NULL", "<0.001"]
    assert "lower" not in page.texts
    widths = [value for name, value in page.attributes if name == "style"]
    assert widths == ["width:25%", "width:1%"], "every probability above 0 is visible"


def test_shown_answers_say_how_many_there_are():
    answers = pa.table({"t": range(30), "x": ["ana"] * 30, "probability": [0.5] * 30})
    page = shown(ShownAnswers("coffee", answers, 1234, [HOSTILE])._repr_html_())
    assert page.texts[:2] == ["coffee", "the first 20 of 1,234 answers"]
    assert page.tags.count("tr") == 21
    assert page.tags.count("picture") == 1, "the chart, for both themes"
    assert page.texts[-1] == HOSTILE
    none = ShownAnswers("coffee", answers.slice(0, 0), 0)
    assert repr(none) == "<coffee: no answers>"
    assert shown(none._repr_html_()).texts == ["coffee", "no answers"]


def test_without_altair_the_table_is_shown_alone(monkeypatch):
    monkeypatch.setattr("anabranch.plotting.dispatch.find_spec", lambda name: None)
    answers = pa.table({"t": [1], "x": ["ana"], "probability": [0.5]})
    page = shown(ShownAnswers("coffee", answers, 1)._repr_html_())
    assert "picture" not in page.tags
    assert page.texts[:2] == ["coffee", "1 answer"]


def test_sessions_plans_and_counts_show_themselves():
    session = ab.Session()
    assert shown(session._repr_html_()).texts == ["Session", "nothing declared"]
    session.execute("CREATE STREAM at KEY (x) VALUE (`<b>`) TIME t; CREATE QUERY q AS PATTERN at(x, 'a');")
    page = shown(session._repr_html_())
    assert any("`<b>`" in text for text in page.texts)
    plan = Plan(HOSTILE, "PATTERN", HOSTILE, ("one", "two"))
    page = shown(plan._repr_html_())
    assert page.texts[:2] == [HOSTILE, "PATTERN"]
    assert page.texts.count("why") == 1, "a name is written once"
    assert shown(Counts(read=1200, used=1200, answers=3)._repr_html_()).texts == [
        "read",
        "used",
        "answers",
        "1,200",
        "1,200",
        "3",
    ]


def test_an_evaluation_shows_thresholds_and_reliability():
    answers = pa.table({"x": ["a", "b", "c"], "t": [1, 2, 3], "probability": [0.9, 0.9, 0.3]})
    result = evaluate(answers, pa.table({"x": ["a", "b"], "t": [1, 9]}))
    page = shown(result._repr_html_())
    assert page.texts[0] == "Evaluation"
    assert {"Brier score", "calibration error", "precision", "share of true answers"} <= set(page.texts)
    assert page.attributes.count(("class", "best")) == 1
    # The answers of 0.9 are true in half of the cases.
    assert ("style", "width:50%") in page.attributes
    assert ("style", "left:90%") in page.attributes


@pytest.mark.parametrize(("share", "width"), [(0.0, "0"), (0.0001, "1"), (0.5, "50"), (0.9999, "99"), (1.0, "100")])
def test_a_bar_shows_every_share_and_is_full_only_for_1(share, width):
    assert f"width:{width}%" in share_bar("p", share)


def test_text_is_escaped_where_it_is_not_markup_already():
    html = table(["<a>"], [["<b>"], [code("<c>")]])
    assert "&lt;a&gt;" in html
    assert "&lt;b&gt;" in html
    assert "<pre>&lt;c&gt;</pre>" in html


def test_outside_of_ipython_progress_is_a_line_of_text(capsys):
    with ProgressLine("coffee", lambda: 5) as line:
        line.update()
    assert "coffee" in capsys.readouterr().out
