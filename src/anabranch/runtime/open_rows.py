"""The rows of PER that later answers can still change, in files of the checkpoint folder: one per micro-batch.

A micro-batch reads the file of the one before, and writes its own before its answers are delivered. So a micro-batch
that Spark replays after a failure starts from the same rows and gives the same answers: none is lost or counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from anabranch.runtime.file_system import Folder
from anabranch.transport.finishing import Finishing, with_calibration
from anabranch.transport.job import Job
from anabranch.transport.per import Moment, PerRule, advance
from anabranch.transport.state import seal, unseal

_SUFFIX = ".rows"


class OpenRows:
    """The open rows of the queries of a job, by number of the query. Picklable if the folder is.

    Parameters
    ----------
    folder : of the files; created when the first one is written
    """

    def __init__(self, folder: Folder, job: Job) -> None:
        self._folder = folder
        self._job = job
        self.rules: dict[int, Finishing] = {}
        self._pers: dict[int, PerRule] = {}
        for query in range(job.n_queries):
            rules = job.finishing(query)
            if rules.per is not None:
                self.rules[query], self._pers[query] = rules, rules.per
        #: Also where queries with PER were removed: their open rows must not be found if they are added again.
        self.is_used = bool(self.rules or self._numbers())

    def advance(self, answers: Mapping[int, pa.Table], now: Moment, batch: int) -> dict[int, pa.Table]:
        """Add the answers of a micro-batch, by number of the query; returns the rows that it gives.

        `answers` has every query of `rules`.
        """
        latest = max((number for number in self._numbers() if number < batch), default=None)
        before = {} if latest is None else unseal(self._folder.read(_file(latest)), self._job.fingerprint)
        if before:
            now = now.after(before["watermark"]["watermark"][0].as_py(), before["instants"]["instant"].to_numpy())
        after = {
            "watermark": pa.table({"watermark": [now.watermark]}),
            "instants": pa.table({"instant": now.kept_instants(self._pers.values())}),
        }
        rows = {}
        for query, rules in self.rules.items():
            name = f"query {self._job.query_id(query)}"
            open_rows = before[name].replace_schema_metadata(None) if name in before else None
            step = advance(self._pers[query], open_rows, answers[query], now)
            rows[query] = with_calibration(rules, step.rows)
            after[name] = step.open_rows
        self._folder.write(_file(batch), seal(after, self._job.fingerprint))
        for number in self._numbers():
            if latest is not None and number < latest:
                self._folder.delete(_file(number))
        return rows

    def _numbers(self) -> list[int]:
        """The micro-batches that have a file."""
        names = self._folder.names()
        return [int(name.removesuffix(_SUFFIX)) for name in names if name.endswith(_SUFFIX) and name[0] != "."]


def _file(batch: int) -> str:
    return f"{batch:010d}{_SUFFIX}"
