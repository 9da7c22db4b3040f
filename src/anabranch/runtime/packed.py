"""Executors that run with an archive of `anabranch pack`: Spark sends it to them, and they unpack it."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
from pathlib import Path

from anabranch.errors import AnabranchError

_LAUNCHER = """\
#!/bin/sh
# Written by Anabranch: the Python of the driver, at the path that the executors have for theirs.
exec {python} "$@"
"""


def use_archive(archive: str) -> dict[str, str]:
    """Let the executors of the next Spark session run with a packed environment; returns the settings for it.

    Spark unpacks the archive in the folder of each executor, and starts the Python in it by a relative path. At the
    start of a stream it also starts Python on the driver, by the same path (PythonFunction.pythonExec). So there is a
    program at this path in the current folder, until this process ends.

    Raises
    ------
    AnabranchError
        If there is no such archive, or if the current folder is not writable.
    """
    # An address, such as hdfs://..., is read by Spark.
    if "://" not in archive:
        if not Path(archive).is_file():
            raise AnabranchError(f"there is no archive {archive}; `anabranch pack` writes one")
        archive = str(Path(archive).absolute())
    folder = Path(f".anabranch-{os.getpid()}")
    program = folder / "bin" / "python"
    try:
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(_LAUNCHER.format(python=shlex.quote(sys.executable)))
        program.chmod(0o755)
    except OSError as error:
        raise AnabranchError(f"--archive needs a current folder that is writable: {error}") from error
    atexit.register(shutil.rmtree, folder.absolute(), ignore_errors=True)
    os.environ["PYSPARK_PYTHON"] = f"./{program}"
    return {"spark.archives": f"{archive}#{folder}"}
