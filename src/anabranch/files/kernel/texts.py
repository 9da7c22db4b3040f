"""The bytes of texts."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I32, I64, U8
from anabranch.compiled import compiled
from anabranch.files.kernel.bytes import NULL


@compiled
def gather_texts(data: U8, starts: I64, ends: I64, kinds: U8) -> tuple[I32, U8]:
    """The bytes of cells, one after the other, and where they end, after a 0; a cell that is NULL has none."""
    n = len(kinds)
    offsets = np.zeros(n + 1, np.int32)
    for i in range(n):
        size = 0 if kinds[i] == NULL else ends[i] - starts[i]
        offsets[i + 1] = offsets[i] + size
    texts = np.empty(offsets[n], np.uint8)
    for i in range(n):
        to, start = offsets[i], starts[i]
        for k in range(offsets[i + 1] - to):
            texts[to + k] = data[start + k]
    return offsets, texts
