"""SEQUENCE: components with their streams, chances of loss and laws of delay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from anabranch.catalog import Stream
from anabranch.language import nodes
from anabranch.language.bound import BoundComponent, BoundDelay, BoundSequence
from anabranch.language.conditions import count_of
from anabranch.language.findings import listed, shown
from anabranch.language.questions import OperandScope, QuestionBinder, known
from anabranch.language.temporal import amount_of

#: The parameters of each law: a name, whether it is a duration, and what it must be.
_Check = tuple[Callable[[float], bool], str]
_POSITIVE: _Check = (lambda value: value > 0, "above 0")
_NOT_NEGATIVE: _Check = (lambda value: value >= 0, "0 or more")
_ANY: _Check = (lambda value: True, "a number")
LAWS: dict[str, tuple[tuple[str, bool, _Check], ...]] = {
    "EXPONENTIAL": (("mean", True, _POSITIVE),),
    "UNIFORM": (("lo", True, _NOT_NEGATIVE), ("hi", True, _POSITIVE)),
    "GAMMA": (("shape", False, _POSITIVE), ("scale", True, _POSITIVE)),
    "LOGNORMAL": (("mu", False, _ANY), ("sigma", False, _POSITIVE)),
    "NORMAL": (("mean", True, _ANY), ("sd", True, _POSITIVE)),
    "EMPIRICAL": (),
}


_Item = TypeVar("_Item", nodes.Miss, nodes.Delay)


class SequenceBinder(QuestionBinder):
    """Binds one SEQUENCE."""

    kind = "SEQUENCE"

    def bind(self, question: nodes.Sequence) -> BoundSequence | None:
        """The bound question, None where the findings say why there is none."""
        names = [(component.name, component.span) for component in question.components]
        streams = self.operands(names, question.operands)
        miss = self.of_components("MISS", question.miss, streams)
        delay = self.of_components("DELAY", question.delay, streams)
        laws = {name: self.delay(node) for name, node in delay.items()}
        chances = {name: self.ratio("MISS", node.probability, 0.0, node.span) for name, node in miss.items()}
        scope = OperandScope(self.kind, streams, self.findings, defaults=True)
        where = self.condition(question.where, scope)
        within = self.duration("WITHIN", question.within, positive=True)
        self.check_components(question, chances, laws)
        if self.findings:
            return None
        components = tuple(
            BoundComponent(
                node.name, node.name.lower(), known(streams, node.name), node.negative,
                chances.get(node.name.lower(), 0.0), laws.get(node.name.lower()), span=node.span,
            )
            for node in question.components
        )  # fmt: skip
        return BoundSequence(self.query.name, components, where, within, self.threshold, self.query.span)

    def of_components(
        self, clause: str, items: Sequence[_Item], streams: Mapping[str, Stream | None]
    ) -> dict[str, _Item]:
        """The items of a clause by component; an unknown or repeated component is a finding."""
        found: dict[str, _Item] = {}
        for item in items:
            name = item.component.lower()
            if name not in streams:
                hint = f"the components are {listed(streams, 'and')}"
                self.findings.unknown("component", item.component, streams, item.span, hint)
            elif name in found:
                message = f"{clause} names {shown(item.component)} twice"
                self.findings.add("name-twice", message, item.span, "keep one of them")
            else:
                found[name] = item
        return found

    def delay(self, node: nodes.Delay) -> BoundDelay | None:
        """The law of a delay with its parameters checked."""
        if node.law not in LAWS:
            self.findings.unknown("law", node.law, LAWS, node.span, f"the laws are {listed(LAWS, 'and')}")
            return None
        if (node.law == "EMPIRICAL") != (node.path is not None):
            hint = "write EMPIRICAL 'file'" if node.law == "EMPIRICAL" else f"write {_signature(node.law)}"
            self.findings.add("arity", f"{node.law} cannot be given this way", node.span, hint)
            return None
        parameters = LAWS[node.law]
        if len(node.arguments) != len(parameters):
            message = f"{node.law} takes {count_of(len(parameters), 'parameter')}, and this has {len(node.arguments)}"
            self.findings.add("arity", message, node.span, f"write {_signature(node.law)}")
            return None
        values = [
            self.parameter(node.law, *parameter, given)
            for parameter, given in zip(parameters, node.arguments, strict=True)
        ]
        if node.law == "UNIFORM" and values[0] >= values[1]:
            self.findings.add("out-of-range", "UNIFORM(lo, hi) needs lo below hi", node.span, "put the smaller first")
        return BoundDelay(node.law, tuple(values), node.path)

    def parameter(self, law: str, name: str, timed: bool, check: _Check, given: nodes.Duration) -> float:
        """One parameter of a law; only durations have a unit."""
        value = float(amount_of(given))
        holds, wanted = check
        if not holds(value):
            self.findings.add(
                "out-of-range", f"the {name} of {law} must be {wanted}, and is {given.amount}", given.span
            )
        if given.unit is not None and not timed:
            self.findings.add(
                "not-a-duration", f"the {name} of {law} is a plain number", given.span, "leave out the unit"
            )
        return value

    def check_components(
        self, question: nodes.Sequence, miss: Mapping[str, float], laws: Mapping[str, BoundDelay | None]
    ) -> None:
        """What the components ask of each other and of the clauses."""
        first, last = question.components[0], question.components[-1]
        if last.negative:
            message = f"the last component, {shown(last.name)}, cannot be negative"
            self.findings.add("last-component", message, last.span, "end with the event that completes the match")
        elif miss.get(last.name.lower(), 0.0) > 0:
            message = f"the last component, {shown(last.name)}, is always observed"
            self.findings.add("last-component", message, question.place("MISS"), f"leave {last.name} out of MISS")
        for component in question.components[:-1]:
            if miss.get(component.name.lower(), 0.0) > 0 and component.name.lower() not in laws:
                message = f"{shown(component.name)} may be missing, so its delay must be known"
                self.findings.add("no-delay", message, component.span, f"add DELAY {component.name} EXPONENTIAL(mean)")
        if question.within is None and (first.negative or miss.get(first.name.lower(), 0.0) > 0):
            why = "must not happen" if first.negative else "may be missing"
            message = f"{shown(first.name)} {why} before the first observed event, so the window must be bounded"
            self.findings.add("no-window", message, first.span, "add WITHIN, such as WITHIN 12 HOURS")


def _signature(law: str) -> str:
    return f"{law}({', '.join(name for name, _, _ in LAWS[law])})"
