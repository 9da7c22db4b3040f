"""The bytes of text files, in blocks of whole lines: the tasks of a run, and the blocks of a task."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa

#: A worker reads about this many bytes of a file at once. More of them do not stay in the cache of the processor.
_BLOCK = 4 << 20

#: The first block is smaller, and each one is four times the one before. A buffer for a whole block that a small file
#: does not fill leaves a hole in the heap: a worker that reads small files for weeks would grow.
_FIRST_BLOCK = 64 << 10

#: A task that reads fewer bytes takes longer to start than to run, and one that reads more keeps other cores waiting.
_SMALLEST_TASK, _LARGEST_TASK = 4 << 20, 64 << 20

#: The extensions of compressed files that Arrow reads as Spark does.
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
#: Those that Spark reads and Arrow does not, or not in the form in which Hadoop writes them.
_HADOOP_ONLY = (".deflate", ".lz4", ".lzo", ".snappy")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_TASKS = pa.schema([("path", pa.string()), ("start", pa.int64()), ("stop", pa.int64())])


def is_readable(path: str) -> bool:
    """Whether workers can decompress a file, by its extension."""
    return not path.lower().endswith(_HADOOP_ONLY)


def tasks_of(paths: Sequence[str], n_cores: int) -> pa.Table:
    """Tasks of about the same number of bytes, several per core. A compressed file is one task."""
    sizes = [os.path.getsize(path) for path in paths]
    share = min(_LARGEST_TASK, max(_SMALLEST_TASK, sum(sizes) // (2 * n_cores)))
    tasks: list[tuple[str, int | None, int | None]] = []
    for path, size in zip(paths, sizes, strict=True):
        if _compression(path) is not None or size <= share:
            tasks.append((path, None, None))
            continue
        n_tasks = -(-size // share)
        bounds = [size * number // n_tasks for number in range(n_tasks + 1)]
        tasks += [(path, start, stop) for start, stop in zip(bounds, bounds[1:], strict=False)]
    columns = zip(*tasks, strict=True) if tasks else ((), (), ())
    return pa.table([list(column) for column in columns], schema=_TASKS)


def blocks_of(path: str, start: int | None, stop: int | None) -> Iterator[bytes]:
    """Blocks of the lines that start between two bytes of a file; of all lines without them.

    Lines end with LF here; a block may have more of them that end with CR.
    """
    compression = _compression(path)
    if compression is not None:
        with pa.input_stream(path, compression=compression) as stream:
            yield from _whole_lines(stream, None)
        return
    with open(path, "rb") as file:
        if start:
            # A line that starts before this task belongs to the task before it.
            file.seek(start - 1)
            file.seek(start - 1 + _bytes_to_line_end(file))
        yield from _whole_lines(file, stop)


def without_mark(data: bytes) -> bytes:
    """The first block of a file without the mark of UTF-8."""
    return data.removeprefix(_BYTE_ORDER_MARK)


def _compression(path: str) -> str | None:
    return next((name for extension, name in _COMPRESSED.items() if path.lower().endswith(extension)), None)


def _bytes_to_line_end(file: IO[bytes]) -> int:
    """How many bytes to skip until a line starts."""
    skipped = 0
    while piece := file.read(_BLOCK):
        end = piece.find(b"\n")
        if end >= 0:
            return skipped + end + 1
        skipped += len(piece)
    return skipped


def _whole_lines(file: IO[bytes], stop: int | None) -> Iterator[bytes]:
    """Blocks from the position of a file up to the end of the line in which the byte before `stop` is."""
    position = file.tell() if stop is not None else 0
    held = b""
    size = min(_FIRST_BLOCK, _BLOCK)
    while stop is None or position < stop:
        piece = file.read(size if stop is None else min(size, stop - position))
        if not piece:
            break
        size = min(4 * size, _BLOCK)
        position += len(piece)
        end = piece.rfind(b"\n") + 1
        if end:
            yield held + piece[:end]
            held = piece[end:]
        else:
            held += piece
    if stop is not None and position >= stop and held:
        held += _rest_of_line(file)
    if held:
        yield held


def _rest_of_line(file: IO[bytes]) -> bytes:
    pieces = []
    while piece := file.read(1 << 16):
        end = piece.find(b"\n") + 1
        pieces.append(piece[:end] if end else piece)
        if end:
            break
    return b"".join(pieces)
