"""`anabranch executor`: becomes an executor of Spark, in a container on Kubernetes."""

from __future__ import annotations

import os


def command() -> None:
    """Become an executor of Spark; Spark calls this in the containers that it starts on Kubernetes."""
    from anabranch.runtime.kubernetes import executor_command

    program, *arguments = executor_command(os.environ)
    os.execv(program, [program, *arguments])  # noqa: S606  (Java, found by this package)
