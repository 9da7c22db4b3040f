"""The fixture that runs commands in this process."""

from tests.cli.conftest import anabranch  # noqa: F401  (a fixture of this package, too)
