"""Every line of a file is in one task, however the file is divided."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.files import blocks
from anabranch.files.blocks import blocks_of, is_readable, tasks_of


@given(
    st.lists(st.sampled_from([b"", b"a", b"bb,c", b"ddd\r", b"e\rf", b"g" * 40]), max_size=12),
    st.booleans(),
    st.lists(st.integers(0, 120), max_size=6),
    st.sampled_from([1, 3, 16, 1000]),
)
def test_tasks_have_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], ended: bool, bounds: list[int], block: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines.csv"
    content = b"\n".join(lines) + (b"\n" if ended else b"")
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK", block)
        patch.setattr(blocks, "_FIRST_BLOCK", 2)
        stops = sorted({min(bound, len(content)) for bound in bounds} | {len(content)})
        parts = [list(blocks_of(str(path), start, stop)) for start, stop in zip([0, *stops], stops, strict=False)]
        assert b"".join(piece for part in parts for piece in part) == content
        for part in parts:
            # Blocks end with lines; only the last one of the file may have no line end.
            assert all(piece.endswith(b"\n") or content.endswith(piece) for piece in part)
        assert b"".join(blocks_of(str(path), None, None)) == content


def test_large_files_are_divided_and_compressed_ones_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_SMALLEST_TASK", 10)
    (tmp_path / "a.csv").write_bytes(b"a,b\n" * 25)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"a,b\n" * 25))
    (tmp_path / "c.csv").write_bytes(b"a,b\n")
    tasks = tasks_of([str(tmp_path / name) for name in ("a.csv", "b.csv.gz", "c.csv")], n_cores=2).to_pylist()
    divided = [(task["start"], task["stop"]) for task in tasks if task["path"].endswith("a.csv")]
    assert len(divided) > 2
    assert divided[0][0] == 0
    assert divided[-1][1] == 100
    assert all(left[1] == right[0] for left, right in zip(divided, divided[1:], strict=False))
    assert [task["start"] for task in tasks if not task["path"].endswith("a.csv")] == [None, None]
    assert b"".join(blocks_of(str(tmp_path / "b.csv.gz"), None, None)) == b"a,b\n" * 25


def test_small_files_need_small_buffers_and_large_files_few() -> None:
    class Recorded(io.BytesIO):
        sizes: list[int] = []

        def read(self, size: int | None = -1) -> bytes:
            self.sizes.append(size or 0)
            return super().read(size)

    large = b"a,b\n" * (20 << 18)
    assert b"".join(blocks._whole_lines(Recorded(large), None)) == large
    assert Recorded.sizes[0] <= 64 << 10
    assert max(Recorded.sizes) == 4 << 20
    assert len(Recorded.sizes) <= 10


def test_no_files_are_no_tasks() -> None:
    assert tasks_of([], 2).num_rows == 0


def test_files_that_only_hadoop_can_decompress() -> None:
    assert [is_readable(path) for path in ("a.csv", "a.csv.gz", "a.csv.SNAPPY", "a.json.lz4")] == [
        True, True, False, False,
    ]  # fmt: skip
