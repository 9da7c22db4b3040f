"""RELATE without a JVM: each bucket decides its pairs, or those of all buckets are decided in one block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from tests import local
from tests.local import Rows

from anabranch.relate.deciding import decide
from anabranch.relate.job import RelateJob
from anabranch.relate.operator import PairOperator, RelateOperator
from anabranch.relate.store import EntityStore

#: The keys of both operands; a key of one column is its value, a key of several columns is a tuple.
Pair = tuple[Any, Any]


class Answer(NamedTuple):
    """An answer about a pair; columns that the query does not have are None."""

    probability: float
    complement: float | None = None
    status: str | None = None
    expected: float | None = None
    distribution: tuple[float, ...] | None = None


class RelateRun(local.LocalRun):
    """The buckets of one RELATE query; `reported` has the answers of each step, in order."""

    def __init__(self, job: RelateJob, n_buckets: int = 3) -> None:
        super().__init__(job, n_buckets)
        self.reported: list[list[tuple[Pair, Answer]]] = []
        self.entities = job.spec.answer_schema.empty_table()

    def step(self, rows: Rows, end: bool = False) -> None:
        """Run one micro-batch and collect its answers."""
        self.entities = self.job.spec.answer_schema.empty_table()
        super().step(rows, end)
        answers = pa.concat_tables([outcome.answers for outcome in self.outcomes[-self.n_buckets :]])
        if self.job.finishing().pairing is not None:
            self.entities = answers
            answers = decide(self.job.spec, members(self.job, answers))
        self.reported.append([_answer(row) for row in answers.to_pylist()])

    def opened(self, bucket: int) -> RelateOperator:
        """An operator with the state of a bucket; the entities whose pairs it decides are kept for `recomputed`."""
        operator = super().opened(bucket)
        if isinstance(operator, PairOperator):
            decided = operator.decided
            operator.decided = lambda entities: decided(self._kept_once(operator, entities))
        return operator

    def _kept_once(self, operator: PairOperator, entities: pa.Table) -> pa.Table:
        """Keep entities from the one bucket of each that counts its rows."""
        if operator.counts_rows:
            self.entities = pa.concat_tables([self.entities, entities])
        return entities

    def recomputed(self) -> dict[Pair, Answer]:
        """The answers about all current entities, as if each of them had changed in the last step."""
        valid = self.entities.filter(self.entities["valid"])
        n = len(valid)
        previous = {field.name: pa.nulls(n, field.type) for field in valid.schema if field.name.startswith("previous")}
        for name, value in {"changed": pa.array([True] * n), **previous}.items():
            valid = valid.set_column(valid.schema.get_field_index(name), name, value)
        return dict(_answer(row) for row in decide(self.job.spec, members(self.job, valid)).to_pylist())

    def answers(self) -> dict[Pair, Answer]:
        """The final answers: all answers of a batch run, those with the status `final` of a stream."""
        kept: dict[Pair, Answer] = {}
        for pair, answer in self.all_reported():
            if answer.status in (None, "final"):
                assert pair not in kept, f"{pair} was answered twice"
                kept[pair] = answer
        return kept

    def all_reported(self) -> list[tuple[Pair, Answer]]:
        """All answers of all steps, in order."""
        return [row for step in self.reported for row in step]

    def latest(self) -> dict[Pair, Answer]:
        """The latest answer about each pair."""
        return dict(self.all_reported())

    def stores(self) -> list[EntityStore]:
        """The entity stores of all buckets, in each bucket by stream."""
        return [store for bucket in range(self.n_buckets) for store in self.opened(bucket)._stores]

    def kept(self) -> set[Any]:
        """The keys whose rows are in the state of some bucket."""
        return {_key(store.keys.tuple_of(number)) for store in self.stores() for number in set(store.rows.entity)}

    def reasons(self) -> dict[str, int]:
        """The number of quarantined rows for each reason."""
        reasons = [row["reason"] for row in self.rejected]
        return {reason: reasons.count(reason) for reason in reasons}


def members(job: RelateJob, entities: pa.Table) -> pa.Table:
    """The entities as members of one block, once for each operand of their stream."""
    names = [layout.name.lower() for layout in job.layouts]
    sides = []
    for side, operand in enumerate(job.spec.analysis.query.operands):
        rows = entities.filter(pc.equal(entities["stream"], names.index(operand.stream.name.lower())))
        constants = {"block": 0, "side": side}
        sides.append(
            pa.table({name: pa.array([value] * rows.num_rows, pa.int32()) for name, value in constants.items()})
        )
        for name in rows.column_names:
            sides[-1] = sides[-1].append_column(name, rows[name])
    return pa.concat_tables(sides)


def _answer(row: dict[str, Any]) -> tuple[Pair, Answer]:
    first, second = list(row.values())[:2]
    distribution = row.get("distribution")
    answer = Answer(
        row["probability"], row.get("complement"), row.get("status"), row.get("expected"),
        None if distribution is None else tuple(distribution),
    )  # fmt: skip
    return (_key(first.values()), _key(second.values())), answer


def _key(values: Iterable[Any]) -> Any:
    values = tuple(values)
    return values[0] if len(values) == 1 else values


def run_whole(job: RelateJob, rows: Rows, n_buckets: int = 3) -> RelateRun:
    """A batch run."""
    run = RelateRun(job, n_buckets)
    run.step(rows, end=True)
    return run


def run_stream(job: RelateJob, batches: Sequence[Rows], n_buckets: int = 3) -> RelateRun:
    """A run over micro-batches, followed by the end of the input."""
    run = RelateRun(job, n_buckets)
    for number, batch in enumerate([*batches, {}]):
        run.step(batch, end=number == len(batches))
    return run
