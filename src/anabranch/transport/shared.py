"""Several jobs over the same streams in one pass over an archive: rows are read once, and streams are derived once.

Each job keeps its own routing, operators and answers. A packet that several jobs make alike is sent once, and operators
of a bucket that get the same packets of an inferred stream share what is inferred from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from anabranch.binding.typed import Typed, disjunction
from anabranch.columns.dictionary import Dictionary
from anabranch.columns.times import TimeKind
from anabranch.transport.derivation import Derivation, Derived, Deriver
from anabranch.transport.finishing import QUERY, Finishing
from anabranch.transport.job import SingleJob
from anabranch.transport.layout import Layout
from anabranch.transport.operator import Counts, Operator, Outcome
from anabranch.transport.routing import Packets
from anabranch.transport.rows import Rows
from anabranch.transport.watermark import Progress

#: In a packet: the number of jobs that it is for, and the number of each.
_NUMBER = np.dtype("<u2")


@dataclass(frozen=True)
class SharedJob:
    """The jobs of several queries of one kind over the same streams.

    Attributes
    ----------
    jobs : one for each query
    layouts : of the streams
    streams : for each job, the number of each of its streams in `layouts`
    fingerprint : identifies the queries
    """

    jobs: tuple[SingleJob, ...]
    layouts: tuple[Layout, ...]
    streams: tuple[tuple[int, ...], ...]
    fingerprint: str

    @property
    def n_queries(self) -> int:
        """How many queries the job serves."""
        return len(self.jobs)

    def query_id(self, number: int) -> str:
        """Identifies a query of the group."""
        return self.jobs[number].query_id(0)

    @property
    def relations(self) -> Mapping[str, pa.Table]:
        """The rows of the relations of all jobs."""
        return {name: table for job in self.jobs for name, table in job.relations.items()}

    @cached_property
    def answer_schema(self) -> pa.Schema:
        """The number of the query, then the columns of the answers of each job."""
        columns = [
            field.with_name(f"{prefix_of(number)}{field.name}")
            for number, job in enumerate(self.jobs)
            for field in job.answer_schema
        ]
        return pa.schema([pa.field(QUERY, pa.int32()), *columns])

    def needed(self, stream: int) -> Typed | None:
        """The condition on the key of a row that any of the jobs can use."""
        return disjunction([job.needed(own.index(stream)) for job, own in zip(self.jobs, self.streams, strict=True)])

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """The packets of all jobs; the number of rows that are not sent is that of the first job."""
        receivers: dict[tuple[int, bytes], list[int]] = {}
        ignored = 0
        for number, (job, own) in enumerate(zip(self.jobs, self.streams, strict=True)):
            packets, unused = job.pack(own.index(stream), rows, n_buckets)
            ignored = ignored if number else unused
            for packet in packets:
                receivers.setdefault(packet, []).append(number)
        return [(bucket, _addressed(blob, numbers)) for (bucket, blob), numbers in receivers.items()], ignored

    def together(self, stream: int) -> tuple[str, ...]:
        """The columns in which rows that must meet in a bucket are equal, for each of the jobs."""
        of_jobs = [
            set(job.together(own.index(stream))) if stream in own else set()
            for job, own in zip(self.jobs, self.streams, strict=True)
        ]
        return tuple(sorted(set.intersection(*of_jobs)))

    def operator(self) -> Operator:
        """The operators of all jobs for one bucket."""
        return SharedOperator(self)

    def finishing(self, query: int = 0) -> Finishing:
        """How the operators' answers become the result of a query."""
        return replace(self.jobs[query].finishing(), query=query, prefix=prefix_of(query))


def prefix_of(number: int) -> str:
    """What the names of the answer columns of a job begin with."""
    return f"{number}: "


def _addressed(blob: bytes, numbers: Sequence[int]) -> bytes:
    return np.array([len(numbers), *numbers], _NUMBER).tobytes() + blob


def _opened(packet: bytes) -> tuple[list[int], bytes]:
    """The jobs that a packet is for, and its contents."""
    n_jobs = int(np.frombuffer(packet, _NUMBER, 1)[0])
    numbers = np.frombuffer(packet, _NUMBER, n_jobs, _NUMBER.itemsize)
    return numbers.tolist(), packet[(n_jobs + 1) * _NUMBER.itemsize :]


