"""A log of rows: pages are written once, removed when nothing of them is kept, and united when they are small."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.local import FINGERPRINT, MemoryPages

from anabranch.transport import log
from anabranch.transport.log import RowLog


class Rows:
    """The rows of a stream of micro-batches: their numbers, and the pages that they are in."""

    def __init__(self) -> None:
        self.store = MemoryPages()
        self.directory: pa.Table | None = None
        self.forgotten: set[int] = set()

    def step(self, arriving: list[int], forget: list[int], remove: list[int]) -> None:
        """Add rows. Rows that are forgotten stay in their pages, those that are removed must not."""
        rows = RowLog(self.store, FINGERPRINT, saved=self.directory)
        read = [(number, page) for page, table in rows.read() for number in table["n"].to_pylist()]
        known = [(number, page) for number, page in read if number not in self.forgotten]
        self.forgotten |= set(forget)
        kept = [*known, *((number, 0) for number in arriving)]
        kept = [(number, page) for number, page in kept if number not in self.forgotten and number not in remove]
        numbers, pages = np.array(kept, np.int64).reshape(-1, 2).T
        changed = {page for number, page in known if number in remove and number not in self.forgotten}
        is_same = np.array([page not in changed for page in sorted(rows.written)], np.bool_)
        self.directory = rows.save(pa.table({"n": numbers}), pages, is_same)
        assert set(self.store) == set(rows.written)

    def kept(self) -> set[int]:
        """The rows that reading the log gives."""
        tables = RowLog(self.store, FINGERPRINT, saved=self.directory).read()
        return {number for _, table in tables for number in table["n"].to_pylist()} - self.forgotten


@given(st.lists(st.tuples(st.integers(0, 6), st.lists(st.integers(0, 40)), st.lists(st.integers(0, 40))), max_size=20))
def test_a_log_has_the_rows_that_are_kept(steps: list[tuple[int, list[int], list[int]]]) -> None:
    rows, kept, n_rows = Rows(), set(), 0
    for n_arriving, forget, remove in steps:
        arriving = list(range(n_rows, n_rows + n_arriving))
        forget, remove = (
            [number for number in numbers if number < n_rows + n_arriving] for numbers in (forget, remove)
        )
        rows.step(arriving, forget, remove)
        n_rows += n_arriving
        kept = (kept | set(arriving)) - set(forget) - set(remove)
        assert rows.kept() == kept


def test_rows_are_written_once_and_pages_without_rows_are_removed() -> None:
    rows = Rows()
    window = 5
    for number in range(20):
        first = number * log.SMALL
        rows.store.calls.clear()
        gone = range(first - window * log.SMALL, first - (window - 1) * log.SMALL)
        rows.step(list(range(first, first + log.SMALL)), [n for n in gone if n >= 0], [])
        assert [call for call, _ in rows.store.calls if call != "read"] == ["remove"] * (number >= window) + ["write"]
    assert len(rows.store) == window


def test_small_pages_are_united() -> None:
    rows = Rows()
    n_written = 0
    for number in range(500):
        rows.store.calls.clear()
        rows.step([number], [], [])
        n_written += sum(call == "write" for call, _ in rows.store.calls)
    assert rows.kept() == set(range(500))
    assert len(rows.store) <= 3 * log.FACTOR
    assert n_written == 500
