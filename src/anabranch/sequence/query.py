"""A SEQUENCE query after binding: names resolved to catalogue entries, conditions typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from anabranch.binding.bound import BoundOperand, BoundQuery, relations_in, streams_of
from anabranch.binding.typed import Typed
from anabranch.catalog import Relation, Stream
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE

#: What a parameter of a law must be.
Check = tuple[Callable[[float], bool], str]
_POSITIVE: Check = (lambda value: value > 0, "above 0")
_NOT_NEGATIVE: Check = (lambda value: value >= 0, "0 or more")
_ANY: Check = (lambda value: True, "a number")

#: The parameters of each law: a name, whether it is a duration, and what it must be.
LAWS: dict[str, tuple[tuple[str, bool, Check], ...]] = {
    "EXPONENTIAL": (("mean", True, _POSITIVE),),
    "UNIFORM": (("lo", True, _NOT_NEGATIVE), ("hi", True, _POSITIVE)),
    "GAMMA": (("shape", False, _POSITIVE), ("scale", True, _POSITIVE)),
    "LOGNORMAL": (("mu", False, _ANY), ("sigma", False, _POSITIVE)),
    "NORMAL": (("mean", True, _ANY), ("sd", True, _POSITIVE)),
    "EMPIRICAL": (),
    "FITTED": (),
}

#: The laws that are read from a file.
FROM_FILE = ("EMPIRICAL", "FITTED")


@dataclass(frozen=True, slots=True)
class BoundDelay:
    """The law of a delay, its parameters in the unit of the time column.

    `law` is EXPONENTIAL (mean), UNIFORM (lo, hi), GAMMA (shape, scale), LOGNORMAL (mu, sigma), NORMAL (mean, sd), or
    one that is read from `path`: EMPIRICAL, which becomes `atoms`, one for each delay that was seen; FITTED, which
    becomes one of the others.
    """

    law: str
    parameters: tuple[float, ...] = ()
    path: str | None = None
    atoms: tuple[float, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BoundRates:
    """`MISS BY column FROM relation`: the chance of a loss is that of the reader, which the column names."""

    column: str
    relation: Relation
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BoundComponent(BoundOperand):
    """A component of a SEQUENCE.

    `miss` is the chance that its reading is lost; None where it is that of its reader (`BoundSequence.rates`).
    """

    negative: bool = False
    miss: float | None = 0.0
    delay: BoundDelay | None = None

    @property
    def may_miss(self) -> bool:
        """Whether its reading can be lost, as far as the text says."""
        return self.miss is None or self.miss > 0


@dataclass(frozen=True, slots=True)
class BoundSequence(BoundQuery):
    """A SEQUENCE query.

    `where` is as written: normal forms are the analysis' work. `within` is None where not given. With `ending_open`
    what stands at the end may be missing, or be negative. `emit` is a part of {'best', 'expired'}. `scoring` is
    'joint', what the paper scores, or 'posterior'.
    """

    kind: ClassVar[str] = "SEQUENCE"
    shares_pass: ClassVar[bool] = True

    name: str
    components: tuple[BoundComponent, ...]
    where: Typed | None = None
    within: float | None = None
    threshold: float = 0.0
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    ending_open: bool = False
    emit: frozenset[str] = frozenset()
    scoring: str = "joint"
    rates: BoundRates | None = None

    @property
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the query."""
        return () if self.where is None else (self.where,)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams the query names, each once."""
        return streams_of(self.components)

    @property
    def declared_relations(self) -> tuple[Relation, ...]:
        """The relations of the catalogue that it asks: those of conditions, and that of the rates of readers."""
        rates = () if self.rates is None else (self.rates.relation,)
        return (*relations_in(self.conditions), *rates)
