"""The contestants of a task: the interpreter, the program and the request of each; None for one that is missing."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from benchmarks.harness import Options
from benchmarks.peers.environments import python_with
from benchmarks.peers.running import ANABRANCH, PROGRAMS, ROOT, Contestant

CORES = 2

Request = Mapping[str, object]


def request_of(options: Options, **fields: object) -> dict[str, object]:
    """Return the fields that every request has, and others."""
    return {"rounds": 1 if options.quick else min(options.rounds, 3), "cores": CORES, **fields}


def anabranch(request: Request) -> Contestant:
    """Return Anabranch."""
    paths = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return Contestant(ANABRANCH, [sys.executable, "-m", "benchmarks.peers.ours"], request, paths)


def spark_sql(name: str, request: Request) -> Contestant:
    """Return Spark SQL, with the Spark of Anabranch."""
    return _program(name, sys.executable, "spark_peer.py", request)


def pandas_loop(request: Request) -> Contestant:
    """Return a loop in Python."""
    return _program("pandas and a loop", sys.executable, "pandas_peer.py", request)


def duckdb(name: str, request: Request) -> Contestant | None:
    """Return DuckDB."""
    return _installed(name, "duckdb", "duckdb_peer.py", request)


def polars(request: Request) -> Contestant | None:
    """Return Polars."""
    return _installed("Polars", "polars", "polars_peer.py", request, {"POLARS_MAX_THREADS": str(CORES)})


def hmmlearn(request: Request) -> Contestant | None:
    """Return hmmlearn on one thread, as Anabranch is there."""
    return _installed("hmmlearn", "hmmlearn", "hmmlearn_peer.py", request, {"OMP_NUM_THREADS": "1"})


def problog(name: str, request: Request) -> Contestant | None:
    """Return ProbLog."""
    return _installed(name, "problog", "problog_peer.py", request)


def _installed(
    name: str, package: str, program: str, request: Request, environment: Mapping[str, str] | None = None
) -> Contestant | None:
    python = python_with(package)
    return None if python is None else _program(name, str(python), program, request, environment)


def _program(
    name: str, python: str, program: str, request: Request, environment: Mapping[str, str] | None = None
) -> Contestant:
    return Contestant(name, [python, str(PROGRAMS / program)], request, environment or {})
