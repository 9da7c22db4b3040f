"""Rows in pages by age: what arrives in a micro-batch is written once, and not again as long as it is kept.

A page is removed when none of its rows is kept. It is written again, with others, when less than half of its rows are
kept, or when there are many pages of its size: so a long stream of small micro-batches has few pages.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, Bools
from anabranch.transport.pages import PageStore
from anabranch.transport.state import seal, unseal

#: Pages with fewer rows than this are united when as many as FACTOR have about the same size, that is, within a factor
#: of FACTOR.
SMALL = 4096
FACTOR = 8

_TABLE = "rows"


class RowLog:
    """The log of one table of a bucket.

    Parameters
    ----------
    store : where the pages are kept
    fingerprint : of the queries
    first, stride : the pages are numbered from `first` in steps of `stride`, so that several logs can share a store
    saved : the directory that `save` returned last; None at first

    Attributes
    ----------
    written : the number of rows that were written to each page
    """

    def __init__(
        self, store: PageStore, fingerprint: str, first: int = 1, stride: int = 1, saved: pa.Table | None = None
    ) -> None:
        self._store, self._fingerprint = store, fingerprint
        self._next, self._stride = first, stride
        self.written: dict[int, int] = {}
        if saved is not None:
            self.written = dict(zip(saved["page"].to_pylist(), saved["rows"].to_pylist(), strict=True))
            self._next = max([first, *(page + stride for page in self.written)])

    def read(self) -> list[tuple[int, pa.Table]]:
        """All pages, in order of age."""
        return [(page, self._read(page)) for page in sorted(self.written)]

    def _read(self, page: int) -> pa.Table:
        return unseal(self._store.read(page), self._fingerprint)[_TABLE].replace_schema_metadata(None)

    def save(self, rows: pa.Table, page_of: I64, is_same: Bools) -> pa.Table:
        """Write the rows that are not in pages, and return the directory.

        Parameters
        ----------
        rows : all rows that are kept
        page_of : the page of each row; 0 if it has none yet
        is_same : for each page in the order of `read`, whether reading it again gives its kept rows and no others
        """
        pages = sorted(self.written)
        kept = np.bincount(np.searchsorted(pages, page_of[page_of > 0]), minlength=len(pages))
        replaced = {
            page
            for page, n_kept, same in zip(pages, kept, is_same, strict=True)
            if not same or 2 * n_kept < self.written[page]
        }
        replaced |= self._small(set(pages) - replaced)
        written_again = np.isin(page_of, [0, *replaced])
        for page in replaced:
            self._store.remove(page)
            del self.written[page]
        if written_again.any():
            new = rows.filter(pa.array(written_again))
            self._store.write(self._next, seal({_TABLE: new}, self._fingerprint))
            self.written[self._next] = new.num_rows
            self._next += self._stride
        pages_and_rows = np.array([*self.written.items()], np.int64).reshape(-1, 2)
        return pa.table({"page": pages_and_rows[:, 0].copy(), "rows": pages_and_rows[:, 1].copy()})

    def _small(self, pages: set[int]) -> set[int]:
        """The pages of a size of which there are many."""
        by_size: dict[int, set[int]] = {}
        for page in pages:
            if self.written[page] < SMALL:
                by_size.setdefault(int(np.log(self.written[page]) / np.log(FACTOR)), set()).add(page)
        return next((own for own in by_size.values() if len(own) >= FACTOR), set())
