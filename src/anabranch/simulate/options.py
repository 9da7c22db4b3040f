"""Options of scenarios: dataclasses whose fields become options of the command line."""

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
        int, float, or str for a choice of words.
    default : int, float or str
    help : str
        The help text.
    least, most : int, float or str
        The lowest and the highest allowed value; for a choice, the first and the last word in the alphabet.
    words : tuple of str
        The words of a choice; empty for a number.
    """

    type: type
    default: Value
    help: str
    least: Any
    most: Any
    words: tuple[str, ...] = ()

    def expected(self, value: Value) -> str:
        """Return which values are allowed if `value` is not, else an empty text."""
        if self.words:
            return "" if value in self.words else " or ".join(self.words)
        return "" if self.least <= value <= self.most else f"from {self.least} to {self.most}"


def option(default: Number, help: str, *, least: Number = 1, most: Number = 1_000_000) -> Any:
    """Return a field for a number, with its help text and its bounds."""
    return field(default=default, metadata={"help": help, "least": least, "most": most})


def choice(default: str, *others: str, help: str) -> Any:
    """Return a field for a choice of words."""
    words = (default, *others)
    return field(default=default, metadata={"help": help, "least": min(words), "most": max(words), "words": words})


def options_of(kind: type) -> dict[str, Option]:
    """Return the options that a dataclass declares, by name.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Weather:
    ...     rain: float = option(0.5, "probability of rain", least=0, most=1)
    >>> options_of(Weather)["rain"]
    Option(type=<class 'float'>, default=0.5, help='probability of rain', least=0, most=1, words=())
    """
    types = get_type_hints(kind)
    values = {item.name: {"default": item.default, **item.metadata} for item in fields(kind)}
    return {name: Option(types[name], **parameters) for name, parameters in values.items()}


def make_options(kind: type[Options], values: Mapping[str, Value]) -> Options:
    """Return the options of a scenario, with defaults for those that have no value.

    Raises
    ------
    ValueError
        If there is no such option, or a value is not allowed.
    """
    known = options_of(kind)
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"there is no option {flag(name)}; the options are: {', '.join(map(flag, known))}")
        if allowed := known[name].expected(value):
            raise ValueError(f"{flag(name)} must be {allowed}, not {value}")
    return kind(**values)


def flag(name: str) -> str:
    """Return the name of an option on the command line.

    >>> flag("read_rate")
    '--read-rate'
    """
    return f"--{name.replace('_', '-')}"
