"""The bindings of GROUP BY variables that are not keys of every goal: each is a query of its own over shared events.

A chain (`intake.py`) is divided into *nodes*, one for each binding. For a node, the query has constants in place of its
grouping variables. A goal that binds a variable first still matches events with any value of it, because the next event
is chosen before it is compared; a goal after that matches only events with the value of the node.

Nodes form a tree. A node that has only the variables of the first goals stands for all bindings of the others that no
event has had yet: as long as no event binds a variable, all its values have the same past. When an event binds it, the
node gets a child with the same state. So a stream can start a binding at its first event, and only bindings that the
data can make true have a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, END, I32, I64, Bools
from anabranch.binding.typed import Typed, conjunction, references
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import Dictionary
from anabranch.pattern import kernel
from anabranch.pattern.automaton import accept_bit, match_bit
from anabranch.pattern.goal_tests import BINDING, GoalTest
from anabranch.pattern.intake import Distinct, Intake, Received
from anabranch.pattern.spec import PatternSpec
from anabranch.transport.limits import AnswerLimit

#: The most rows that the nodes of an archive repeat at a time: about 100 MB.
MOST_ROWS = 1 << 21
#: The most pairs of a node and an event that are compared at a time, for each answer that the query may have: with a
#: million answers, about 500 MB.
PAIRS_PER_ANSWER = 8

#: How to change a query that has too many answers.
REMEDY = "filter the goals, or group by fewer variables"

#: The code of a variable that has no value yet, and of a NULL that has to agree with something: it never does.
_UNBOUND, _NULL = -1, -2


@dataclass(frozen=True, slots=True)
class Expansion:
    """The rows of some nodes: a row is repeated for each node that it can change.

    `rows` has their indexes, sorted by node, instant and key. `mask` has the symbols of each row's event for the node;
    `again` the goals with a + that it can match when they are repeated, where that differs from the first match. Both
    have symbols of the alternatives of goals (`Intake.alternatives`).
    """

    rows: I64
    node: I32
    mask: I64
    again: I64

    def numbered(self, nodes: I64) -> Expansion:
        """The same rows, where a node has its index in `nodes`, which are sorted."""
        return replace(self, node=np.searchsorted(nodes, self.node).astype(np.int32))

    def starts(self, n_nodes: int) -> I64:
        """The start of each node in `rows`, and the end of the last one."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.node, minlength=n_nodes))]).astype(np.int64)


@dataclass(slots=True)
class _Events:
    """The distinct events (key and value) of one step, of all streams.

    `codes` has the code of each grouping variable in each alternative of a goal, by (variable, alternative). `first`
    and `last` are the times of an event in this step; an event without used rows has chain -1.
    """

    of_row: I64
    parts: list[tuple[int, Distinct]]
    mask: I64
    chain: I64
    key: I64
    first: I64
    last: I64
    codes: dict[tuple[int, int], I64]


