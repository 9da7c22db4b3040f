"""The shell: statements, commands and errors through a pipe, Ctrl-C, completion, and one real terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from pyspark.sql import SparkSession
from tests.cli.command import Command, Outcome
from tests.runtime.office import query, stream, write_csv

from anabranch.cli.background import Background, Cancelled, warm_up
from anabranch.cli.shell.completion import ShellCompleter
from anabranch.cli.shell.prompt import CONTINUATION, PROMPT, open_history
from anabranch.cli.shell.statements import Part, is_complete, parts_of
from anabranch.session import Session

PATTERN = "PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x"


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a workbook and its input."""
    write_csv(tmp_path / "at.csv")
    (tmp_path / "office.abq").write_text(stream("at", "'at.csv'", "t INTEGER", "person STRING") + query())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def piped(anabranch: Command, monkeypatch: pytest.MonkeyPatch):
    """Runs the shell on a text."""

    def run(text: str, *arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        return anabranch("shell", *arguments)

    return run


# ---------------------------------------------------------------- statements


def test_create_statements_in_a_row_stay_together_and_keep_their_positions() -> None:
    text = "CREATE a; -- one;\n  CREATE b;\n\nPATTERN x(';');  RELATE y"
    assert parts_of(text) == [
        Part("CREATE a; -- one;\n  CREATE b;", False),
        Part("                 \n           \n\nPATTERN x(';');", True),
        Part("                 \n           \n\n                 RELATE y", True),
    ]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("-- a comment", True),
        (" .tables", True),
        ("CREATE STREAM a", False),
        ("CREATE STREAM a; -- done", True),
        ("CREATE STREAM a; CREATE", False),
        ("PATTERN a('x;", False),
        ("'", False),
    ],
)
def test_a_statement_is_complete_after_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


# ---------------------------------------------------------------- completion


def completions(session: Session, text: str) -> list[str]:
    """What Tab offers at the end of a text."""
    completer = ShellCompleter(session.catalog)
    return [completion.text for completion in completer.get_completions(Document(text), CompleteEvent())]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("", ["CREATE", "PATTERN", "SEQUENCE", "RELATE", "MONITOR", "CONSTRAIN"]),
        ("cre", ["CREATE"]),
        ("CREATE q", ["QUERY"]),
        ("CREATE STREAM s TIME t i", ["IDLE", "INFERRED", "INT", "INTEGER", "INTERVALS"]),
        ("PATTERN A", ["at"]),
        ("PATTERN at(x, 'hall') THEN at(x, 'coffee') g", ["GROUP"]),
        ("CREATE QUERY q AS SEQUENCE (a, b) FROM at WHERE a.p", ["person", "place", "p"]),
        ("PATTERN at(x 'hall' oops ", []),
        (".t", [".tables"]),
        (".explain ", ["coffee"]),
        (".run coffee C", ["coffee"]),
        (".read off", ["ice.abq"]),
        (".tables ", []),
    ],
)
def test_tab_offers_what_the_grammar_allows(office: Path, text: str, offered: list[str]) -> None:
    session = Session()
    session.execute_file("office.abq")
    assert completions(session, text) == offered


def test_history_is_kept_in_memory_where_no_file_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert isinstance(open_history(), FileHistory)
    assert (tmp_path / "state" / "anabranch" / "history").exists()
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)
    assert isinstance(open_history(), InMemoryHistory)


# ---------------------------------------------------------------- a pipe


