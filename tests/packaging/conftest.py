"""Commands in this process, for the tests of the manifest."""

from __future__ import annotations

from tests.cli.conftest import anabranch

__all__ = ["anabranch"]
