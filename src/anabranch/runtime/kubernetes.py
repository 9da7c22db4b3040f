"""Executors of Spark on Kubernetes, in the image of the package.

Spark starts the container of an executor with the argument `executor`, and describes it by environment variables
(BasicExecutorFeatureStep). Spark's own images have a script that starts Java with them; this does the same with the
Spark and the Java of the package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyspark

from anabranch.errors import AnabranchError
from anabranch.runtime.java import find_java

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"

#: The arguments of an executor, and the variables that have their values.
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
_MEMORY = "SPARK_EXECUTOR_MEMORY"
_JAVA_OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)")


def executor_command(environment: Mapping[str, str]) -> list[str]:
    """The command that starts an executor, from the environment variables of its container.

    Raises
    ------
    AnabranchError
        If a variable is missing.
    """
    missing = [name for name in (*_ARGUMENTS.values(), _MEMORY) if not environment.get(name)]
    if missing:
        raise AnabranchError(f"Spark calls this command in containers on Kubernetes; {missing[0]} is not set here")
    numbered = {int(match[1]): environment[match[0]] for match in map(_JAVA_OPTION.fullmatch, environment) if match}
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    added = (environment.get(name) for name in ("SPARK_CONF_DIR", "SPARK_CLASSPATH"))
    memory = environment[_MEMORY]
    return [
        str(find_java().home / "bin" / "java"),
        *(numbered[number] for number in sorted(numbered)),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join([*filter(None, added), jars]),
        _BACKEND,
        *(part for argument, name in _ARGUMENTS.items() for part in (argument, environment[name])),
    ]