class Bindings:
    """The nodes of a bucket.

    Parameters
    ----------
    spec, intake : of the operator
    without_last : whether nodes leave out the variables that the last goal binds. They do not change the state, only
        to which binding an answer belongs, so all their values can share a node; `split` divides its answers.
    """

    def __init__(self, spec: PatternSpec, intake: Intake, without_last: bool = False) -> None:
        self._spec = spec
        self._intake = intake
        self._tests = spec.analysis.tests
        self._names = spec.analysis.bound
        #: For each alternative of a goal, the variables that it binds in nodes.
        self._binds = [test.binds for test in self._tests]
        if without_last:
            self._binds[-1] = ()
        #: The goals that bind variables.
        self._levels = sorted({test.goal for test, names in zip(self._tests, self._binds, strict=True) if names})
        self._n_goals = len(spec.analysis.query.goals)
        self._values = [Dictionary([kind]) for kind in spec.bound_types]
        self._limit = AnswerLimit(spec.analysis.query.name, spec.max_answers, REMEDY)
        self._chain = np.zeros(0, np.int64)
        self._level = np.zeros(0, np.int64)
        self._codes = np.zeros((0, len(self._names)), np.int64)
        self._numbers: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self._chain)

    @property
    def complete(self) -> Bools:
        """Which nodes have values of all variables: only they can have answers."""
        return self._level == len(self._levels)

    def chain_of(self, nodes: I64 | I32) -> I32:
        """The chain of each node."""
        return self._chain[nodes].astype(np.int32)

    def codes_of(self, nodes: I64 | I32) -> I64:
        """The codes of the grouping variables of complete nodes, one row per node."""
        return self._codes[nodes]

    def columns(self, codes: I64) -> list[pa.Array]:
        """The values of the grouping variables with these codes."""
        return [values.take(codes[:, index].astype(np.int32))[0] for index, values in enumerate(self._values)]

    def split(self, expansion: Expansion, rows: I64) -> I64:
        """The codes of the grouping variables of answers that come from these rows of an expansion."""
        codes = self._codes[expansion.node[rows]].copy()
        last = len(self._tests) - 1
        event = self._events.of_row[expansion.rows[rows]]
        for variable, name in enumerate(self._names):
            if name in self._tests[last].binds:
                codes[:, variable] = self._events.codes[variable, last][event]
        return codes

    def save(self) -> dict[str, pa.Table]:
        """The nodes as tables."""
        columns = {"chain": self._chain, "level": self._level}
        columns |= {str(index): np.ascontiguousarray(self._codes[:, index]) for index in range(len(self._names))}
        tables = {"nodes": pa.table(columns)}
        return tables | {f"bound {index}": values.to_table() for index, values in enumerate(self._values)}

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        for index, values in enumerate(self._values):
            values.encode(tables[f"bound {index}"])
        nodes = tables["nodes"]
        columns = [nodes[name].to_numpy() for name in nodes.column_names]
        self._add(columns[0], columns[1], np.stack(columns[2:], axis=1))

    def needed(self, is_new: Bools) -> Bools:
        """Which nodes have to be kept, given those that are as new ones.

        A node that was forgotten starts again with the state of its nearest ancestor. So it can be forgotten if both
        are as new ones.
        """
        needed = ~is_new
        for node in np.flatnonzero(is_new & (self._level > 0)).tolist():
            ancestor = self._nearest_ancestor(node)
            needed[node] = ancestor is not None and not is_new[ancestor]
        return needed

    def _nearest_ancestor(self, node: int) -> int | None:
        codes = self._codes[node].tolist()
        for level in reversed(range(int(self._level[node]))):
            for test, names in zip(self._tests, self._binds, strict=True):
                for name in names if test.goal == self._levels[level] else ():
                    codes[self._names.index(name)] = _UNBOUND
            ancestor = self._numbers.get((int(self._chain[node]), *codes))
            if ancestor is not None:
                return ancestor
        return None

    def keep(self, nodes: Bools, chains: Bools) -> None:
        """Forget all other nodes and chains, and the values that no node has."""
        chain, level, codes = (np.cumsum(chains) - 1)[self._chain[nodes]], self._level[nodes], self._codes[nodes]
        for variable, values in enumerate(self._values):
            bound = codes[:, variable] >= 0
            used = np.zeros(len(values), np.bool_)
            used[codes[bound, variable]] = True
            codes[bound, variable] = values.keep(used)[codes[bound, variable]]
        self._chain, self._level, self._codes, self._numbers = chain[:0], level[:0], codes[:0], {}
        self._add(chain, level, codes)

    def chains_of(self, nodes: Bools, n_chains: int) -> Bools:
        """Which chains have some of these nodes."""
        chains = np.zeros(n_chains, np.bool_)
        chains[self._chain[nodes]] = True
        return chains

    # ------------------------------------------------------------ the events of a step

    def read(self, received: Received) -> I64:
        """Take the rows of a step, add the nodes that they start, and return the origin of each new node.

        The origin is the older node whose state it continues; -1 if it has none.
        """
        self._received = received
        self._events = self._read(received)
        return self._grow()

    def _read(self, received: Received) -> _Events:
        rows, used = received.rows, received.used
        of_row = np.zeros(len(rows), np.int64)
        parts: list[tuple[int, Distinct]] = []
        masks = [np.zeros(0, np.int64)]
        n_events = 0
        for distinct in self._intake.distinct_events(rows, with_keys=True):
            of_row[distinct.rows] = distinct.event + n_events
            parts.append((n_events, distinct))
            masks.append(self._intake.alternatives(distinct))
            n_events += len(distinct.real)
        mask = np.concatenate(masks)
        chain, key = (np.full(n_events, -1, np.int64) for _ in range(2))
        first, last = np.full(n_events, END, np.int64), np.full(n_events, BEGINNING, np.int64)
        chain[of_row[used]] = received.chain[used]
        key[of_row[used]] = received.key[used]
        np.minimum.at(first, of_row[used], rows.t[used])
        np.maximum.at(last, of_row[used], rows.t[used])
        mask[chain < 0] = 0
        codes = {
            (variable, number): self._encode(variable, number, mask, parts[test.stream])
            for number, test in enumerate(self._tests)
            for variable, name in enumerate(self._names)
            if name in test.agrees or name in test.binds
        }
        return _Events(of_row, parts, mask, chain, key, first, last, codes)

    def _encode(self, variable: int, number: int, mask: I64, part: tuple[int, Distinct]) -> I64:
        """The code of a variable in the events that match an alternative."""
        offset, distinct = part
        test, name = self._tests[number], self._names[variable]
        codes = np.full(len(mask), _NULL, np.int64)
        matching = np.flatnonzero(mask & match_bit(number) != 0)
        column = distinct.columns[test.variable_columns[name]].take(pa.array(matching - offset))
        codes[matching] = self._values[variable].encode(pa.table({"value": column}))
        if name in test.agrees:
            codes[matching[column.is_null().to_numpy(zero_copy_only=False)]] = _NULL
        return codes

    # ------------------------------------------------------------ nodes

    def _add(self, chain: I64, level: I64, codes: I64) -> I64:
        """Add nodes and return their numbers; known nodes are not added again."""
        known = len(self)
        keys = zip(chain.tolist(), *codes.T.tolist(), strict=True)
        numbers = np.array([self._numbers.setdefault(key, len(self._numbers)) for key in keys], np.int64)
        new, index = np.unique(numbers, return_index=True)
        index = index[new >= known]
        self._chain = np.concatenate([self._chain, chain[index]])
        self._level = np.concatenate([self._level, level[index]])
        self._codes = np.concatenate([self._codes, codes[index]])
        return numbers

    def _grow(self) -> I64:
        """Add the nodes that the events of a step start; see `read`."""
        known = len(self)
        chains = np.unique(self._received.chain[self._received.used]).astype(np.int64)
        unbound = np.full((len(chains), len(self._names)), _UNBOUND, np.int64)
        self._add(chains, np.zeros(len(chains), np.int64), unbound)
        origin = np.arange(len(self))
        origin[known:] = -1
        #: A child is later than its parent; a node of an earlier step is older than all events.
        created = np.full(len(self), BEGINNING, np.int64)
        for level, goal in enumerate(self._levels):
            alternatives = [number for number, test in enumerate(self._tests) if test.goal == goal]
            children = [self._children(level, number, created) for number in alternatives]
            parents, events = (np.concatenate(part) for part in zip(*children, strict=True))
            variables = [variable for variable, name in enumerate(self._names) if name in self._binds[alternatives[0]]]
            columns = [
                np.concatenate(
                    [
                        self._events.codes[variable, number][of_alternative]
                        for number, (_, of_alternative) in zip(alternatives, children, strict=True)
                    ]
                )
                for variable in variables
            ]
            # Many events give the same child, so Python sees only the distinct ones.
            distinct, first, child = np.unique(_code_of([parents, *columns]), return_index=True, return_inverse=True)
            # In most cases, a binding has an answer.
            if len(distinct) > self._limit.most:
                raise self._limit.exceeded(self._described(), f"{self._limit.most:,} bindings")
            codes = self._codes[parents[first]].copy()
            for variable, column in zip(variables, columns, strict=True):
                codes[:, variable] = column[first]
            nodes = self._add(self._chain[parents[first]], np.full(len(distinct), level + 1), codes)[child]
            n_new = len(self) - len(origin)
            origin = np.concatenate([origin, np.full(n_new, -1, np.int64)])
            created = np.concatenate([created, np.full(n_new, END, np.int64)])
            new = nodes >= known
            origin[nodes[new]] = origin[parents[new]]
            begin = np.maximum(self._events.first[events], created[parents] + (created[parents] > BEGINNING))
            np.minimum.at(created, nodes[new], begin[new])
        return origin[known:]

    def _children(self, level: int, number: int, created: I64) -> tuple[I64, I64]:
        """The pairs of a node and an event that binds the variables of its next level, in one alternative."""
        nodes = np.flatnonzero(self._level == level)
        events = np.flatnonzero(self._events.mask & accept_bit(number) != 0)
        node, event = self._agreeing(number, self._tests[number].agrees, nodes, events)
        later = self._events.last[event] > created[node]
        node, event = node[later], event[later]
        before = self._levels[:level]
        known = {
            name for test, names in zip(self._tests, self._binds, strict=True) if test.goal in before for name in names
        }
        given = [part for part in self._tests[number].given if _binding_names(part) <= known]
        fits = self._given(number, given, node, event)
        return node[fits], event[fits]

    def _agreeing(self, number: int, names: Iterable[str], nodes: I64, events: I64) -> tuple[I64, I64]:
        """The pairs of a node and an event of its chain that have the same values of these variables."""
        node, event = self._pairs(self._codes_to_join(number, names, nodes, events))
        return nodes[node], events[event]

    def _pairs(self, codes: tuple[I64, I64]) -> tuple[I64, I64]:
        """The pairs of equal codes (see `equal_pairs`), if they are not too many."""

        def check(n_pairs: int) -> None:
            most = PAIRS_PER_ANSWER * self._limit.most
            if n_pairs > most:
                raise self._limit.exceeded(self._described(), f"{most:,} pairs of a binding and an event")

        return equal_pairs(codes, check)

    def _described(self) -> str:
        """How many bindings there are, for a message."""
        return f"{len(self):,} bindings of {', '.join(self._names)}"

    def _codes_to_join(self, number: int, names: Iterable[str], nodes: I64, events: I64) -> tuple[I64, I64]:
        """Codes of nodes and of events that are equal where they have the same chain and values of these variables."""
        columns = [np.concatenate([self._chain[nodes], self._events.chain[events]])]
        for name in names:
            variable = self._names.index(name)
            of_events = self._events.codes[variable, number][events]
            columns.append(np.concatenate([self._codes[nodes, variable], of_events]))
        code = _code_of(columns)
        return code[: len(nodes)], code[len(nodes) :]

    def blocks(self, nodes: I64, groups: I32 | I64) -> Iterator[I64]:
        """The nodes, as many at a time as memory allows; those with the same number in `groups` together."""
        if self._spec.analysis.single:
            rows = np.diff(self._received.starts)[self._chain[nodes]]
        else:
            # All rows of a MARKOV key are repeated, not only those that match.
            rows = self._matching_rows(nodes) * (4 if self._spec.analysis.markov else 1)
        total = np.cumsum(np.bincount(groups, rows))
        block = (total // MOST_ROWS).astype(np.int64)[groups]
        for number in np.unique(block):
            yield nodes[block == number]

    def _matching_rows(self, nodes: I64) -> I64:
        """How many rows match goals of each node; a row counts once for each alternative of a goal."""
        events = self._events
        n_rows = np.bincount(events.of_row[self._received.used], minlength=len(events.mask))
        total = np.zeros(len(nodes), np.int64)
        for number, reached, names, matching in self._alternatives_of(nodes):
            left, right = self._codes_to_join(number, names, nodes, matching)
            order = np.argsort(right, kind="stable")
            before = np.concatenate([[0], np.cumsum(n_rows[matching[order]])])
            low, high = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
            total += np.where(reached, before[high] - before[low], 0)
        return total

    def _given(self, number: int, conditions: Sequence[Typed], nodes: I64, events: I64) -> Bools:
        """Whether conditions on an event and a binding hold, for each pair."""
        condition = conjunction(tuple(conditions))
        if condition is None:
            return np.ones(len(nodes), np.bool_)
        offset, distinct = self._events.parts[self._tests[number].stream]
        chosen = pa.array(events - offset)
        columns = {}
        for owner, name in references(condition):
            if owner == BINDING:
                variable = self._names.index(name)
                codes = self._codes[nodes, variable].astype(np.int32)
                columns[f"{BINDING}.{name}"] = self._values[variable].take(codes)[0]
            else:
                columns[name] = distinct.columns[name].take(chosen)
        return holds(condition, columns, self._spec.relations, len(nodes))

    # ------------------------------------------------------------ rows of nodes

    def expand(self, nodes: I64, fed: tuple[I64, I64] | None) -> Expansion:
        """The rows of some nodes.

        Parameters
        ----------
        nodes : the numbers of the nodes
        fed : the nodes and keys of which every row counts, whether or not it matches: the MARKOV keys that have had an
            effect on a node. None if every key counts for every node of its chain.
        """
        received, events = self._received, self._events
        node, event, mask, again = self._symbols(nodes)
        n_events = len(events.mask)
        markov = received.model[received.used] >= kernel.MARKOV
        row_event, row_key = events.of_row[received.used], received.key[received.used]
        # The rows of other models count where they match; the rest has the effect of nothing.
        plain = np.flatnonzero(~markov)
        pair, position = self._pairs((event, row_event[plain]))
        pair_nodes, positions = [node[pair]], [plain[position]]
        if markov.any():
            feeding = np.flatnonzero(markov)
            if fed is None:
                chain = received.chain[received.used[feeding]].astype(np.int64)
                pair, position = self._pairs((self._chain[nodes], chain))
                pair_nodes.append(nodes[pair])
            else:
                effective = self._events.key[event]
                both = np.unique(np.stack([np.append(node, fed[0]), np.append(effective, fed[1])]), axis=1)
                both = both[:, np.isin(both[0], nodes)]
                pair, position = self._pairs((both[1], row_key[feeding].astype(np.int64)))
                pair_nodes.append(both[0][pair])
            positions.append(feeding[position])
        all_nodes, all_positions = np.concatenate(pair_nodes), np.concatenate(positions)
        if len(plain) or fed is not None:
            order = np.lexsort((all_positions, all_nodes))
            all_nodes, all_positions = all_nodes[order], all_positions[order]
        index, found = _find(node * n_events + event, all_nodes * n_events + row_event[all_positions])
        mask, again = (np.where(found, bits[index], 0) if len(bits) else index for bits in (mask, again))
        return Expansion(received.used[all_positions], all_nodes.astype(np.int32), mask, again)

    def _symbols(self, nodes: I64) -> tuple[I64, I64, I64, I64]:
        """The pairs of a node and an event that matches a goal of it, with the symbols; sorted by node and event."""
        n_events = len(self._events.mask)
        pairs, masks, agains = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        levels = np.array([*self._levels, self._n_goals])
        for number, reached, names, events in self._alternatives_of(nodes):
            node, event = self._agreeing(number, names, nodes[reached], events)
            accepted, same = self._accepted(number, self._tests[number], node, event, levels)
            pairs.append(node * n_events + event)
            masks.append(np.where(accepted, match_bit(number) | accept_bit(number), match_bit(number)))
            agains.append(np.where(same, match_bit(number), 0))
        pair, index = np.unique(np.concatenate(pairs), return_inverse=True)
        mask, again = np.zeros(len(pair), np.int64), np.zeros(len(pair), np.int64)
        np.bitwise_or.at(mask, index, np.concatenate(masks))
        np.bitwise_or.at(again, index, np.concatenate(agains))
        return pair // max(n_events, 1), pair % max(n_events, 1), mask, again

    def _alternatives_of(self, nodes: I64) -> Iterator[tuple[int, Bools, tuple[str, ...], I64]]:
        """For each alternative of a goal: which nodes it concerns, what events must agree in, and its events."""
        next_goal = np.array([*self._levels, self._n_goals])[self._level[nodes]]
        for number, test in enumerate(self._tests):
            # A node waits for the event that binds its next variables: it has no results of this goal and later ones.
            # The first goal ends no partial result, so only its accepted events count.
            reached = next_goal > test.goal if test.goal == 0 else next_goal >= test.goal
            names = (*test.agrees, *self._binds[number]) if test.goal == 0 else test.agrees
            yield number, reached, names, np.flatnonzero(self._events.mask & match_bit(number) != 0)

    def _accepted(self, number: int, test: GoalTest, node: I64, event: I64, levels: I64) -> tuple[Bools, Bools]:
        """Which pairs are accepted by a goal, and which have the values of the node."""
        same = levels[self._level[node]] > test.goal
        for variable, name in enumerate(self._names):
            if name in self._binds[number]:
                same &= self._events.codes[variable, number][event] == self._codes[node, variable]
        accepted = same & (self._events.mask[event] & accept_bit(number) != 0)
        if test.given:
            tested = np.flatnonzero(accepted)
            accepted[tested] = self._given(number, test.given, node[tested], event[tested])
        return accepted, same


def _binding_names(condition: Typed) -> set[str]:
    return {name for owner, name in references(condition) if owner == BINDING}


def _code_of(columns: Sequence[I64]) -> I64:
    """One code for each row of some columns: equal rows have equal codes."""
    code = columns[0]
    for column in columns[1:]:
        values, more = np.unique(column, return_inverse=True)
        _, code = np.unique(code * len(values) + more, return_inverse=True)
    return code


def equal_pairs(codes: tuple[I64, I64], check: Callable[[int], None]) -> tuple[I64, I64]:
    """The indexes of all pairs of equal entries of two arrays, in the order of the first.

    `check` gets their number before memory is allocated for them.

    Examples
    --------
    >>> left, right = equal_pairs((np.array([7, 5, 7]), np.array([5, 7, 6, 5])), lambda n_pairs: None)
    >>> left.tolist(), right.tolist()
    ([0, 1, 1, 2], [1, 0, 3, 1])
    """
    left, right = codes
    order = np.argsort(right, kind="stable")
    ordered = right[order]
    low, high = np.searchsorted(ordered, left, "left"), np.searchsorted(ordered, left, "right")
    counts = high - low
    check(int(counts.sum()))
    of_left = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(of_left)) - np.repeat(np.cumsum(counts) - counts, counts)
    return of_left, order[low[of_left] + within]


def _find(ordered: I64, wanted: I64) -> tuple[I64, Bools]:
    """The index of each wanted number in an ordered array, and whether it is there."""
    if not len(ordered):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    index = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return index, ordered[index] == wanted
