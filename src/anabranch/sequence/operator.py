"""The operator of SEQUENCE."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np
import pyarrow as pa

from anabranch.arrays import Bools
from anabranch.events.batch import Batch
from anabranch.events.operator import EventOperator
from anabranch.sequence.answers import Answers
from anabranch.sequence.lowering import Search
from anabranch.sequence.matching import SPENT, Matcher, Matches
from anabranch.sequence.spec import SequenceSpec
from anabranch.transport.limits import AnswerLimit
from anabranch.transport.operator import Counts

#: The role columns: the component of a disjunct of a query, and whether the event was kept from an earlier step.
_ROLE_TYPES: Mapping[str, type] = {"variable": np.int64, "old": np.bool_}
#: A further one: whether the event has begun a match and begins no other.
_MARKS: Mapping[str, type] = {SPENT: np.bool_}


class SequenceOperator(EventOperator):
    """The operator of one bucket of SEQUENCE queries."""

    def __init__(self, spec: SequenceSpec) -> None:
        self._spec = spec
        super().__init__(spec, {**_ROLE_TYPES, **(_MARKS if spec.marks_firsts else {})})

    def answers_of(self, batch: Batch, ended: bool, counts: Counts) -> pa.Table:
        """Every match that is decided before the watermark; at the end of the input, all windows close."""
        spec = self._spec
        answers = Answers(spec, batch)
        matcher = Matcher(batch, spec.relations, inf if ended else self.now)
        alive = np.zeros(len(matcher.roles), np.bool_)
        marks = {SPENT: batch.roles[SPENT].copy()} if spec.marks_firsts else {}
        for query, analysis in enumerate(spec.analyses):
            first, end = spec.first_role[query], spec.first_role[query + 1]
            roles = matcher.roles.between(first, end)
            answered = matcher.answered(analysis, roles, first)
            for expired in (False, True):
                searches = [search for search in spec.searches[query] if search.expired is expired]
                if searches:
                    limit = answers.limit(query)
                    matches = [self._matches(matcher, query, search, alive, answered, limit) for search in searches]
                    answers.add(query, matches, expired, answered)
            if len(answered) or analysis.query.has_open_start:
                window = spec.searches[query][0].scores.window
                marks[SPENT][roles] |= matcher.spent(analysis, roles, first, answered, window)
        counts.kept = matcher.most_kept(max(spec.window(query) for query in range(len(spec.analyses))))
        self.kept = batch.with_roles(alive, old=np.ones(len(alive), np.bool_), **marks)
        return answers.table()

    def _matches(
        self, matcher: Matcher, query: int, search: Search, alive: Bools, answered: Bools, limit: AnswerLimit
    ) -> Matches:
        """The matches of one search among the events that can be its components; marks roles in `alive`."""
        analysis = self._spec.analyses[query]
        size = len(analysis.query.components)
        first = self._spec.first_role[query] + search.disjunct * size
        roles = matcher.roles.between(first, first + size)
        return matcher.matches(analysis, search, roles, first, alive, answered, limit)
