"""RELATE without a JVM: entities from the operators of all buckets, paired and decided in one block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from tests import local
from tests.local import Rows

from anabranch.relate.deciding import decide
from anabranch.relate.job import RelateJob
from anabranch.relate.operator import RelateOperator
from anabranch.relate.store import EntityStore

#: The keys of both operands; a key of one column is that column's value, of several their tuple.
Pair = tuple[Any, Any]


class Answer(NamedTuple):
    """What was said of a pair; what the query does not ask for is None."""

    probability: float
    complement: float | None = None
    status: str | None = None


class RelateRun(local.LocalRun):
    """The buckets of one RELATE query; `reported` holds what each step said, in order."""

    def __init__(self, job: RelateJob, n_buckets: int = 3) -> None:
        super().__init__(job, n_buckets)
        self.reported: list[list[tuple[Pair, Answer]]] = []
        self.entities = job.answer_schema.empty_table()

    def step(self, rows: Rows, end: bool = False) -> None:
        """One micro-batch, and the answers that it gives."""
        super().step(rows, end)
        self.entities = pa.concat_tables([outcome.answers for outcome in self.outcomes[-self.n_buckets :]])
        answers = decide(self.job.spec, members(self.job, self.entities))
        self.reported.append([_answer(row) for row in answers.to_pylist()])

    def held(self) -> dict[Pair, Answer]:
        """The pairs that hold by what the last step knew of each entity, whether it changed or not."""
        there = self.entities.filter(self.entities["there"])
        for name, value in (("changed", pa.array([True] * len(there))), ("before", pa.nulls(len(there), pa.binary()))):
            there = there.set_column(there.schema.get_field_index(name), name, value)
        return dict(_answer(row) for row in decide(self.job.spec, members(self.job, there)).to_pylist())

    def answers(self) -> dict[Pair, Answer]:
        """Every answer that stays: all of a batch run, the final ones of a stream."""
        kept: dict[Pair, Answer] = {}
        for pair, answer in self.rows_reported():
            if answer.status in (None, "final"):
                assert pair not in kept, f"{pair} was answered twice"
                kept[pair] = answer
        return kept

    def rows_reported(self) -> list[tuple[Pair, Answer]]:
        """All that was said, in order."""
        return [row for step in self.reported for row in step]

    def standing(self) -> dict[Pair, Answer]:
        """What a reader takes for true who lets each row stand in the place of the last about its pair."""
        return dict(self.rows_reported())

    def stores(self) -> list[EntityStore]:
        """What the buckets keep, stream by stream."""
        found = []
        for state in self.states:
            operator = RelateOperator(self.job.spec)
            operator.open(state)
            found += operator._stores
        return found

    def kept(self) -> set[Any]:
        """The keys of which any bucket keeps events."""
        return {_key(store.keys.tuple_of(number)) for store in self.stores() for number in set(store.rows.entity)}

    def reasons(self) -> dict[str, int]:
        """How many rows were set aside for each reason."""
        reasons = [row["reason"] for row in self.rejected]
        return {reason: reasons.count(reason) for reason in reasons}


def members(job: RelateJob, entities: pa.Table) -> pa.Table:
    """The entities as members of one block, once for each operand that their stream serves."""
    names = [layout.name.lower() for layout in job.layouts]
    sides = []
    for side, operand in enumerate(job.spec.analysis.query.operands):
        mine = entities.filter(pc.equal(entities["stream"], names.index(operand.stream.name.lower())))
        place = {"block": 0, "side": side}
        sides.append(pa.table({name: pa.array([value] * mine.num_rows, pa.int32()) for name, value in place.items()}))
        for name in mine.column_names:
            sides[-1] = sides[-1].append_column(name, mine[name])
    return pa.concat_tables(sides)


def _answer(row: dict[str, Any]) -> tuple[Pair, Answer]:
    (a, b), said = list(row.values())[:2], row
    told = Answer(said["probability"], said.get("complement"), said.get("status"))
    return (_key(a.values()), _key(b.values())), told


def _key(values: Iterable[Any]) -> Any:
    values = tuple(values)
    return values[0] if len(values) == 1 else values


def run_whole(job: RelateJob, rows: Rows, n_buckets: int = 3) -> RelateRun:
    """A batch run."""
    run = RelateRun(job, n_buckets)
    run.step(rows, end=True)
    return run


def run_stream(job: RelateJob, batches: Sequence[Rows], n_buckets: int = 3) -> RelateRun:
    """A run over micro-batches, and the end of the input after them."""
    run = RelateRun(job, n_buckets)
    for number, batch in enumerate([*batches, {}]):
        run.step(batch, end=number == len(batches))
    return run