def test_statements_and_commands_are_executed_in_order(spark: SparkSession, office: Path, piped) -> None:
    (office / "more.abq").write_text(f"CREATE QUERY more AS {PATTERN};\n{PATTERN};\n")
    done = piped(
        "-- a comment before a command\n.tables\n"
        f"CREATE QUERY other AS\n  {PATTERN};\n.RUN other\n{PATTERN}\n;\n"
        ".read more.abq\n.explain query2\n.help\n.quit\nnot reached;\n",
        "office.abq",
    )
    assert done.status == 0, done.err
    declared = [line for line in done.err.splitlines() if line.startswith("declared")]
    assert declared == ["declared query other", "declared query more"]
    assert re.findall(r"^(\w+): 3 answers; 6 rows read", done.err, re.MULTILINE) == ["other", "query1", "query2"]
    assert re.search(r"^at +INDEPENDENT stream +person, place, t, p\s*\ncoffee +query +PATTERN", done.out, re.MULTILINE)
    assert done.out.count("0.400") == 3
    assert "query2: PATTERN\n  class      extended regular" in done.out
    assert re.search(r"^\.run \[NAME \.\.\.\] +run declared queries", done.out, re.MULTILINE)


def test_a_declaration_is_replaced_on_request_and_by_a_file_that_is_read_again(office: Path, piped) -> None:
    (office / "b.abq").write_text(f"CREATE QUERY b AS {PATTERN};")
    again = f"CREATE QUERY b AS {PATTERN};\n.tables\nCREATE OR REPLACE QUERY b AS {PATTERN};\n"
    done = piped(f".read b.abq\n.read b.abq\n{again}", "office.abq")
    assert done.status == 1
    *declared, refused, replaced = done.err.splitlines()
    assert declared == ["declared query b", "declared query b"]
    assert refused.startswith("<stdin>:3:1: there is already a query 'b'; ")
    assert replaced == "declared query b"


def test_declarations_of_a_pipe_may_use_each_other_in_any_order(spark: SparkSession, office: Path, piped) -> None:
    done = piped(query() + stream("at", "'at.csv'", "t INTEGER", "person STRING") + ".run")
    assert (done.status, done.err.splitlines()[0]) == (0, "declared query coffee, stream at")
    assert "coffee: 3 answers" in done.err


def test_an_error_is_one_line_with_its_position_and_the_rest_is_executed(office: Path, piped) -> None:
    done = piped(
        ".tables\n.run\n"
        "CREATE STREAM s;\n"
        "  PATTERN at(x, 'a')\n  THEN att(x, 'b');\n"
        ".explain\n.explain nothing\n.read\n.read nowhere.abq\n.tabels\n.nonsense\n"
        "PATTERN at(x, 'unfinished"
    )
    assert done.status == 1
    assert done.out == ""
    assert done.err.splitlines() == [
        "nothing is declared yet; type a CREATE statement, or .read FILE",
        "anabranch: no query is declared yet; type one, or .read FILE",
        "<stdin>:3:1: stream s has no KEY, which MODEL CERTAIN requires; add KEY (person)",
        "<stdin>:3:1: stream s has no TIME, which MODEL CERTAIN requires; add TIME t",
        "<stdin>:4:11: there is no stream 'at'; declare it with CREATE STREAM",
        "<stdin>:5:8: there is no stream 'att'; declare it with CREATE STREAM",
        "anabranch: which query? declared are: none",
        "anabranch: there is no query nothing; declared are: none",
        "anabranch: which file? write .read FILE",
        "nowhere.abq:1:1: cannot be read: No such file or directory",
        "anabranch: there is no command .tabels; did you mean '.tables'?",
        "anabranch: there is no command .nonsense; see .help",
        "<stdin>:12:15: this string is never closed; close it with a single quote",
    ]


def test_a_query_that_fails_is_one_line_and_the_next_one_runs(spark: SparkSession, office: Path, piped) -> None:
    (office / "at.csv").rename(office / "moved.csv")
    done = piped(f".run\n{PATTERN};\n.quit", "office.abq")
    assert done.status == 1
    lines = [line for line in done.err.splitlines() if "there is no file 'at.csv'" in line]
    assert len(lines) == len(done.err.splitlines()) == 2
    assert lines[0].startswith("office.abq:1:")