class SharedOperator:
    """The operators of one bucket, stepped once, one after the other.

    Rows are counted, and quarantined, by the operator of the first job.
    """

    def __init__(self, job: SharedJob) -> None:
        self._job = job
        self._memo = _Memo()
        self._operators = [
            self._operator(part, own) for part, own in zip(job.jobs, job.streams, strict=True)
        ]  # fmt: skip

    def _operator(self, job: SingleJob, streams: Sequence[int]) -> Operator:
        """The operator of a job; its inferred streams are shared."""
        layouts = tuple(
            layout
            if layout.derivation is None
            else replace(layout, derivation=_SharedDerivation(layout.derivation, stream, self._memo))
            for layout, stream in zip(job.layouts, streams, strict=True)
        )
        return job.operator() if layouts == tuple(job.layouts) else job.with_layouts(layouts).operator()

    def open(self, state: bytes | None) -> None:
        """Start empty; a pass over an archive has no state."""
        if state is not None:
            raise ValueError("queries share a pass over an archive only")

    def save(self) -> bytes:
        """Nothing: there is one step."""
        return b""

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: Progress, ended: bool) -> Outcome:
        """Step each operator with its own packets."""
        own_packets: list[list[tuple[int, bytes]]] = [[] for _ in self._operators]
        for stream, packet in packets:
            numbers, blob = _opened(packet)
            for number in numbers:
                own_packets[number].append((stream, blob))
        first: Outcome | None = None
        answers = [self._job.answer_schema.empty_table()]
        for number, (operator, received) in enumerate(zip(self._operators, own_packets, strict=True)):
            self._memo.begin(received)
            own = self._job.streams[number]
            own_received = [(own.index(stream), blob) for stream, blob in received]
            outcome = operator.step(own_received, watermark.of_streams(own), ended)
            first = first or outcome
            answers.append(self._numbered(outcome.answers, number))
        kept = Counts() if first is None else first.counts
        rejected = {} if first is None else {"rejected": first.rejected}
        return Outcome(pa.concat_tables(answers), counts=kept, **rejected)

    def _numbered(self, answers: pa.Table, number: int) -> pa.Table:
        """The answers of a job, with NULL in the columns of the others."""
        n, prefix = answers.num_rows, prefix_of(number)
        own = {f"{prefix}{name}": answers[name] for name in answers.column_names}
        own[QUERY] = pa.repeat(pa.scalar(number, pa.int32()), n)
        schema = self._job.answer_schema
        return pa.table([own.get(field.name, pa.nulls(n, field.type)) for field in schema], schema=schema)


# ---------------------------------------------------------------- shared inference


class _Memo:
    """What was derived in this step, by stream and by the packets that it was derived from."""

    def __init__(self) -> None:
        self._derived: dict[tuple[int, tuple[int, ...]], Derived] = {}
        self._received: Sequence[tuple[int, bytes]] = ()

    def begin(self, received: Sequence[tuple[int, bytes]]) -> None:
        """Go on with the operator that gets these packets."""
        self._received = received

    def key(self, stream: int) -> tuple[int, tuple[int, ...]]:
        """The stream, and the identities of its packets, which live as long as the step."""
        return stream, tuple(id(blob) for of, blob in self._received if of == stream)

    def find(self, stream: int) -> Derived | None:
        """What another operator has derived from the same packets."""
        return self._derived.get(self.key(stream))

    def add(self, stream: int, derived: Derived) -> None:
        """Remember what was derived."""
        self._derived[self.key(stream)] = derived


@dataclass(frozen=True)
class _SharedDerivation:
    """A derivation whose result is remembered for the other operators of a bucket."""

    derivation: Derivation
    stream: int
    memo: _Memo

    @property
    def step(self) -> float:
        """The length of a step."""
        return self.derivation.step

    @property
    def lag(self) -> int:
        """How many later steps count."""
        return self.derivation.lag

    def identity(self) -> dict[str, object]:
        """What tells this derivation from another."""
        return self.derivation.identity()

    def for_people(self) -> Derivation:
        """The derivation with rows for people, not shared."""
        return self.derivation.for_people()

    def open(self, kind: TimeKind) -> Deriver:
        """A deriver for the keys of one bucket."""
        return _SharedDeriver(self.derivation.open(kind), self.stream, self.memo)


class _SharedDeriver:
    """Derives rows unless another operator has derived them from the same packets."""

    def __init__(self, deriver: Deriver, stream: int, memo: _Memo) -> None:
        self._deriver, self._stream, self._memo = deriver, stream, memo

    @property
    def values(self) -> Dictionary:
        """The values of the derived rows."""
        return self._deriver.values

    def advance(self, rows: Rows, keys: Dictionary, readings: Dictionary, watermark: int, ended: bool) -> Derived:
        """The rows of all steps before the watermark."""
        derived = self._memo.find(self._stream)
        if derived is None:
            derived = self._deriver.advance(rows, keys, readings, watermark, ended)
            self._memo.add(self._stream, derived)
        # Operators scale probabilities in place.
        return replace(derived, rows=replace(derived.rows, p=derived.rows.p.copy()))

    def save(self) -> pa.Table:
        """The state of all keys."""
        return self._deriver.save()

    def load(self, saved: pa.Table) -> None:
        """Restore what `save` returned."""
        self._deriver.load(saved)
