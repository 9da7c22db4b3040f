"""The kernels that are compiled in advance: which functions, for which argument types.

`signatures.json` lists them. A test run records the calls of kernels and fails where a signature is missing from the
list; `python -m anabranch.compiled.record` adds what was recorded.

A type is written as JSON: a number by its name, an array as `["array", type, dimensions, layout]` (with "readonly"
where it is), a record as `["record", fields]`, a tuple as `["tuple", types]`, and a named tuple as
`["named", "module:Class", types]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from typing import Any

import numpy as np
from numba import types
from numba.np import numpy_support

#: Argument types as JSON.
Signature = list[Any]

FILE = resources.files(__package__) / "signatures.json"


@cache
def listed_signatures() -> Mapping[str, Sequence[Signature]]:
    """The signatures of each listed function, which is named `module:function`."""
    listed: dict[str, list[Signature]] = json.loads(FILE.read_text())
    return listed


def is_listed(function: str, signature: Signature) -> bool:
    """Whether a kernel is compiled in advance for these argument types."""
    return signature in listed_signatures().get(function, ())


def family_of(function: str) -> str:
    """The package whose kernel a function is: `pattern`, or `splitmix` for `anabranch.splitmix:uniform`.

    A kernel outside of Anabranch belongs to the family of its top-level package.
    """
    top, _, rest = function.split(":")[0].partition(".")
    return rest.split(".")[0] if top == "anabranch" else top


def encode_signature(args: Sequence[Any]) -> Signature:
    """Argument types of Numba as JSON."""
    return [_encode(kind) for kind in args]


def decode_signature(signature: Signature) -> tuple[Any, ...]:
    """The argument types of `encode_signature`."""
    return tuple(_decode(kind) for kind in signature)


def _encode(kind: Any) -> Any:
    if isinstance(kind, types.Literal | types.Omitted):
        raise TypeError(f"kernels are called with arrays, numbers and tuples, without defaults, not with {kind}")
    if isinstance(kind, types.Number | types.Boolean):
        return str(kind)
    if isinstance(kind, types.Array):
        access = [] if kind.mutable else ["readonly"]
        return ["array", _encode(kind.dtype), kind.ndim, kind.layout, *access]
    if isinstance(kind, types.Record):
        dtype: Any = numpy_support.as_dtype(kind)
        return ["record", [[name, dtype[name].str] for name in dtype.names], dtype.isalignedstruct]
    if isinstance(kind, types.BaseTuple):
        tuple_type: Any = kind
        parts = [_encode(part) for part in tuple_type.types]
        cls = getattr(tuple_type, "instance_class", tuple)
        return ["tuple", parts] if cls is tuple else ["named", f"{cls.__module__}:{cls.__qualname__}", parts]
    raise TypeError(f"no kernel takes a {kind}")


def _decode(kind: Any) -> Any:
    if isinstance(kind, str):
        return getattr(types, "boolean" if kind == "bool" else kind)
    name, *rest = kind
    if name == "array":
        dtype, dimensions, layout, *access = rest
        return types.Array(_decode(dtype), dimensions, layout, readonly=bool(access))
    if name == "record":
        fields, aligned = rest
        return numpy_support.from_dtype(np.dtype([(field, text) for field, text in fields], align=aligned))
    if name == "named":
        module, cls = rest[0].split(":")
        return _tuple_type(rest[1], getattr(import_module(module), cls))
    return _tuple_type(rest[0], None)


def _tuple_type(parts: list[Any], cls: Any) -> Any:
    decoded = [_decode(part) for part in parts]
    uniform = decoded and all(part == decoded[0] for part in decoded)
    if cls is None:
        return types.UniTuple(decoded[0], len(decoded)) if uniform else types.Tuple(decoded)
    return types.NamedUniTuple(decoded[0], len(decoded), cls) if uniform else types.NamedTuple(decoded, cls)