def test_the_documentation_shows_what_the_shell_prints(
    spark: SparkSession, piped, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "100")
    shown = re.search(r"\$ anabranch shell (\S+)\n(.*?)```", (root / "docs" / "shell.md").read_text(), re.DOTALL)
    assert shown
    lines = [line.rstrip() for line in shown.group(2).splitlines() if line.strip()]
    typed = [line[len(PROMPT) :] for line in lines if line.startswith((PROMPT, CONTINUATION))]
    done = piped("\n".join(typed), shown.group(1))
    assert done.status == 0, done.err
    summary = done.err.strip().rpartition("; ")[0]
    assert lines.pop().startswith(summary)
    expected = [line for line in lines if not line.startswith((PROMPT, CONTINUATION))]
    assert [line.rstrip() for line in done.out.splitlines() if line.strip()] == expected


# ---------------------------------------------------------------- Ctrl-C


@pytest.fixture
def background(spark: SparkSession) -> Background:
    """The thread of queries, on the session of the tests."""
    return Background(Session(spark))


def interrupt_after(seconds: float) -> None:
    """Press Ctrl-C later."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_cancels_the_query_and_the_next_one_runs(spark: SparkSession, background: Background) -> None:
    def wait_long(batches: Iterator) -> Iterator:
        time.sleep(300)
        yield from batches

    began = time.monotonic()
    interrupt_after(2)
    with pytest.raises(Cancelled):
        background.run(lambda: spark.range(1).mapInArrow(wait_long, "id long").toArrow())
    assert time.monotonic() - began < 60
    background.run(lambda: warm_up(Session(spark)))


def test_ctrl_c_cancels_a_query_that_waits_for_the_start_of_spark(spark: SparkSession, background: Background) -> None:
    started, ran = threading.Event(), []
    background.submit(started.wait)
    interrupt_after(0.5)
    with pytest.raises(Cancelled):
        background.run(lambda: ran.append("cancelled"))
    started.set()
    background.run(lambda: ran.append("next"))
    assert ran == ["next"]


# ---------------------------------------------------------------- a terminal


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.descriptor, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from anabranch.cli.main import main; main()", "shell", *arguments],
            stdin=other, stdout=other, stderr=other, cwd=folder, start_new_session=True,
            env=os.environ | {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(folder)},
        )  # fmt: skip
        os.close(other)
        self.seen = ""

    def read_until(self, text: str, seconds: float = 120) -> str:
        """Everything that is shown up to a text."""
        limit = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.descriptor], [], [], max(limit - time.monotonic(), 0))
            assert ready, f"{text!r} did not appear in {self.seen!r}"
            # Without colours and movements of the cursor.
            self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(self.descriptor, 65536).decode(errors="replace"))
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def type(self, keys: str) -> None:
        os.write(self.descriptor, keys.encode())


@pytest.mark.spark
def test_a_terminal_has_completion_several_lines_history_and_ctrl_d(office: Path) -> None:
    terminal = Terminal(office, "office.abq")
    try:
        terminal.read_until("anabranch>")
        terminal.type(".ta\t")
        terminal.read_until(".tables")
        terminal.type("\r")
        assert "coffee" in terminal.read_until("PATTERN")
        terminal.read_until("anabranch>")
        terminal.type("this is discarded\x03")
        terminal.read_until("anabranch>")
        terminal.type("PATTERN at(x, 'hall')\r")
        terminal.read_until("...>")
        terminal.type("THEN at(x, 'coffee') GROUP BY x;\r")
        assert "0.400" in terminal.read_until("query1: 3 answers")
        terminal.read_until("anabranch>")
        terminal.type("\x1b[A\r")
        terminal.read_until("query2: 3 answers")
        terminal.read_until("anabranch>")
        terminal.type("\x04")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.process.kill()
        os.close(terminal.descriptor)
    history = (office / "anabranch" / "history").read_text()
    assert "+THEN at(x, 'coffee') GROUP BY x;" in history
    assert "discarded" not in history
