"""The magics in IPython: what cells declare, run and show, and their errors."""

import re

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import anabranch as ab
from anabranch.notebook.answers import ShownAnswers
from anabranch.plan import Plan

DECLARED = """\
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE QUERY coffee AS PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x;
"""
ROWS = [
    {"person": "ana", "place": "hall", "t": 1, "p": 0.5},
    {"person": "ana", "place": "coffee", "t": 2, "p": 0.8},
]


@pytest.fixture
def shell():
    shell = InteractiveShell.instance()
    # `exit` and others, which IPython adds to the builtins, must not stay there for other tests.
    with shell.builtin_trap:
        shell.run_line_magic("load_ext", "anabranch")
        yield shell
    shell.reset()
    InteractiveShell.clear_instance()


def run(shell, cell):
    """The result of a cell that succeeds, and what it displays besides."""
    with capture_output() as captured:
        result = shell.run_cell(cell, silent=False)
    result.raise_error()
    return result.result, captured


def failure(shell, cell):
    """The lines that a cell prints that fails."""
    with capture_output() as captured:
        result = shell.run_cell(cell)
    assert result.error_in_exec is not None
    assert "Traceback" not in captured.stdout + captured.stderr
    return (captured.stdout + captured.stderr).strip().splitlines()


def test_cells_declare_and_explain_without_spark(shell, tmp_path):
    run(shell, f"%%anabranch\n{DECLARED}")
    session = shell.user_ns["session"]
    assert repr(session) == "<Session: 1 stream (at), 1 query (coffee)>"
    run(shell, f"%%anabranch\n{DECLARED}")  # a cell can be run again
    plan, _ = run(shell, "%anabranch explain coffee")
    assert isinstance(plan, Plan)
    assert run(shell, "%anabranch")[0] is session
    path = tmp_path / "more.abq"
    path.write_text("CREATE RELATION rooms (place STRING);")
    assert run(shell, f"%anabranch read {path}")[0] is session
    assert session.catalog.relation("rooms") is not None


def test_errors_are_lines_with_the_position_in_the_cell(shell):
    lines = failure(shell, "%%anabranch\nCREATE STREAM at KEY (person);\nCREATE QUERY q AS PATTERN att(x);")
    assert lines[0].startswith("<cell>:2:1: ")
    assert any(line.startswith("<cell>:3:27: there is no stream 'att'") for line in lines)
    run(shell, f"%%anabranch\n{DECLARED}")
    (line, source, _) = failure(shell, "%%anabranch\n-- a query without a name\nPATTERN at(x, 'hall') THEM at(x, 'b')")
    assert re.match(r"<cell>:3:23: expected .*; did you mean THEN\?", line)
    assert source == "  PATTERN at(x, 'hall') THEM at(x, 'b')"
    assert failure(shell, "%anabranch rum coffee") == ["anabranch: there is no %anabranch rum; did you mean 'run'?"]
    assert failure(shell, "%anabranch explain") == ["anabranch: which query? write %anabranch explain NAME"]
    (line,) = failure(shell, "%anabranch run tea")
    assert line == "anabranch: there is no query tea; declared are: coffee"
    shell.user_ns["session"] = "mine"
    (line,) = failure(shell, "%anabranch tables")
    assert line == "anabranch: the variable session has a str; the magics need an anabranch.Session in it"


def test_a_cell_runs_queries_and_shows_progress_and_answers(shell, spark):
    shell.user_ns["session"] = ab.Session(spark)
    run(shell, f"%%anabranch\n{DECLARED}")
    shell.user_ns["session"].bind("at", ROWS)
    answers, captured = run(shell, "%%anabranch moved\nPATTERN at(x, 'hall') THEN at(x, y) GROUP BY x;")
    assert isinstance(answers, ShownAnswers)
    assert (answers.name, answers.total) == ("moved", 1)
    assert answers.table.select(["x", "probability"]).to_pylist() == [{"x": "ana", "probability": pytest.approx(0.4)}]
    progress = [output.data["text/plain"] for output in captured.outputs]
    assert progress[0] == "moved: starting"
    assert progress[-1].startswith("moved: 1 answer; 2 rows read, 2 used, 0 late, 0 quarantined; ")
    # Both queries share a pass, so there is one line for both; the first is displayed, the last is the result.
    last, captured = run(shell, "%anabranch run coffee moved")
    assert last.name == "moved"
    assert [output.data["text/plain"] for output in captured.outputs][-1] == "<coffee: 1 answer>"
    frame, captured = run(shell, "session.run('coffee')")
    data, _ = shell.display_formatter.format(frame)
    assert "0.400" in data["text/html"]
    other, _ = shell.display_formatter.format(spark.range(1))
    assert "text/html" not in other, "no job is run for a DataFrame without probabilities"
    shell.user_ns["session"].bind("at", [{**row, "p": 7.0} for row in ROWS])
    none, captured = run(shell, "%anabranch run coffee")
    assert none.total == 0
    assert any("quarantined" in remark for remark in none.remarks)
