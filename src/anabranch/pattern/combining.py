"""Analyses combinations of PATTERN queries: the chains that all operands have in common, and the class of each operand.

A *chain* of a combination has the events of some keys, for all operands. Different chains have different keys, so they
are independent. A chain variable of the combination is a chain variable of every operand, in the same key position of
the streams that they share. An operand with more chain variables has several bindings in one chain, which its set of
partial results keeps apart; it is then not regular for the combination, even if it is so alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch.binding.per import PerEpisode, PerWindow
from anabranch.binding.typed import Typed, disjunction
from anabranch.catalog import Stream
from anabranch.errors import Finding
from anabranch.language import nodes
from anabranch.language.types import comparable
from anabranch.pattern.analysis import PatternAnalysis, analyse
from anabranch.pattern.classes import EXTENDED, REGULAR, UNSAFE
from anabranch.pattern.goal_tests import GoalTest
from anabranch.pattern.query import BoundCascade, BoundCombination
from anabranch.pattern.safe_plan import common_positions

#: For each operand, the chain variable that is a variable of the combination.
_Paired = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CombinedAnalysis(PatternAnalysis):
    """A combination, as far as it is a query over all its streams.

    Attributes
    ----------
    combination : BoundCombination
        The query.
    operands : tuple of PatternAnalysis
        The operands, with the chains of the combination. `tests` has the tests of all their goals.
    """

    combination: BoundCombination
    operands: tuple[PatternAnalysis, ...]

    @property
    def exactly(self) -> bool:
        """Whether the automata of the operands run as one, whatever the data."""
        return self.surely_exact and self.query.method != "SAMPLING"

    @property
    def cascade(self) -> BoundCascade | None:
        """The query, if it is one over the answers of its operands."""
        return self.combination if isinstance(self.combination, BoundCascade) else None

    @property
    def in_one_bucket(self) -> bool:
        """Whether groups cannot be in several buckets: the instants of inferred rows matter, but no packet has them."""
        inferred = any(isinstance(stream.source, nodes.InferredSource) for stream in self.streams)
        return inferred and self.combination.true_by_default

    @property
    def takes_weighted(self) -> bool:
        """Whether it can be answered over a stream that is inferred by JOINT or LAG."""
        return self.exactly

    @property
    def objection(self) -> Finding | None:
        """Why the combination is refused: PER needs one automaton that counts the instants at which it is true."""
        per = self.query.per
        if self.query.bounded is not None:
            return self.bounded_objection
        if not isinstance(per, PerWindow | PerEpisode):
            return self.weighted_objection
        reason = ""
        if self.combination.given is not None:
            reason = "its GIVEN differs from instant to instant"
        elif self.combination.true_by_default:
            reason = "it is also true at instants at which no operand has an event"
        elif not self.exactly:
            reason = f"it is {self.classification}, or may be sampled"
        elif len(self.chain) > len(self.group_by):
            reason = "a group has several keys, whose counts cannot be added"
        if not reason:
            return self.weighted_objection
        message = f"this combination of queries does not take PER {per.form}: {reason}"
        hint = "use PER KEYS, or PER on a query that is not combined"
        return Finding("no-per", message, hint, self.query.span)

    @property
    def last_values(self) -> bool:
        """Never: the state is that of all operands."""
        return False

    def needed(self, stream: int) -> Typed | None:
        """The condition that a key must satisfy to have an effect on any answer; None if every key can.

        Where the combination is true if no operand is, every key makes a group.
        """
        if self.combination.true_by_default:
            return None
        name = self.streams[stream].name.lower()
        numbers = [[own.name.lower() for own in operand.streams] for operand in self.operands]
        return disjunction(
            [
                operand.needed(names.index(name))
                for operand, names in zip(self.operands, numbers, strict=True)
                if name in names
            ]
        )

    @property
    def on_streams(self) -> tuple[PatternAnalysis, ...]:
        """The operands, whose tests have the stream numbers of the combination."""
        return tuple(replace(operand, tests=_on_streams(operand, self.streams)) for operand in self.operands)


def analyse_combination(query: BoundCombination) -> CombinedAnalysis:
    """Analyse a combination."""
    alone = [analyse(operand) for operand in query.operands]
    pairs = _paired([variable for _, variable in query.group_by], alone)
    operands = tuple(
        analyse(operand, {pair[number] for pair in pairs}) for number, operand in enumerate(query.operands)
    )
    streams = query.streams
    positions = tuple(_positions(stream, pairs, operands) for stream in streams)
    chain = tuple(pair[0] for pair in pairs)
    classification = EXTENDED if any(operand.classification == EXTENDED for operand in operands) else REGULAR
    return CombinedAnalysis(
        query=query,
        combination=query,
        classification=classification if all(map(_by_automaton, operands)) else UNSAFE,
        why=tuple(_why(alone, operands)),
        chain=chain,
        chain_positions=positions,
        bound=(),
        group_by=tuple((written, chain.index(variable)) for written, variable in query.group_by),
        single=len(streams) == 1 and len(chain) > 0 and set(positions[0]) == set(range(len(streams[0].keys))),
        plan=None,
        tests=tuple(test for operand in operands for test in _on_streams(operand, streams)),
        operands=operands,
    )


def _by_automaton(operand: PatternAnalysis) -> bool:
    """Whether the automaton of an operand can run together with others: those with WITHIN have ticks of their own."""
    return operand.regular and operand.query.within is None


def _paired(grouped: Sequence[str], operands: Sequence[PatternAnalysis]) -> list[_Paired]:
    """The variables of the combination's chains: the grouping variables, and others that all operands have."""
    pairs: list[_Paired] = [(name,) * len(operands) for name in grouped]
    for name in operands[0].chain:
        pair: _Paired | None = (name,)
        for number in range(1, len(operands)):
            used = {earlier[number] for earlier in pairs}
            candidates = [other for other in operands[number].chain if other not in used]
            pair = pair and _extended(pair, operands, sorted(candidates, key=lambda other: other != name))
        if pair is not None and name not in grouped:
            pairs.append(pair)
    return pairs


