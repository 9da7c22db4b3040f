"""The patch that keeps the servers of PySpark from printing tracebacks."""

from __future__ import annotations

import socketserver
from pathlib import Path

import pytest

from anabranch.patches import spark_servers


class Failing(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        raise ConnectionResetError("Java has ended")


class Local(socketserver.UnixStreamServer):
    """A server whose requests are made by the test."""

    def get_request(self) -> tuple[object, str]:
        return object(), "somebody"

    def shutdown_request(self, request: object) -> None:
        pass


def test_a_failed_request_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spark_servers.install(Local)
    with Local(str(tmp_path / "socket"), Failing) as server:
        server._handle_request_noblock()
    assert capsys.readouterr().err == ""
