"""Idle keys in pages: a micro-batch reads and writes the pages of the keys that it changes, not all keys.

The keys of a bucket are *hot* or *cold*, never both. Hot keys are in the state that is opened, stepped and saved at
every micro-batch. Keys that have had no rows for a while become cold: their part of the state moves to pages, one row
for each key. They become hot again when a row of theirs arrives.

A page has the keys whose hashes end with the same bits. A page with too many keys is divided by one more bit, so pages
stay small, and there are as many as the keys need. The *directory* of the pages is part of the hot state. A filter, in
a page of its own, says which keys are not in pages; it is read if rows of many keys arrive that are not hot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, U64, Bools
from anabranch.splitmix import mix_all
from anabranch.transport.key_filter import KeyFilter
from anabranch.transport.state import seal, unseal

#: The most rows of a page: reading it does not take much longer than a call of the state store.
MOST_ROWS = 128

#: Pages are not divided further than this: rows of one key stay together.
_MOST_BITS = 40

#: Idle keys become cold when there are more than MOST_IDLE, and more than the cold ones divided by this number. So many
#: keys of a page become cold together, and the hot state stays small.
MOST_IDLE = 1024
COLD_PER_IDLE = 16

#: The page of the filter. It is read for more keys than FEW_CALLS, and one more for each so many of its bytes, because
#: reading these takes about as long as a call of the state store.
_FILTER = 0
FEW_CALLS = 4
_BYTES_PER_CALL = 4096

#: The column of a page that has the hash of the key of each row.
HASH = "hash"

_TABLE = "rows"


class PageStore(Protocol):
    """Where the pages of a bucket are kept; they have numbers."""

    def read(self, page: int) -> bytes:
        """The bytes of a page that was written."""

    def write(self, page: int, data: bytes) -> None:
        """Write a page, or replace it."""

    def remove(self, page: int) -> None:
        """Remove a page."""


@runtime_checkable
class Paged(Protocol):
    """An operator that can have cold keys."""

    def use_pages(self, store: PageStore) -> None:
        """Keep cold keys in a store; called after `open`, before `step`."""


@dataclass(frozen=True, slots=True)
class PartOfStore:
    """A part of a store with numbers of its own: those below 0, from -`first` down in steps of `stride`.

    So several directories can share a store, also with logs, whose numbers are above 0.
    """

    store: PageStore
    first: int
    stride: int

    def _number(self, page: int) -> int:
        return -(self.first + page * self.stride)

    def read(self, page: int) -> bytes:
        """The bytes of a page that was written."""
        return self.store.read(self._number(page))

    def write(self, page: int, data: bytes) -> None:
        """Write a page, or replace it."""
        self.store.write(self._number(page), data)

    def remove(self, page: int) -> None:
        """Remove a page."""
        self.store.remove(self._number(page))


@dataclass(slots=True)
class Pages:
    """The pages of one bucket.

    The number of a page is 1 followed by the last bits of the hashes of its keys, in binary: page 1 has all keys, then
    0b10 and 0b11 have one half each.

    Attributes
    ----------
    directory : the number of rows of each page
    filtered : how many keys were added to the filter; None if there is no filter
    filter_bytes : its size
    """

    store: PageStore
    fingerprint: str
    directory: dict[int, int]
    filtered: int | None = None
    filter_bytes: int = 0

    @classmethod
    def open(cls, store: PageStore, fingerprint: str, saved: pa.Table | None) -> Pages:
        """The pages of a directory that was saved, or none."""
        pages = {1: 0} if saved is None else dict(zip(*saved.to_pydict().values(), strict=True))
        return cls(store, fingerprint, pages, pages.pop(_FILTER, None), pages.pop(_FILTER - 1, 0))

    def save(self) -> pa.Table:
        """The directory as a table; the filter is a page with the number of its keys, and its size is another one."""
        of_filter = {} if self.filtered is None else {_FILTER: self.filtered, _FILTER - 1: self.filter_bytes}
        pages = of_filter | self.directory
        return pa.table({"page": pa.array(pages, pa.int64()), "rows": pa.array(pages.values(), pa.int64())})

    def __len__(self) -> int:
        """The number of rows."""
        return sum(self.directory.values())

    def wants(self, n_idle: int) -> bool:
        """Whether so many idle keys should become cold."""
        return n_idle > max(MOST_IDLE, len(self) // COLD_PER_IDLE)

    def _page_of(self, hashes: U64) -> I64:
        """The page of each key."""
        bits = mix_all(hashes)  # the buckets are chosen by the hashes, too
        pages = np.array([*self.directory], np.int64)
        found = np.zeros(len(hashes), np.int64)
        for depth in range(int(pages.max()).bit_length()):
            numbers = _number(bits, depth)
            found = np.where(np.isin(numbers, pages), numbers, found)
        return found

    def take(self, hashes: U64) -> list[pa.Table]:
        """The rows of those of some keys that are cold, by page; they become hot."""
        taken = []
        if self.filtered is not None and len(hashes) > FEW_CALLS + self.filter_bytes // _BYTES_PER_CALL:
            hashes = hashes[self._read_filter(self.filtered).may_have(hashes)]
        for page, of_page in _by_page(self._page_of(hashes)):
            if self.directory[page]:
                rows = self._read(page)
                chosen = np.isin(_hashes(rows), hashes[of_page])
                if chosen.any():
                    taken.append(rows.filter(pa.array(chosen)))
                    self._write(page, rows.filter(pa.array(~chosen)))
        if not len(self):
            self._remove_filter()
        return taken

    def take_all(self) -> list[pa.Table]:
        """All rows, by page; all keys become hot."""
        taken = [self._read(page) for page, n_rows in self.directory.items() if n_rows]
        for page in [page for page, n_rows in self.directory.items() if n_rows]:
            self.store.remove(page)
        self.directory = {1: 0}
        self._remove_filter()
        return taken

    def put(self, rows: pa.Table, is_kept: Callable[[pa.Table], Bools] | None = None) -> None:
        """Add the rows of keys that become cold, with the hashes of the keys.

        `is_kept` says which rows are not forgotten, of the pages that are written.
        """
        for page, of_page in _by_page(self._page_of(_hashes(rows))):
            arriving = rows.take(pa.array(of_page))
            known = [self._read(page)] if self.directory[page] else []
            if is_kept is not None:
                known = [table.filter(pa.array(is_kept(table))) for table in known]
            self._write(page, pa.concat_tables([*known, arriving]))
        self._filter_keys(_hashes(rows))

    def _filter_keys(self, hashes: U64) -> None:
        """Add keys that became cold to the filter. If it is full, a larger one is made from all pages.

        It is full after half as many keys became cold as were cold before, so this is seldom.
        """
        filtered = None if self.filtered is None else self._read_filter(self.filtered)
        if filtered is None or filtered.room < len(hashes):
            filtered = KeyFilter.for_keys(max(MOST_IDLE, len(self)) * 3 // 2)
            hashes = np.concatenate([_hashes(self._read(page)) for page, n_rows in self.directory.items() if n_rows])
        filtered.add(hashes)
        self.store.write(_FILTER, seal({_TABLE: filtered.save()}, self.fingerprint))
        self.filtered, self.filter_bytes = filtered.added, len(filtered.bits)

    def _remove_filter(self) -> None:
        if self.filtered is not None:
            self.store.remove(_FILTER)
            self.filtered = None

    def _read_filter(self, added: int) -> KeyFilter:
        return KeyFilter.load(self._read(_FILTER), added)

    def _read(self, page: int) -> pa.Table:
        return unseal(self.store.read(page), self.fingerprint)[_TABLE].replace_schema_metadata(None)

    def _write(self, page: int, rows: pa.Table) -> None:
        """Write a page; divide it if it has too many rows of several keys."""
        if rows.num_rows > MOST_ROWS and page.bit_length() < _MOST_BITS:
            if self.directory.pop(page):
                self.store.remove(page)
            depth = page.bit_length()
            child_of = _number(mix_all(_hashes(rows)), depth)
            for child in (page + (1 << depth - 1), page + (1 << depth)):
                self.directory[child] = 0
                self._write(child, rows.filter(pa.array(child_of == child)))
            return
        if rows.num_rows:
            # In one chunk: otherwise, a page would get one more with each write.
            self.store.write(page, seal({_TABLE: rows.combine_chunks()}, self.fingerprint))
        elif self.directory[page]:
            self.store.remove(page)
        self.directory[page] = rows.num_rows


def _by_page(page_of: I64) -> Iterator[tuple[int, I64]]:
    """Yield each page, with the positions of its keys."""
    order = np.argsort(page_of, kind="stable")
    begins = np.flatnonzero(np.diff(page_of[order], prepend=-1))
    for positions in np.split(order, begins[1:]):
        if len(positions):
            yield int(page_of[positions[0]]), positions


def _number(bits: U64, depth: int) -> I64:
    """The page of each key, if all pages have this depth."""
    return ((bits & np.uint64((1 << depth) - 1)) | np.uint64(1 << depth)).astype(np.int64)


def _hashes(rows: pa.Table) -> U64:
    return rows[HASH].to_numpy().copy()  # numba would compile `mix_all` again for read-only arrays
