"""Reads damaged Parquet, CSV and JSON files through the stage of the workers, and steps the operators after it.

A file must be read or quarantined, within a time limit, and every row must be counted once. Run as
`python -m tests.fuzz.files --count N --seed S`; the exit status is 1 if a file gives anything else. A failure is
printed with its seed, which repeats it with `--count 1`.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from anabranch.errors import AnabranchError
from anabranch.files.csv_lines import Dialect
from anabranch.files.formats import Columns, CsvFormat, JsonFormat
from anabranch.files.parquet import ParquetReader
from anabranch.files.reader import FileReader
from anabranch.files.text import TextReader
from anabranch.language.types import Type
from tests.files.stage import process_files
from tests.local import local_job

#: The longest that a file of a few rows may take, in seconds. A first one also loads the kernels of its format.
TIME_LIMIT = 60.0

#: A damaged length may ask for more memory than there is; this much must be enough.
MEMORY_LIMIT = 8 << 30

WORKBOOK = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t {time} MODEL INDEPENDENT;
CREATE QUERY coffee AS PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x;
"""
TIMES = {"INTEGER": Type.INTEGER, "DOUBLE": Type.DOUBLE, "TIMESTAMP": Type.TIMESTAMP}
NAMES = ["person", "place", "t", "p"]


@dataclass(frozen=True)
class Case:
    """A file before it is damaged, and how it is read."""

    extension: str
    content: bytes
    time: str


@cache
def job_of(time_type: str) -> Any:
    """The job of the query over times of a type."""
    return local_job(WORKBOOK.format(time=time_type), "coffee", live=True)


def reader_of(case: Case) -> FileReader:
    """The reader of the workers."""
    types = [Type.STRING, Type.STRING, TIMES[case.time], Type.DOUBLE]
    if "parquet" in case.extension:
        return ParquetReader(dict(zip(NAMES, types, strict=True)))
    columns = Columns(NAMES, types)
    lines = JsonFormat(columns) if "json" in case.extension else CsvFormat(columns, NAMES, Dialect())
    return TextReader(lines)


# ---------------------------------------------------------------- files


def make_case(rng: random.Random) -> Case:
    """A valid file of a few rows."""
    time_type = rng.choice(list(TIMES))
    table = _rows(rng, time_type)
    extension = rng.choice(["parquet", "csv", "json", "csv.gz", "json.gz"])
    content = _content(rng, table, extension.split(".")[0])
    return Case(extension, gzip.compress(content, mtime=0) if extension.endswith(".gz") else content, time_type)


def _rows(rng: random.Random, time_type: str) -> pa.Table:
    n = rng.choice([0, 1, 5, 40])
    times = pa.array([rng.randrange(20) for _ in range(n)], pa.int64())
    kinds = {"INTEGER": pa.int64(), "DOUBLE": pa.float64(), "TIMESTAMP": pa.timestamp("us")}
    times = pa.compute.multiply(times, 1_000_000) if time_type == "TIMESTAMP" else times
    columns = [
        pa.array([rng.choice(["ann", "bob", "é", "a,b", 'x"y', None]) for _ in range(n)], pa.string()),
        pa.array([rng.choice(["hall", "coffee", "", None]) for _ in range(n)], pa.string()),
        times.cast(kinds[time_type]),
        pa.array([rng.choice([0.5, 1 / 3, 1.0, 0.0]) for _ in range(n)], pa.float64()),
    ]
    return pa.table(columns, names=NAMES)


def _content(rng: random.Random, table: pa.Table, file_format: str) -> bytes:
    out = io.BytesIO()
    if file_format == "parquet":
        compression = rng.choice(["none", "snappy", "zstd", "gzip"])
        version = rng.choice(["1.0", "2.0"])
        pq.write_table(
            table, out, compression=compression, use_dictionary=rng.random() < 0.5, data_page_version=version,
            row_group_size=rng.choice([10, 1000]),
        )  # fmt: skip
    elif file_format == "csv":
        arrow_csv.write_csv(table, out)
    else:
        rows = [json.dumps(row, default=str, ensure_ascii=rng.random() < 0.5) for row in table.to_pylist()]
        out.write("".join(row + "\n" for row in rows).encode())
    return out.getvalue()


# ---------------------------------------------------------------- damage

_PIECES = [
    b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b'"', b'""', b"\\", b"\\u12", b",", b"\n", b"\r",
    b"\r\n", b"{", b"}", b"[", b"]", b"[" * 3000, b'{"a":' * 600, b"9" * 400, b"1e400", b"-1e-400", b"NaN", b"Infinity",
    b"null", b"9223372036854775808", b"-9223372036854775808", b"4611686018427387904", b"2999-01-01",
    b"0000-00-00T99:99:99Z", b"person,place,t", b"t,person,place,p", b"PERSON,PLACE,T,P", b'"person":', b"\xef\xbb\xbf",
    b"\xff\xfe", b"\x1f\x8b", b"PAR1",
]  # fmt: skip


