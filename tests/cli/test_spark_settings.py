"""--conf and --packages: settings of the Spark session that a command starts."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.command import Command

from anabranch.cli.common import spark_settings
from anabranch.runtime import spark as runtime_spark


def test_settings_are_those_of_conf_and_packages() -> None:
    assert spark_settings(None, None) == {}
    conf = ["spark.a=b=c", "spark.jars.packages=g:a:1"]
    assert spark_settings(conf, ["g:b:2,g:c:3", "g:d:4"]) == {
        "spark.a": "b=c", "spark.jars.packages": "g:a:1,g:b:2,g:c:3,g:d:4",
    }  # fmt: skip
    with pytest.raises(typer.BadParameter, match="--conf takes KEY=VALUE, not spark.a"):
        spark_settings(["spark.a"], None)


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["stream", "--checkpoint", "c", "--output", "o", "--once"], ["explain", "--data"], ["shell"]],
    ids=lambda arguments: arguments[0],
)
def test_commands_start_spark_with_the_settings(
    arguments: list[str], tmp_path: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "at.csv").write_text("k,t\na,1\n")
    workbook = tmp_path / "w.abq"
    workbook.write_text("CREATE STREAM at KEY (k) TIME t FROM 'at.csv'; CREATE QUERY q AS PATTERN at(x) GROUP BY x;")
    started: list[dict[str, str]] = []

    def start(master: Any, verbose: bool, short: bool, settings: dict[str, str], report: Any) -> Any:
        started.append(dict(settings))
        raise runtime_spark.AnabranchError("not started in this test")

    monkeypatch.setattr(runtime_spark, "make_session", start)
    monkeypatch.setattr("sys.stdin", io.StringIO("PATTERN at(x) GROUP BY x;\n"))
    command, *rest = arguments
    outcome = anabranch(command, str(workbook), *rest, "--conf", "spark.a=b", "--packages", "g:a:1")
    assert outcome.status != 0
    assert started[0] == {"spark.a": "b", "spark.jars.packages": "g:a:1"}
