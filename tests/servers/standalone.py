"""A standalone Spark cluster: a master and workers in processes of their own, on loopback ports.

The processes have no variable of the tests, and an empty home folder: executors have Java and Spark, and neither the
package nor compiled kernels. What they run comes from the driver.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from anabranch.runtime.java import find_java
from tests.recovery.killing import kill_session
from tests.servers.ports import free_port, is_open, wait_for
from tests.spark_home import SHORT_LIVED

_CLASSES = "org.apache.spark.deploy"


class Standalone:
    """A running cluster.

    Attributes
    ----------
    url : the value of --master
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._spark = Path(pyspark.__file__).parent
        self._java = find_java().home
        self._port = free_port()
        self.url = f"spark://127.0.0.1:{self._port}"
        self._processes: dict[str, subprocess.Popen] = {}

    def start(self, n_workers: int) -> None:
        """Start the master and workers with one core and 1 GiB each, and wait until all are registered."""
        self._start("master", "master.Master", "--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0")
        wait_for(lambda: is_open(self._port), "starting the master of Spark", 120)
        workers = [f"worker-{number}" for number in range(n_workers)]
        for name in workers:
            options = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g")
            self._start(name, "worker.Worker", *options, "--work-dir", str(self.folder / name / "work"), self.url)
        wait_for(
            lambda: all("Successfully registered" in self.log(name) for name in workers),
            "starting the workers of Spark",
            120,
        )

    def log(self, name: str) -> str:
        """What the master or a worker has printed."""
        return (self.folder / name / "log.txt").read_text()

    def executor_logs(self) -> str:
        """What all executors have printed, for messages of tests."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*/work/*/*/stderr")))

    def kill(self, name: str) -> None:
        """Kill the master or a worker, with its executors and their Python processes, as kill -9 does."""
        kill_session(self._processes.pop(name))

    def close(self) -> None:
        for name in list(self._processes):
            self.kill(name)

    def _start(self, name: str, module: str, *options: str) -> None:
        home = self.folder / name
        (home / "tmp").mkdir(parents=True)
        environment = {
            "HOME": str(home), "TMPDIR": str(home / "tmp"), "SPARK_LOCAL_DIRS": str(home / "tmp"),
            "PATH": os.defpath, "JAVA_HOME": str(self._java), "SPARK_HOME": str(self._spark),
            "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
        }  # fmt: skip
        with open(home / "log.txt", "w") as log:
            self._processes[name] = subprocess.Popen(
                [self._spark / "bin" / "spark-class", f"{_CLASSES}.{module}", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=home, start_new_session=True,
            )  # fmt: skip


@contextmanager
def standalone_cluster(folder: Path, n_workers: int = 2) -> Iterator[Standalone]:
    """A cluster that runs until the block ends."""
    cluster = Standalone(folder)
    try:
        cluster.start(n_workers)
        yield cluster
    finally:
        cluster.close()
