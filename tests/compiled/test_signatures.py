"""Argument types as JSON and back, and the list of kernels that are compiled in advance."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof, types

from anabranch.compiled.record import merge, to_text
from anabranch.compiled.signatures import FILE, decode_signature, encode_signature, family_of, listed_signatures


class Point(NamedTuple):
    x: float
    y: float


class Labelled(NamedTuple):
    number: int
    points: np.ndarray


RECORDS = np.zeros(2, np.dtype([("number", "i8"), ("value", "f8"), ("flag", "?"), ("small", "i1")]))

ARGUMENTS = {
    "numbers": (3, 2.5, True, np.uint64(4), np.int8(1), np.float32(1.0)),
    "arrays": (np.zeros(2), np.zeros((2, 3), np.int32), np.zeros((2, 3))[:, 1], np.zeros(2, np.bool_)),
    "other layouts": (np.zeros((2, 3)).T, np.broadcast_to(np.zeros(1), 3)),
    "records": (RECORDS, RECORDS[0]),
    "tuples": ((1, 2), (1, 2.5), ((1, 2), np.zeros(1))),
    "named tuples": (Point(1.0, 2.0), Labelled(1, np.zeros(2))),
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_types_survive_being_written_as_json(arguments) -> None:
    kinds = tuple(map(typeof, arguments))
    text = json.dumps(encode_signature(kinds))
    assert decode_signature(json.loads(text)) == kinds


def test_read_only_arrays_have_a_type_of_their_own() -> None:
    array = np.zeros(2)
    array.setflags(write=False)
    (signature,) = encode_signature([typeof(array)])
    assert signature == ["array", "float64", 1, "C", "readonly"]
    assert decode_signature([signature]) == (typeof(array),)


@pytest.mark.parametrize("kind", [types.unicode_type, types.Omitted(1), types.literal(3)], ids=str)
def test_other_types_are_refused(kind) -> None:
    with pytest.raises(TypeError, match=r"kernels are called with|no kernel takes"):
        encode_signature([kind])


def test_every_listed_signature_can_be_compiled_for() -> None:
    assert listed_signatures()
    for signatures in listed_signatures().values():
        for signature in signatures:
            assert encode_signature(decode_signature(signature)) == signature


def test_recorded_calls_are_added_once_and_in_order() -> None:
    lines = ['["anabranch.b.kernel:g", ["int64"]]', '["anabranch.a.kernel:f", ["int64"]]'] * 2
    merged = merge({"anabranch.b.kernel:g": [["float64"]]}, lines)
    assert merged == {"anabranch.a.kernel:f": [["int64"]], "anabranch.b.kernel:g": [["float64"], ["int64"]]}
    assert json.loads(to_text(merged)) == merged


def test_the_list_is_written_as_the_recorder_writes_it() -> None:
    assert FILE.read_text() == to_text(merge(listed_signatures(), []))


def test_the_family_is_the_package() -> None:
    assert family_of("anabranch.pattern.kernel.single:step_single") == "pattern"
    assert family_of("anabranch.splitmix:uniform") == "splitmix"
    assert family_of("reproductions.simpmatch.tree:sase") == "reproductions"