def _flip(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _repeat(rng: random.Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    block = data[start : start + rng.choice([1, 8, 100])]
    data[start:start] = block * rng.choice([1, 2, 50])


def _swap(rng: random.Random, data: bytearray) -> None:
    size = rng.choice([1, 4, 30])
    first, second = (rng.randrange(len(data)) for _ in range(2))
    data[first : first + size], data[second : second + size] = data[second : second + size], data[first : first + size]


def _insert(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(_PIECES)


def _overwrite(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    piece = rng.choice(_PIECES)
    data[at : at + len(piece)] = piece


def _replace_header(rng: random.Random, data: bytearray) -> None:
    end = data.find(b"\n")
    if end >= 0:
        data[:end] = rng.choice([b"person,place,t", b"p,t,place,person", b"", b'"person","place","t","p"', b"a;b"])


DAMAGE: list[Callable[[random.Random, bytearray], None]] = [
    _flip, _flip, _truncate, _repeat, _swap, _insert, _insert, _overwrite, _replace_header,
]  # fmt: skip


def damaged(seed: int) -> Case:
    """A file with up to five damages; compressed text may be damaged before it is compressed, or after."""
    rng = random.Random(seed)
    case = make_case(rng)
    inside = case.extension.endswith(".gz") and rng.random() < 0.7
    data = bytearray(gzip.decompress(case.content) if inside else case.content)
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        if data:
            rng.choice(DAMAGE)(rng, data)
    content = gzip.compress(bytes(data), mtime=0) if inside else bytes(data)
    return Case(case.extension, content, case.time)


# ---------------------------------------------------------------- checks


def check(seed: int, folder: Path) -> str:
    """The reason why a file failed the check; empty if it passed."""
    case = damaged(seed)
    path = folder / f"file.{case.extension}"
    path.write_bytes(case.content)
    try:
        counts, rejected = process_files(job_of(case.time), reader_of(case), [{"path": str(path)}])
    except AnabranchError as error:
        return "" if str(error) and "\n" not in str(error) else f"a message of several lines: {error}"
    except Exception as error:  # the error that the fuzzer looks for
        return f"{type(error).__name__}: {error}"
    accounted = counts.used + counts.duplicate + counts.late + counts.quarantined + counts.excluded
    if counts.read != accounted:
        return f"read {counts.read} rows, but accounted for {accounted}"
    if counts.quarantined != len(rejected):
        return f"{counts.quarantined} rows were quarantined, but {len(rejected)} are in the quarantine"
    return "" if all(_is_written(row) for row in rejected) else "a quarantined row is not JSON, or has no reason"


def _is_written(row: dict[str, str]) -> bool:
    return bool(row["reason"]) and "\n" not in row["reason"] and isinstance(json.loads(row["row"]), dict)


def _work(first: int, last: int, sender: Connection) -> None:
    """Check the files of some seeds; sends each seed before it is checked, and then the reason."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            sender.send(check(seed, Path(folder)))


def run(count: int, seed: int) -> Iterator[tuple[int, str]]:
    """Check `count` files in a process of their own; yields the seeds that failed, with the reason.

    A process that hangs is killed, and one that crashes is replaced: the file counts as failed.
    """
    here, last = seed, seed + count
    while here < last:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=_work, args=(here, last, sender), daemon=True)
        process.start()
        sender.close()
        while here < last:
            reason = _received(receiver)
            if reason:
                yield here, reason
            here += 1
            if reason in (_HUNG, _CRASHED):
                break
        process.kill()
        process.join()
        receiver.close()


_HUNG, _CRASHED = "did not end in time", "the process died"


def _received(receiver: Connection) -> str:
    try:
        return receiver.recv() if receiver.poll(TIME_LIMIT) else _HUNG
    except EOFError:
        return _CRASHED


def main() -> None:
    """Read the arguments, check files, and print the failures."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.files", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many files")
    parser.add_argument("--seed", type=int, default=0, help="of the first file; each one has the next seed")
    options = parser.parse_args()
    start, failed = time.monotonic(), 0
    for seed, reason in run(options.count, options.seed):
        failed += 1
        sys.stdout.write(f"seed {seed}, .{damaged(seed).extension}: {reason}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{options.count:,} files, {failed} failed, {time.monotonic() - start:.0f} s\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
