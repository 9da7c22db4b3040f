"""The files of a model that it need not have: stages, measured quantities, and the exponent of its likelihoods."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from anabranch.arrays import F64, I32
from anabranch.columns.csv_files import number_of, read_rows, write_rows
from anabranch.errors import DataError
from anabranch.inference.hmm import MOST_STAGES, Gaussians, Hmm

STAGES, GAUSSIAN, TEMPERING = "stages.csv", "gaussian.csv", "tempering.csv"


def with_extras(hmm: Hmm, folder: Path, location: set[str], reader: set[str]) -> Hmm:
    """The model with what the optional files of its folder add; `location` and `reader` are names of columns."""
    exponent, so_far = _exponents(folder / TEMPERING)
    return replace(
        hmm,
        stages=_stages(hmm, folder / STAGES, location),
        exponent=exponent,
        exponent_so_far=so_far,
        gaussians=_gaussians(hmm, folder / GAUSSIAN, location, reader),
    )


def write_extras(hmm: Hmm, folder: Path, value: str, reader: str) -> None:
    """Write the optional files; those that the model does not have are removed, as they are of an earlier model."""
    files: dict[str, tuple[tuple[str, ...], Iterable[tuple[object, ...]]]] = {}
    if hmm.stages is not None:
        files[STAGES] = (value, "stages"), zip(hmm.locations, hmm.stages.tolist(), strict=True)
    so_far = hmm.exponent if hmm.exponent_so_far is None else hmm.exponent_so_far
    if hmm.exponent != 1 or so_far != 1:
        files[TEMPERING] = ("given", "exponent"), zip(_GIVEN, (hmm.exponent, so_far), strict=True)
    if hmm.gaussians is not None:
        files[GAUSSIAN] = ("quantity", value, reader, "mean", "deviation"), _gaussian_rows(hmm, hmm.gaussians)
    for name in (STAGES, GAUSSIAN, TEMPERING):
        if name in files:
            write_rows(folder / name, *files[name])
        else:
            (folder / name).unlink(missing_ok=True)


def _gaussian_rows(hmm: Hmm, gaussians: Gaussians) -> Iterable[tuple[object, ...]]:
    readers = np.repeat(np.arange(len(hmm.readers)), np.diff(hmm.reader_starts))
    for quantity, means, deviations in zip(gaussians.quantities, gaussians.mean, gaussians.deviation, strict=True):
        for r, x, mean, deviation in zip(readers, hmm.reader_locations, means, deviations, strict=True):
            yield quantity, hmm.locations[x], hmm.readers[r], float(mean), float(deviation)


def _stages(hmm: Hmm, path: Path, location: set[str]) -> I32 | None:
    if not path.exists():
        return None
    stages = np.ones(len(hmm.locations), np.int32)
    codes = {name: code for code, name in enumerate(hmm.locations)}
    listed: set[str] = set()
    for line, (name, text) in read_rows(path, [location, {"stages"}]):
        number = number_of(path, line, "stages", text)
        if name not in codes:
            raise DataError(f"{path}:{line}: {_unknown_location(name)}")
        if name in listed:
            raise DataError(f"{path}:{line}: there are two rows for {name!r}; keep one of them")
        if number not in range(1, MOST_STAGES + 1):
            raise DataError(f"{path}:{line}: stages is {text}; it must be an integer from 1 to {MOST_STAGES}")
        listed.add(name)
        stages[codes[name]] = int(number)
    return stages if (stages > 1).any() else None


def _exponents(path: Path) -> tuple[float, float | None]:
    """The exponents given all readings and given those so far."""
    if not path.exists():
        return 1.0, None
    exponents: dict[str, float] = {}
    for line, (given, text) in read_rows(path, [{"given"}, {"exponent"}]):
        exponent = number_of(path, line, "exponent", text)
        if not 0 < exponent <= 1:
            raise DataError(f"{path}:{line}: the exponent is {text}; it must be above 0 and at most 1")
        if given not in _GIVEN or given in exponents:
            raise DataError(f"{path}:{line}: given is {given!r}; write one row with each of {', '.join(_GIVEN)}")
        exponents[given] = exponent
    if len(exponents) < len(_GIVEN):
        raise DataError(f"{path}: write one row with each of {', '.join(_GIVEN)}")
    everything, so_far = (exponents[given] for given in _GIVEN)
    return everything, None if so_far == everything else so_far


#: What the locations are inferred from: an exponent for each.
_GIVEN = ("all readings", "readings so far")


def _gaussians(hmm: Hmm, path: Path, location: set[str], reader: set[str]) -> Gaussians | None:
    if not path.exists():
        return None
    columns = [{"quantity"}, location, reader, {"mean"}, {"deviation"}]
    laws: dict[tuple[str, str, str], tuple[float, float]] = {}
    for line, (quantity, at, by, *texts) in read_rows(path, columns):
        mean, deviation = (number_of(path, line, name, text) for name, text in zip(_PARAMETERS, texts, strict=True))
        if at not in hmm.locations:
            raise DataError(f"{path}:{line}: {_unknown_location(at)}")
        if not (math.isfinite(mean) and 0 < deviation < math.inf):
            raise DataError(f"{path}:{line}: a mean must be finite, and a deviation finite and above 0")
        if (quantity, at, by) in laws:
            raise DataError(f"{path}:{line}: there are two rows for {quantity!r}, {at!r}, {by!r}; keep one of them")
        laws[quantity, at, by] = mean, deviation
    quantities = tuple(dict.fromkeys(quantity for quantity, _, _ in laws))
    table = np.array([_of_entries(hmm, path, quantity, laws) for quantity in quantities], np.float64)
    return Gaussians(quantities, np.ascontiguousarray(table[:, :, 0]), np.ascontiguousarray(table[:, :, 1]))


_PARAMETERS = ("mean", "deviation")


def _of_entries(hmm: Hmm, path: Path, quantity: str, laws: Mapping[tuple[str, str, str], tuple[float, float]]) -> F64:
    """The mean and the deviation of a quantity for each entry of the readers' table."""
    parameters = np.empty((len(hmm.reader_locations), 2))
    readers = np.repeat(np.arange(len(hmm.readers)), np.diff(hmm.reader_starts))
    for entry, (r, x) in enumerate(zip(readers, hmm.reader_locations, strict=True)):
        at, by = hmm.locations[x], hmm.readers[r]
        law = laws.get((quantity, at, by), laws.get((quantity, at, "")))
        if law is None:
            raise DataError(
                f"{path}: there is no row for {quantity} of reader {by!r} at location {at!r}; "
                "add it, or a row with an empty reader"
            )
        parameters[entry] = law
    return parameters


def _unknown_location(name: str) -> str:
    return f"location {name!r} is in neither initial.csv nor transition.csv; add its transitions, or remove the row"
