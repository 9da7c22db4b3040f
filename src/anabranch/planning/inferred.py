"""Inferred streams: the model is read from a folder."""

from __future__ import annotations

from pathlib import Path

from anabranch.arrays import ROUNDING
from anabranch.catalog import Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.columns.times import TimeKind
from anabranch.errors import DataError, Finding, WorkbookError
from anabranch.inference.hmm import Hmm
from anabranch.inference.infer import Inference
from anabranch.inference.model import read_hmm
from anabranch.inference.stream import InferredFrom
from anabranch.language import nodes
from anabranch.language.temporal import amount_of
from anabranch.transport.layout import Layout


def inference_of(stream: Stream, source: nodes.InferredSource, readings: Layout, folder: str) -> InferredFrom:
    """How a stream is inferred from readings; the path of the model is relative to `folder`.

    Raises
    ------
    WorkbookError
        If the model, or the step, cannot be used.
    """
    try:
        hmm = read_hmm(Path(folder, source.path), stream.values[0].name, readings.values[0])
    except DataError as error:
        raise WorkbookError([Finding("model", str(error), "fix the model, or use another", source.span)]) from error
    step = 1.0 if source.step is None else float(amount_of(source.step))
    if readings.time_kind is TimeKind.INTEGER and step != int(step):
        message = f"STEP {step:g} is no integer, and the times of {readings.name} are integers"
        raise WorkbookError([Finding("step", message, "write an integer", source.span)])
    argument = source.argument
    lag = _whole_steps(argument, step) if isinstance(argument, nodes.Duration) else 0
    particles = 0 if isinstance(argument, nodes.Duration) else int(argument or 0)
    inference = Inference(hmm, source.method, particles, float(source.prune or 0.0), lag)
    expire = None if source.expire is None else _whole_steps(source.expire, step)
    return InferredFrom(inference, ARROW_TYPES[stream.values[0].type], step, _quantities(hmm, source, readings), expire)


def _whole_steps(duration: nodes.Duration, step: float) -> int:
    """How many steps begin within a duration after the beginning of a step."""
    steps = float(amount_of(duration)) / step
    # 0.7 / 0.1 is slightly less than 7.
    return int(steps + ROUNDING * steps)


def _quantities(hmm: Hmm, source: nodes.InferredSource, readings: Layout) -> tuple[int, ...]:
    """The positions of the model's measured quantities among the VALUE columns of the readings."""
    columns = [name.lower() for name in readings.values]
    measured = () if hmm.gaussians is None else hmm.gaussians.quantities
    unknown = [name for name in readings.values[1:] if name.lower() not in {each.lower() for each in measured}]
    missing = [name for name in measured if name.lower() not in columns[1:]]
    if unknown:
        message = f"the model has no distribution of {unknown[0]}, a VALUE column of {readings.name}"
        hint = f"remove {unknown[0]} from VALUE, or fit a model with it"
        raise WorkbookError([Finding("model", message, hint, source.span)])
    if missing:
        message = f"the model measures {missing[0]}, but {readings.name} has no such VALUE column"
        hint = f"declare VALUE ({', '.join([*readings.values, *missing])})"
        raise WorkbookError([Finding("model", message, hint, source.span)])
    return tuple(columns.index(name.lower()) for name in measured)
