"""The values of the column `status`."""

from __future__ import annotations

#: The status of an answer that later rows may change or exclude.
PROVISIONAL = "provisional"

#: The status of final answers, where a query also gives provisional ones.
FINAL = ("final", "validated", "matched", "expired")
