"""Commands in this process, for the tests of faults."""

from __future__ import annotations

from tests.cli.conftest import anabranch

__all__ = ["anabranch"]
