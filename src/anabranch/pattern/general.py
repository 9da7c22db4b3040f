"""The operator of any PATTERN query on a stream: its chains are carried from instant to instant (`chain.py`).

A bucket has complete groups (the bindings of GROUP BY; without GROUP BY, all rows), because the chains of a group that
are sampled are combined world by world. With bindings (`bindings.py`), every node is a chain of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, I32, I64, U64, Bools
from anabranch.binding.per import PerWindow
from anabranch.columns.dictionary import encode_tuples, is_worth_removing
from anabranch.columns.hashing import hash_tuples
from anabranch.columns.times import decode_times
from anabranch.pattern.bindings import Bindings
from anabranch.pattern.carried_state import CarriedState
from anabranch.pattern.chain import Carrying, Chain
from anabranch.pattern.history import Histories, History
from anabranch.pattern.intake import Intake, Received, Used
from anabranch.pattern.machine import Machine, Transitions
from anabranch.pattern.markov_past import MarkovPast
from anabranch.pattern.sampling import words_for
from anabranch.pattern.signatures import Signed
from anabranch.pattern.spec import GroupSpec
from anabranch.pattern.tally import EXACT, Answer, Episodes, Instants, Tally, probabilities, tally_of
from anabranch.pattern.windows import window_times
from anabranch.transport.operator import Outcome
from anabranch.transport.per import Moment
from anabranch.transport.state import seal, unseal


class GeneralOperator:
    """The operator of one bucket."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._analysis = spec.analysis
        self._machine = self._transitions()
        self.open(None)

    def _transitions(self) -> Transitions:
        """How partial results are updated."""
        return Machine(self._spec.analysis, self._spec.relations)

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""
        spec = self._spec
        self._carrying = Carrying(spec.analysis.query, self._machine, spec.time_kind, spec.times)
        self._intake = Intake(spec)
        self._bindings = Bindings(spec, self._intake) if spec.analysis.bound else None
        self._past = MarkovPast()
        self._chains: list[Chain] = []
        #: The answers of each group, by its first chain.
        self._tallies: dict[int, Tally] = {}
        self._last_instant = BEGINNING
        if state is not None:
            self._load(unseal(state, spec.fingerprint))

    def _load(self, tables: dict[str, pa.Table]) -> None:
        self._intake.load(tables)
        self._past.load(tables)
        if self._bindings is not None:
            self._bindings.load(tables)
        self._last_instant = tables["last instant"]["t"][0].as_py()
        state = CarriedState(self._spec)
        self._chains = state.chains(tables, self._carrying)
        state.restore(tables, self._group())

    def save(self) -> bytes:
        """The state as bytes, for `open`."""
        return seal(self._tables(), self._spec.fingerprint)

    def _tables(self) -> dict[str, pa.Table]:
        tables = self._intake.save() | self._past.save()
        if self._bindings is not None:
            tables |= self._bindings.save()
        tables["last instant"] = pa.table({"t": [self._last_instant]})
        return tables | CarriedState(self._spec).tables(self._chains, self._tallies)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets and return all answers about instants before the watermark."""
        received = self._intake.receive(packets, watermark, ended)
        histories = self._histories(self._grown(self._signed(received)))
        instants = np.unique(np.append(received.instants, self._last_instant))
        self._last_instant = int(instants[-1])
        now = Moment(self._intake.watermark, ended, instants)
        answers = self._answers(received, histories, now)
        if self._analysis.markov:
            self._past.step(received, self._intake.n_values)
        if self._forgets:
            self._forget(now.watermark)
        return Outcome(answers, received.rejected, received.counts)

    @property
    def _forgets(self) -> bool:
        """Whether chains can be forgotten: not the values of MARKOV keys, nor counts."""
        return self._intake.forgets and not self._analysis.markov and not self._spec.times

    def _forget(self, watermark: int) -> None:
        """Forget the chains that are as new ones: a later row of their keys starts them again."""
        needed = np.array([not chain.is_new(watermark) for chain in self._chains], np.bool_)
        chains = needed
        if self._bindings is not None:
            needed = self._bindings.needed(~needed)
            chains = self._bindings.chains_of(needed, self._intake.n_chains)
        nothing = np.zeros(0, np.int64)
        used = self._intake.used(self._intake.needed(chains), nothing, nothing.astype(np.int32))
        if used.is_minority or is_worth_removing(needed):
            self._keep(used, needed)

    def _keep(self, used: Used, nodes: Bools) -> None:
        """Forget all other chains, keys and values; with bindings, all other nodes."""
        if self._bindings is None:
            nodes = used.chains
        else:
            self._bindings.keep(nodes, used.chains)
        self._intake.keep(used)
        self._chains = [self._chains[number] for number in np.flatnonzero(nodes)]
        self._tallies = {}

    def _signed(self, received: Received) -> Signed:
        """The rows of a step, with their signatures."""
        return Signed.of(self._intake, self._analysis, received)

    def _answers(self, received: Received, histories: dict[int, History], now: Moment) -> pa.Table:
        """Process a step, and return its answers."""
        return self._table([*self._advance(histories, now)])

    # ------------------------------------------------------------ chains

    def _grown(self, signed: Signed) -> Signed:
        """Add the chains that begin with a step, and return its rows by chain."""
        if self._bindings is None:
            hashes = hash_chains(self._intake, np.arange(len(self._chains), self._intake.n_chains))
            self._chains += [self._carrying.start(hashed) for hashed in hashes.tolist()]
            return signed
        origins = self._bindings.read(signed.received)
        new = np.arange(len(self._chains), len(self._bindings))
        hashes = hash_chains(self._intake, self._bindings.chain_of(new))
        for origin, hashed in zip(origins.tolist(), hashes.tolist(), strict=True):
            self._chains.append(self._chains[origin].copy() if origin >= 0 else self._carrying.start(hashed))
        fed = [(number, key) for number, chain in enumerate(self._chains) for key in chain.state.keys]
        nodes, keys = np.array(fed, np.int64).reshape(-1, 2).T
        expansion = self._bindings.expand(np.arange(len(self._bindings)), (nodes, keys))
        return signed.repeated(expansion, len(self._bindings))

    def _histories(self, signed: Signed) -> dict[int, History]:
        """The rows of each chain, without the keys that have had no effect on it and match no goal now."""
        received = signed.received
        histories = Histories(self._intake, received, signed.signature, signed.signatures, self._analysis.query.seed)
        of_chains = {}
        for number in np.flatnonzero(np.diff(received.starts)).tolist():
            rows = received.used[received.starts[number] : received.starts[number + 1]]
            matching = received.key[rows[signed.mask[rows] != 0]]
            fed = np.array([*self._chains[number].state.keys], np.int32)
            useful = np.isin(received.key[rows], np.append(matching, fed))
            if useful.any():
                of_chains[number] = histories.of(rows[useful])
        return of_chains

    def _earlier(self, key: int) -> Mapping[int, float] | None:
        """The distribution of the value of a Markov key before this step."""
        past = self._past.of(key)
        return None if past is None else dict(zip(past[0].tolist(), past[1].tolist(), strict=True))

    # ------------------------------------------------------------ groups

    def _group(self) -> dict[int, Tally]:
        """The answers of each group, by its first chain; groups of new chains are added."""
        spec = self._spec
        numbers = np.arange(len(self._chains))
        if self._bindings is not None:
            numbers = np.flatnonzero(self._bindings.complete)
        columns = self._group_columns(numbers)
        codes, _ = encode_tuples([pa.chunked_array([column]) for column in columns], len(numbers))
        firsts: dict[int, int] = {}
        for number, code in zip(numbers.tolist(), codes.tolist(), strict=True):
            first = firsts.setdefault(code, number)
            tally = self._tallies.setdefault(first, tally_of(spec.spans, spec.time_kind, {}))
            tally.chains[number] = self._chains[number]
        return self._tallies

    def _group_columns(self, numbers: I64) -> list[pa.Array]:
        """The grouping columns of some chains."""
        bindings = self._bindings
        if bindings is None:
            columns = self._intake.chain_columns(numbers)
        else:
            of_chains = self._intake.chain_columns(bindings.chain_of(numbers))
            columns = [*of_chains, *bindings.columns(bindings.codes_of(numbers))]
        return [columns[index] for _, index in self._analysis.group_by]

    def _advance(self, histories: dict[int, History], now: Moment) -> Iterator[tuple[int, Answer]]:
        """Process a step; the answers of groups, each with its first chain."""
        for first, tally in self._group().items():
            if isinstance(tally, Episodes):
                tally.instants = now.instants
            of_group = {number: histories.pop(number) for number in tally.chains if number in histories}
            yield from ((first, answer) for answer in tally.advance(of_group, self._earlier))
            yield from ((first, answer) for answer in tally.complete(now))
        # What is left are nodes without values of all variables: they have no answers.
        for number, history in histories.items():
            for _ in Instants({number: self._chains[number]}).advance({number: history}, self._earlier):
                pass

    def _table(self, answers: Sequence[tuple[int, Answer]]) -> pa.Table:
        """Answers in the schema of the specification."""
        firsts = np.array([first for first, _ in answers], np.int64)
        return answer_table(self._spec, [answer for _, answer in answers], self._group_columns(firsts))


def hash_chains(intake: Intake, chains: I32 | I64) -> U64:
    """A hash of the variables of each chain: the bindings of one chain draw the same worlds."""
    return hash_tuples(intake.chain_columns(chains), len(chains))


def answer_table(spec: GroupSpec, answers: Sequence[Answer], groups: Iterable[pa.Array]) -> pa.Table:
    """Answers of carried chains in the schema of the specification, given their grouping columns."""
    query = spec.analysis.query
    worlds = 64 * words_for(query.accuracy, query.confidence)
    numbers = probabilities(answers, worlds, 1.0 - query.confidence)
    t_from, t_to = (np.array([getattr(answer, name) for answer in answers], np.int64) for name in ("t_from", "t_to"))
    if isinstance(spec.spans, PerWindow):
        times = window_times(t_from, spec.spans, spec.time_kind)
    else:
        times = [decode_times(t, spec.time_kind) for t in ((t_from,) if spec.spans is None else (t_from, t_to))]
    p, lower, upper = (pa.array(np.minimum(number, 1.0)) for number in numbers)
    columns = {
        "count": pa.array([answer.count for answer in answers], pa.int64()),
        "probability": p,
        "expected": pa.array([answer.expected for answer in answers], pa.float64()),
        "lower": lower,
        "upper": upper,
        "method": pa.array(["exact" if answer.hits == EXACT else "sampling" for answer in answers], pa.string()),
    }
    head = [*times, *groups]
    names = spec.answer_schema.names[len(head) :]
    table = pa.table([*head, *(columns[name] for name in names)], schema=spec.answer_schema)
    return table.filter(pa.array((numbers[0] > 0.0) & (numbers[0] >= spec.least)))
