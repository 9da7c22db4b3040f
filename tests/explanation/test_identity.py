"""Answers as rows of Spark, pandas and files."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest
from pyspark.sql import Row

from anabranch.errors import AnabranchError
from anabranch.explanation.identity import plain_answer
from anabranch.explanation.structs import field_of

EVENT = {"tag": "pen", "t": datetime(2026, 1, 1, tzinfo=UTC)}


@pytest.mark.parametrize(
    "answer",
    [
        {"t": "2026-01-01T01:00:00+01:00", "x": EVENT},
        pd.Series({"t": pd.Timestamp("2026-01-01"), "x": EVENT}),
        Row(t=datetime(2026, 1, 1, tzinfo=UTC), x=Row(**EVENT)),
    ],
)
def test_rows_of_every_kind_are_the_same_answer(answer: object) -> None:
    assert plain_answer(answer) == {"t": EVENT["t"], "x": EVENT}
    assert field_of(plain_answer(answer)["x"], "TAG") == "pen"


def test_columns_and_fields_that_an_answer_lacks_are_named() -> None:
    answer = plain_answer({"person": "ann", "x": {"tag": "pen"}, "y": '{"tag":"pen"}'})
    with pytest.raises(AnabranchError, match="the answer has no column t; pass a whole row of the answers"):
        answer["t"]
    for event in (answer["x"], answer["y"]):
        with pytest.raises(AnabranchError, match="an event of the answer has no field t; pass a whole row"):
            field_of(event, "t")
    for wrong, message in ((3, "an answer is a row or a dict, not int"), ({"t": "soon"}, "is a time, not 'soon'")):
        with pytest.raises(AnabranchError, match=message):
            plain_answer(wrong)
