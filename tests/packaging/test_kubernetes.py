"""The manifest for Kubernetes: its parts fit together, and to the image and the commands. No cluster was tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

from anabranch.cli.common import spark_settings
from anabranch.errors import AnabranchError
from anabranch.runtime.java import find_java
from anabranch.runtime.kubernetes import executor_command
from tests.cli.command import Command

ROOT = Path(__file__).parents[2]

VARIABLES = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "2048m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
    "SPARK_EXECUTOR_POD_NAME": "anabranch-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_JAVA_OPT_0": "-XX:+IgnoreUnrecognizedVMOptions",
    "SPARK_JAVA_OPT_2": "-Dspark.driver.port=7078",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "PATH": "/bin",
}


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    documents = yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


def test_the_parts_of_the_manifest_name_each_other(resources: dict[str, Any]) -> None:
    assert set(resources) == {"ServiceAccount", "Role", "RoleBinding", "PersistentVolumeClaim", "Job"}
    account = resources["ServiceAccount"]["metadata"]["name"]
    binding = resources["RoleBinding"]
    assert binding["roleRef"]["name"] == resources["Role"]["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == [account]
    pod = resources["Job"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    claim = resources["PersistentVolumeClaim"]["metadata"]["name"]
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == claim
    (driver,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in driver["volumeMounts"]}
    assert mounts == {"data": "/data", "scratch": "/tmp"}  # noqa: S108  (in the container)
    # The image has this user, and works in this folder.
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert f"useradd --uid {pod['securityContext']['runAsUser']} " in dockerfile
    assert "WORKDIR /data" in dockerfile


def test_the_driver_and_its_executors_have_the_same_image_and_volume(
    resources: dict[str, Any], anabranch: Command
) -> None:
    (driver,) = resources["Job"]["spec"]["template"]["spec"]["containers"]
    command, workbook, *options = driver["args"]
    assert workbook.endswith(".abq")
    page = anabranch(command, "--help").out
    assert all(option.split("=")[0] in page for option in options)
    conf = [option.removeprefix("--conf=") for option in options if option.startswith("--conf=")]
    settings = spark_settings(conf, None)
    assert settings["spark.kubernetes.container.image"] == driver["image"]
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.data"
    assert settings[f"{volume}.options.claimName"] == resources["PersistentVolumeClaim"]["metadata"]["name"]
    assert settings[f"{volume}.mount.path"] == "/data"
    variables = {f"$({variable['name']})" for variable in driver["env"]}
    used = ("spark.kubernetes.namespace", "spark.kubernetes.driver.pod.name", "spark.driver.host")
    assert {settings[name] for name in used} == variables


def test_an_executor_is_started_with_the_variables_of_its_container() -> None:
    program, *arguments = executor_command(VARIABLES)
    assert program == str(find_java().home / "bin" / "java")
    jars = Path(pyspark.__file__).parent / "jars"
    assert arguments == [
        "-XX:+IgnoreUnrecognizedVMOptions", "-Dspark.driver.port=7078", "-Dlast=1", "-Xms2048m", "-Xmx2048m",
        "-cp", f"/opt/spark/conf:{jars}/*", "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        "--driver-url", "spark://CoarseGrainedScheduler@10.0.0.7:7078", "--executor-id", "3", "--cores", "2",
        "--app-id", "spark-1", "--hostname", "10.0.0.8", "--resourceProfileId", "0", "--podName", "anabranch-exec-3",
    ]  # fmt: skip
    assert list(jars.glob("spark-kubernetes_*.jar"))


def test_without_these_variables_there_is_one_line(anabranch: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        if name.startswith("SPARK_"):
            monkeypatch.delenv(name, raising=False)
    outcome = anabranch("executor")
    assert outcome.status == 1
    assert outcome.first == (
        "anabranch: Spark calls this command in containers on Kubernetes; SPARK_DRIVER_URL is not set here"
    )
    with pytest.raises(AnabranchError, match="SPARK_EXECUTOR_MEMORY is not set"):
        executor_command({name: value for name, value in VARIABLES.items() if name != "SPARK_EXECUTOR_MEMORY"})
