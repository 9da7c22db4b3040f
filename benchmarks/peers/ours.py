"""Anabranch as a contestant: `python -m benchmarks.peers.ours REQUEST`, with the protocol of the programs of peers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anabranch.runtime.spark import make_session
from benchmarks.engines import one_thread, open_session
from benchmarks.inference.buildings import Building, make_building
from benchmarks.inference.dense import log_weight
from benchmarks.peers.programs.protocol import answer


def make(request: dict) -> Callable[[], list[float]]:
    """Return a function that runs the query of a request, or infers a hidden Markov model."""
    if "method" in request:
        return _inference(request)
    session = open_session(make_session(f"local[{request['cores']}]"), request["workbook"])
    return lambda: list(session.run(request["query"]).selectExpr(*request["columns"]).first())


def _inference(request: dict) -> Callable[[], list[float]]:
    building = make_building(**request["building"])
    weights = np.load(request["path"])["weights"]

    def smooth() -> list[float]:
        inferred = building.infer("MARGINALS")
        return [building.steps, float((inferred.p * weights[inferred.step, inferred.location]).sum())]

    def viterbi() -> list[float]:
        return [building.steps, log_weight(building, building.infer("VITERBI").location)]

    return {"SMOOTH": _on_one_thread(smooth), "VITERBI": _on_one_thread(viterbi)}[request["method"]]


def _on_one_thread(run: Callable[[], list[float]]) -> Callable[[], list[float]]:
    def on_one_thread() -> list[float]:
        with one_thread():
            return run()

    return on_one_thread


def weights_of(building: Building) -> np.ndarray:
    """Return weights (T, N) by which a sum of probabilities identifies all of them."""
    return np.outer(np.arange(building.steps) % 97 + 1, np.arange(len(building.transition)) + 1.0)


if __name__ == "__main__":
    answer(make)
