"""hmmlearn: smoothing and the most likely path of a categorical hidden Markov model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hmmlearn.hmm import CategoricalHMM
from protocol import answer


def make(request: dict) -> Callable[[], list[float]]:
    """Return a function that solves the task of a request."""
    arrays = np.load(request["path"])
    model = CategoricalHMM(n_components=len(arrays["initial"]))
    model.startprob_, model.transmat_, model.emissionprob_ = (
        arrays["initial"],
        arrays["transition"],
        arrays["emission"],
    )
    symbols = arrays["symbols"][:, np.newaxis]
    weights = arrays["weights"]

    def smooth() -> list[float]:
        return [len(symbols), float((model.predict_proba(symbols) * weights).sum())]

    def viterbi() -> list[float]:
        log_weight, _ = model.decode(symbols)
        return [len(symbols), float(log_weight)]

    return {"SMOOTH": smooth, "VITERBI": viterbi}[request["method"]]


answer(make)
