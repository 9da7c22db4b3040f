"""What a scenario can be told: a dataclass of options, whose fields become options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, get_type_hints

Number = int | float
Value = Number | str
Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class Option:
    """One field of a scenario's options.

    Attributes
    ----------
    type : type
        int, float, or str where it is one of some words.
    default : int, float or str
        Where nothing is given.
    help : str
        What it is, in a few words.
    least, most : int, float or str
        The bounds, themselves allowed; of words, the first and the last in the alphabet.
    words : tuple of str
        All that it can be; empty for a number.
    """

    type: type
    default: Value
    help: str
    least: Any
    most: Any
    words: tuple[str, ...] = ()

    def refused(self, value: Value) -> str:
        """What it should be where a value will not do, else nothing."""
        if self.words:
            return "" if value in self.words else " or ".join(self.words)
        return "" if self.least <= value <= self.most else f"from {self.least} to {self.most}"


def option(default: Number, help: str, *, least: Number = 1, most: Number = 1_000_000) -> Any:
    """A field of a dataclass of options, with what the command line says of it and the bounds it keeps."""
    return field(default=default, metadata={"help": help, "least": least, "most": most})


def choice(default: str, *others: str, help: str) -> Any:
    """A field that is one of some words."""
    words = (default, *others)
    return field(default=default, metadata={"help": help, "least": min(words), "most": max(words), "words": words})


def options_of(kind: type) -> dict[str, Option]:
    """The options that a dataclass declares, by name.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Weather:
    ...     rain: float = option(0.5, "how wet it is", least=0, most=1)
    >>> options_of(Weather)["rain"]
    Option(type=<class 'float'>, default=0.5, help='how wet it is', least=0, most=1, words=())
    """
    types = get_type_hints(kind)
    declared = {each.name: {"default": each.default, **each.metadata} for each in fields(kind)}
    return {name: Option(types[name], **told) for name, told in declared.items()}


def make_options(kind: type[Options], given: Mapping[str, Value]) -> Options:
    """The options of a scenario, with defaults where nothing is given.

    Raises
    ------
    ValueError
        Where there is no such option, or its value is out of bounds.
    """
    known = options_of(kind)
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"there is no option {flag(name)}; there are: {', '.join(map(flag, known))}")
        if allowed := known[name].refused(value):
            raise ValueError(f"{flag(name)} is {allowed}, not {value}")
    return kind(**given)


def flag(name: str) -> str:
    """An option's name as the command line spells it.

    >>> flag("read_rate")
    '--read-rate'
    """
    return f"--{name.replace('_', '-')}"
