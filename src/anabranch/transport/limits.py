"""The limit on the answers of a query: without it, a few events could fill the memory of a worker.

The number of answers is not bounded by that of rows. 300 events of one key have 330 million matches of four components.
The limit holds for each query in each bucket and step. Kernels stop when they reach it, before answers are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from anabranch.errors import TooManyAnswers
from anabranch.text import cell

#: The most answers of a query in one step of one bucket of a stream, by default. As rows of Arrow they take a few
#: hundred MB at most.
MAX_ANSWERS = 1_000_000

#: The same for an archive, where the only step of a bucket has all its rows. They can be some millions.
MAX_ANSWERS_OF_ARCHIVE = 4_000_000


@dataclass(slots=True)
class AnswerLimit:
    """Counts the answers of a query in one step of a bucket.

    Attributes
    ----------
    query : its name
    most : how many answers it may have
    remedy : how to change the query so that it has fewer
    """

    query: str
    most: int
    remedy: str
    count: int = 0

    @property
    def rest(self) -> int:
        """How many more answers there may be."""
        return self.most - self.count

    def add(self, number: int, where: Callable[[], str]) -> None:
        """Count answers; `where` says which of them are too many.

        Raises
        ------
        TooManyAnswers
            If there are more than allowed.
        """
        self.count += number
        if self.rest < 0:
            raise self.exceeded(where())

    def exceeded(self, where: str, what: str = "") -> TooManyAnswers:
        """The error that there are more answers than allowed, or too much of what answers are made from."""
        return TooManyAnswers(
            f"{self.query}: more than {what or f'{self.most:,} answers'} in one bucket and step ({where}); "
            f"{self.remedy}, or allow more (--max-answers)"
        )


def last_one(columns: Mapping[str, pa.Scalar]) -> str:
    """Where there are too many answers: columns of the last one."""
    return "the last one: " + ", ".join(f"{name} = {cell(value)}" for name, value in columns.items())
