"""One bucket of SEQUENCE queries."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from anabranch.arrays import Bools
from anabranch.events.batch import Batch
from anabranch.events.operator import EventOperator
from anabranch.sequence.answers import Answers
from anabranch.sequence.lowering import Search
from anabranch.sequence.matching import Matcher, Matches
from anabranch.transport.operator import Counts

if TYPE_CHECKING:
    from anabranch.sequence.job import SequenceJob


#: The columns of roles: which component of which disjunct of which query, and whether it was there before.
_KINDS: Mapping[str, type] = {"variable": np.int64, "old": np.bool_}


class SequenceOperator(EventOperator):
    """One bucket of SEQUENCE queries."""

    def __init__(self, job: SequenceJob) -> None:
        self._job = job
        super().__init__(job, _KINDS)

    def answers_of(self, batch: Batch, ended: bool, counts: Counts) -> pa.Table:
        """Every match that is decided before the watermark; at the end of the input all windows close."""
        job = self._job
        answers = Answers(job, batch)
        matcher = Matcher(batch, job.relations, inf if ended else self.now)
        alive = np.zeros(len(matcher.roles), np.bool_)
        for query in range(len(job.analyses)):
            for expired in (False, True):
                searches = [search for search in job.searches[query] if search.expired is expired]
                found = [self._found(matcher, query, search, alive) for search in searches]
                if found:
                    answers.add(query, found, expired)
        counts.kept = matcher.most_kept(max(job.window(query) for query in range(len(job.analyses))))
        self.kept = batch.with_roles(alive, old=np.ones(len(alive), np.bool_))
        return answers.table()

    def _found(self, matcher: Matcher, query: int, search: Search, alive: Bools) -> Matches:
        """What one search finds among the events that can be its components."""
        analysis = self._job.analyses[query]
        size = len(analysis.query.components)
        first = self._job.first_role[query] + search.disjunct * size
        return matcher.matches(analysis, search, matcher.roles.between(first, first + size), first, alive)
