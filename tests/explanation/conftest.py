"""Fixtures of the explanations."""

from tests.pattern.conftest import nothing_is_too_large

__all__ = ["nothing_is_too_large"]
