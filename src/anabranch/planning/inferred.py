"""Inferred streams: the model is read from a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from anabranch.arrays import ROUNDING
from anabranch.catalog import Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.columns.times import TimeKind
from anabranch.errors import DataError, Finding, WorkbookError
from anabranch.inference.classes import KeyClasses, read_classes
from anabranch.inference.hmm import Gaussians, Hmm
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
    classes, models = _models(stream, source, readings, Path(folder, source.path))
    step = 1.0 if source.step is None else float(amount_of(source.step))
    if readings.time_kind is TimeKind.INTEGER and step != int(step):
        message = f"STEP {step:g} is no integer, and the times of {readings.name} are integers"
        raise WorkbookError([Finding("step", message, "write an integer", source.span)])
    argument = source.argument
    lag = _whole_steps(argument, step) if isinstance(argument, nodes.Duration) else 0
    particles = 0 if isinstance(argument, nodes.Duration) else int(argument or 0)
    prune, expire = float(source.prune or 0.0), None if source.expire is None else _whole_steps(source.expire, step)
    inferences = tuple(Inference(hmm, source.method, particles, prune, lag) for hmm in models)
    quantities = _quantities(models[0], readings)
    return InferredFrom(inferences, ARROW_TYPES[stream.values[0].type], step, quantities, expire, classes)


def _models(
    stream: Stream, source: nodes.InferredSource, readings: Layout, path: Path
) -> tuple[KeyClasses | None, Sequence[Hmm]]:
    """The model of all keys, or the classes of keys (BY) and their models."""
    value, reader = stream.values[0].name, readings.values[0]
    try:
        if source.by is None:
            hmm = read_hmm(path, value, reader)
            _check_quantities(hmm, "the model", source, readings)
            return None, [hmm]
        models = read_classes(path, source.by, value, reader)
    except DataError as error:
        raise WorkbookError([Finding("model", str(error), "fix the model, or use another", source.span)]) from error
    for name, hmm in models.items():
        _check_quantities(hmm, f"the model of {source.by} = {name}", source, readings)
    keys, values = ([name.lower() for name in names] for names in (readings.keys, readings.values))
    in_key = source.by.lower() in keys
    position = (keys if in_key else values).index(source.by.lower())
    classes = KeyClasses(source.by, tuple(models), position, in_key)
    return classes, [_in_order(hmm, readings) for hmm in models.values()]


def _whole_steps(duration: nodes.Duration, step: float) -> int:
    """How many steps begin within a duration after the beginning of a step."""
    steps = float(amount_of(duration)) / step
    # 0.7 / 0.1 is slightly less than 7.
    return int(steps + ROUNDING * steps)


def _check_quantities(hmm: Hmm, subject: str, source: nodes.InferredSource, readings: Layout) -> None:
    """Refuse a model that does not measure what the readings have, or measures more."""
    known = {(source.by or "").lower(), *(name.lower() for name in _measured(hmm))}
    columns = [name.lower() for name in readings.values[1:]]
    unknown = [name for name in readings.values[1:] if name.lower() not in known]
    missing = [name for name in _measured(hmm) if name.lower() not in columns]
    if unknown:
        message = f"{subject} has no distribution of {unknown[0]}, a VALUE column of {readings.name}"
        hint = f"remove {unknown[0]} from VALUE, or fit a model with it"
        raise WorkbookError([Finding("model", message, hint, source.span)])
    if missing:
        message = f"{subject} measures {missing[0]}, but {readings.name} has no such VALUE column"
        hint = f"declare VALUE ({', '.join([*readings.values, *missing])})"
        raise WorkbookError([Finding("model", message, hint, source.span)])


def _measured(hmm: Hmm) -> tuple[str, ...]:
    return () if hmm.gaussians is None else hmm.gaussians.quantities


def _quantities(hmm: Hmm, readings: Layout) -> tuple[int, ...]:
    """The positions of the model's measured quantities among the VALUE columns of the readings."""
    columns = [name.lower() for name in readings.values]
    return tuple(columns.index(name.lower()) for name in _measured(hmm))


def _in_order(hmm: Hmm, readings: Layout) -> Hmm:
    """The model with its measured quantities in the order of the VALUE columns, as those of other classes."""
    gaussians = hmm.gaussians
    if gaussians is None:
        return hmm
    order = np.argsort(_quantities(hmm, readings))
    names = tuple(gaussians.quantities[number] for number in order)
    return replace(hmm, gaussians=Gaussians(names, gaussians.mean[order], gaussians.deviation[order]))
