"""The flag with which CPython remembers a KeyboardInterrupt that ended a string of code.

What is patched
    A flag of the interpreter. Nothing is replaced: the flag is cleared as CPython itself clears it.
Why
    A dataclass or a named tuple is made by `exec` of a string. If Ctrl-C arrives there, CPython sets the flag, keeps it
    although the interrupt is caught, and `python -m anabranch` ends by SIGINT (-2) instead of with its exit status.
Tried on
    Python 3.11.
Where it does not fit
    The exit status is that of a process that SIGINT ended; a shell shows 130 for both.
"""

from __future__ import annotations


def forget() -> None:
    """Forget interrupts that were caught, so that the exit status is the one given to `sys.exit`."""
    exec("")  # noqa: S102  # Every run of a string clears the flag first.
