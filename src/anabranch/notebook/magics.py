"""The magics `%anabranch` and `%%anabranch` of IPython: declare statements and run queries in cells."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from anabranch.catalog import Query, title_of
from anabranch.cli.background import Background
from anabranch.cli.run import first_answers
from anabranch.cli.shell.statements import Part, parts_of
from anabranch.cli.summary import summary_line
from anabranch.errors import AnabranchError, WorkbookError
from anabranch.language.findings import did_you_mean
from anabranch.language.names import quoted
from anabranch.language.reading import read_workbook
from anabranch.notebook.answers import MOST_COLLECTED, ShownAnswers, frame_html
from anabranch.notebook.progress import ProgressLine
from anabranch.runtime.failures import translate
from anabranch.runtime.spark_mode import RowCounter, row_counter
from anabranch.session import Session

if TYPE_CHECKING:
    import pyarrow as pa

#: The variable of the notebook that has the session.
VARIABLE = "session"

#: The file name in messages.
CELL = "<cell>"

#: The name of a query without one, unless `%%anabranch NAME` gives it one.
UNNAMED = "query"

_USAGE = "write %anabranch run [NAME ...], explain NAME, read FILE or tables"


class CellError(AnabranchError):
    """An error of a cell, which IPython shows without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def load(shell: Any) -> None:
    """Add the magics to IPython, and show DataFrames of answers as tables."""
    magics = Magics(shell)
    shell.register_magic_function(magics.line, "line", "anabranch")
    shell.register_magic_function(magics.cell, "cell", "anabranch")
    html = shell.display_formatter.formatters["text/html"]
    html.for_type_by_name("pyspark.sql.dataframe", "DataFrame", frame_html)


class Magics:
    """The magics of one notebook, on the session in its variable `session`."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._background: tuple[Session, Background] | None = None
        self._commands: dict[str, Callable[[list[str]], Any]] = {
            "run": self._run_named,
            "explain": self._explain,
            "read": self._read,
            "tables": lambda arguments: self.session,
        }

    @property
    def session(self) -> Session:
        """The session in the variable `session` of the notebook, which is made if there is none."""
        if VARIABLE not in self._shell.user_ns:
            self._shell.push({VARIABLE: Session()})
        session = self._shell.user_ns[VARIABLE]
        if not isinstance(session, Session):
            raise AnabranchError(
                f"the variable {VARIABLE} has a {type(session).__name__}; the magics need an anabranch.Session in it"
            )
        return session

    def line(self, line: str) -> Any:
        """`%anabranch run NAME ...`, `explain NAME`, `read FILE` or `tables`."""
        name, *arguments = line.split() or ["tables"]
        with _cell_errors():
            if name not in self._commands:
                raise AnabranchError(f"there is no %anabranch {name}; {did_you_mean(name, self._commands) or _USAGE}")
            return self._commands[name](arguments)

    def cell(self, line: str, cell: str) -> Any:
        """`%%anabranch [NAME]`: declare the CREATE statements of a cell, and run the query without a name as NAME."""
        name = line.strip() or UNNAMED
        result: Any = None
        with _cell_errors():
            # The first line of the cell is that of the magic; so positions are those of the cell.
            for part in parts_of("\n" + cell):
                if result is not None:
                    display(result)
                result = self._execute(part, name)
        return result

    def _execute(self, part: Part, name: str) -> ShownAnswers | None:
        """Declare statements, again if the cell is run again; or run a query."""
        if not part.is_query:
            self.session.execute(part.text, CELL, or_replace=True)
            return None
        # A name in front of the query, in the line of the magic, which is blank.
        self.session.execute(f"CREATE QUERY {quoted(name)} AS{part.text}", CELL, or_replace=True)
        (answers,) = self._run([name])
        return answers

    # ------------------------------------------------------------ commands

    def _run_named(self, names: list[str]) -> ShownAnswers:
        names = names or self.session.catalog.names((Query,))
        if not names:
            raise AnabranchError("no query is declared yet; declare one in a cell with %%anabranch")
        *others, last = self._run(names)
        for answers in others:
            display(answers)
        return last

    def _explain(self, names: list[str]) -> Any:
        if len(names) != 1:
            raise AnabranchError("which query? write %anabranch explain NAME")
        return self.session.explain(names[0])

    def _read(self, paths: list[str]) -> Session:
        if len(paths) != 1:
            raise AnabranchError("which file? write %anabranch read FILE")
        path = os.path.expanduser(paths[0])
        self.session.execute(read_workbook(path), path, or_replace=True)
        return self.session

    # ------------------------------------------------------------ runs

    def _run(self, names: list[str]) -> list[ShownAnswers]:
        """Run queries, those that share a pass together, with a line of progress for each pass."""
        session = self.session
        queries = [session.catalog.require_query(name) for name in names]
        shown: dict[str, ShownAnswers] = {}
        for group in session.groups(queries):
            shown |= self._run_group(session, group)
        return [shown[query.name] for query in queries]

    def _run_group(self, session: Session, group: list[Query]) -> dict[str, ShownAnswers]:
        counter = RowCounter()
        tables: dict[str, pa.Table] = {}

        def run() -> None:
            nonlocal counter
            counter = row_counter(session.spark)
            frames = session.run_all([query.name for query in group], counter=counter)
            for query in group:
                is_ordered = query.declaration.limit is not None
                tables[query.name] = first_answers(frames[query.name], MOST_COLLECTED, is_ordered).toArrow()

        began = time.monotonic()
        with ProgressLine(title_of([query.name for query in group]), lambda: counter.value) as line:
            self._background_of(session).run(run, line.update)
            seconds = time.monotonic() - began
            remarks = [doubt for _, doubt in session.doubts(group[0].name)]
            counts = {query.name: session.counts(query.name) for query in group}
            line.show(" · ".join(summary_line(name, its, seconds) for name, its in counts.items()))
        session.release()
        return {
            query.name: ShownAnswers(query.name, tables[query.name], counts[query.name].answers, remarks)
            for query in group
        }

    def _background_of(self, session: Session) -> Background:
        """The thread that runs queries of a session: an interrupt of the kernel cancels them."""
        if self._background is None or self._background[0] is not session:
            self._background = session, Background(session)
        return self._background[1]


@contextmanager
def _cell_errors() -> Iterator[None]:
    """Turn errors of users into one line each, and those in a cell also show its line."""
    try:
        yield
    except WorkbookError as error:
        raise CellError(error.report()) from None
    except Exception as error:
        raise CellError(f"anabranch: {translate(error)}") from error