def _extended(pair: _Paired, operands: Sequence[PatternAnalysis], candidates: Sequence[str]) -> _Paired | None:
    """The pair with a variable of the next operand that is the same key of all streams; None if it has none."""
    known = [_key_columns(operand, name) for operand, name in zip(operands, pair, strict=False)]
    for candidate in candidates:
        columns = _key_columns(operands[len(pair)], candidate)
        if all(_same_key(columns, earlier) for earlier in known):
            return (*pair, candidate)
    return None


def _key_columns(operand: PatternAnalysis, name: str) -> dict[str, tuple[int, Stream]]:
    """The key position of a chain variable in each stream."""
    index = operand.chain.index(name)
    return {
        stream.name.lower(): (positions[index], stream)
        for stream, positions in zip(operand.streams, operand.chain_positions, strict=True)
    }


def _same_key(first: dict[str, tuple[int, Stream]], second: dict[str, tuple[int, Stream]]) -> bool:
    """Whether two variables are in the same key position of common streams, and have comparable types."""
    types = [stream.keys[position].type for columns in (first, second) for position, stream in columns.values()]
    return all(first[name][0] == second[name][0] for name in first.keys() & second.keys()) and all(
        comparable(types[0], kind) for kind in types
    )


def _positions(stream: Stream, pairs: Sequence[_Paired], operands: Sequence[PatternAnalysis]) -> tuple[int, ...]:
    """The key position of each chain variable in a stream."""
    number, operand = next(
        (number, operand)
        for number, operand in enumerate(operands)
        if stream.name.lower() in {own.name.lower() for own in operand.streams}
    )
    return common_positions(operand.query.goals, stream, [pair[number] for pair in pairs])


def _on_streams(operand: PatternAnalysis, streams: Sequence[Stream]) -> tuple[GoalTest, ...]:
    """The tests of an operand, with the numbers of these streams."""
    names = [stream.name.lower() for stream in streams]
    return tuple(replace(test, stream=names.index(operand.streams[test.stream].name.lower())) for test in operand.tests)


def _why(alone: Sequence[PatternAnalysis], operands: Sequence[PatternAnalysis]) -> list[str]:
    """The class of each operand, with the reason where it is not regular."""
    reasons = []
    for before, operand in zip(alone, operands, strict=True):
        separate = sorted(set(before.chain) - set(operand.chain))
        if before.regular and not operand.regular:
            names = ", ".join(name for name in separate if not name.startswith("_")) or "its key"
            reasons.append(
                f"{operand.query.name} is {before.classification}, but {names} is not a key that all operands share"
            )
        else:
            reasons.append(f"{operand.query.name} is {operand.classification}: {operand.why[-1]}")
    return reasons
