"""A PostgreSQL server on a loopback port, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.ports import free_port

PASSWORD = "pass-phrase-of-the-test"  # noqa: S105


@dataclass(frozen=True)
class Postgres:
    port: int

    @property
    def options(self) -> str:
        """The OPTIONS of a target; the password is in the environment variable PGTEST_PASSWORD."""
        server = f"host = '127.0.0.1', port = {self.port}, dbname = 'postgres'"
        return f"({server}, user = 'ana', password = '${{PGTEST_PASSWORD}}')"

    def rows(self, query: str) -> list[tuple]:
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.port, dbname="postgres", user="ana", password=PASSWORD
        ) as connection:
            return connection.execute(query).fetchall()


def _programs() -> Path | None:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    found = shutil.which("initdb") or (str(installed[0]) if installed else None)
    return Path(found).parent if found else None


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server that runs until the block ends."""
    pytest.importorskip("psycopg")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    # PostgreSQL refuses to run as root. It needs a folder that its user can reach.
    user = None
    if os.geteuid() == 0:
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    folder = Path(tempfile.mkdtemp(prefix="anabranch-postgres-"))
    identity = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    port = free_port()

    def call(program: str, *arguments: str) -> None:
        command = [str(programs / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **identity)

    try:
        (folder / "password").write_text(PASSWORD)
        if user is not None:
            os.chown(folder / "password", user.pw_uid, user.pw_gid)
        data = str(folder / "data")
        call("initdb", "-D", data, "-U", "ana", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "--no-sync")
        settings = f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
        call("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", settings, "start")
        try:
            yield Postgres(port)
        finally:
            call("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
