"""`anabranch why` and `why-not` on Spark: the explanations are those of the same rows in this process."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.explanation.local import case_of
from tests.explanation.test_kinds import CARS, COLLISION, JAMS, SHOP, car, event, jams, reads

import anabranch as ab
from anabranch.explanation.explain import explain

OFFICE = """
CREATE RELATION hall (location STRING);
CREATE STREAM at KEY (person STRING) VALUE (location STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE QUERY coffee AS PATTERN at(p, 'office') THEN at(p, l)+<p | hall(l)> THEN at(p, 'coffee') GROUP BY p;
CREATE QUERY tea AS PATTERN at(p, 'office') THEN at(p, 'tea') GROUP BY p;
"""
HALLS = [("hall",), ("lobby",)]


def seen(person: str, location: str, t: int, p: float) -> dict[str, Any]:
    return {"person": person, "location": location, "t": t, "p": p}


ROWS: dict[str, list[dict[str, Any]]] = {
    "at": [
        seen("joe", "office", 1, 0.9), seen("joe", "hall", 2, 0.7), seen("joe", "coffee", 3, 0.5),
        seen("sue", "office", 1, 0.2), seen("sue", "coffee", 2, 0.5), seen("sue", "coffee", 3, 1.7),
    ],
    "reads": [*reads(("shelf", 10), ("exit", 40), ("shelf", 45)), *reads(("shelf", 12), ("till", 20), tag="b")],
    "cars": [car(1, 0.0, 0.0, 0.0, 1.0), car(2, 0.0, 30.0, 5.0, -1.0)],
    "jam": [*jams(1, 10, None, 50, 60), *jams(2, 30, 45)],
    "e": [
        event(1, "A", 0, 0.0, 0.9), event(1, "B", 0, 9.0, 0.1), event(2, "B", 4, 0.9, 0.5), event(3, "C", 2, 5.0, 0.2),
    ],
}  # fmt: skip
#: The workbook and the stream of each query.
QUERIES = {
    "coffee": (OFFICE, "at"), "shop": (SHOP, "reads"), "near": (CARS, "cars"), "jams": (JAMS, "jam"),
    "hit": (COLLISION, "e"),
}  # fmt: skip


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    """A workbook with a query of each kind, and its files."""
    for name, rows in ROWS.items():
        with open(tmp_path / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    (tmp_path / "hall.csv").write_text("location\nhall\nlobby\n")
    text = "".join(dict.fromkeys(part for part, _ in QUERIES.values()))
    statements = [statement.strip() for statement in text.split(";") if statement.strip()]
    with_files = []
    for statement in statements:
        words = statement.split()
        is_input = words[1] in ("STREAM", "RELATION")
        with_files.append(f"{statement} FROM '{words[2]}.csv';" if is_input else f"{statement};")
    path = tmp_path / "all.abq"
    path.write_text("\n".join(with_files))
    return path


def test_answers_of_every_kind_are_explained(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command
) -> None:
    answers = tmp_path / "answers"
    names = [option for query in QUERIES for option in ("--query", query)]
    # A probability above 1 is quarantined.
    assert anabranch("run", workbook, "--output", answers, *names).status == 0
    for query, (text, stream) in QUERIES.items():
        relations = {"hall": HALLS} if stream == "at" else {}
        case = case_of(text, query, {stream: ROWS[stream]}, relations)
        best = max(case.answers(), key=lambda row: row["probability"])
        # The rows that the answer depends on: of its key, and of its time.
        rows = [row for row in ROWS[stream] if stream != "at" or row["person"] == best["p"]]
        rows = [row for row in rows if stream != "reads" or (row["tag"] == "a" and row["t"] <= best["t"])]
        done = anabranch("why", answers / query)
        assert done.status == 0, done.err
        assert done.out.strip() == str(explain(case_of(text, query, {stream: rows}, relations), best))


def test_a_row_of_a_file_is_explained_and_drawn(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command
) -> None:
    session = ab.Session(spark)
    session.execute_file(str(workbook))
    answer = session.run("shop").first()
    explanation = session.why("shop", answer)
    assert explanation.probability == pytest.approx(answer["probability"])
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(answer.asDict(recursive=True)) + "\n")
    options = ("--workbook", workbook, "--query", "shop", "--row", "1", "--plot", tmp_path / "why.json")
    done = anabranch("why", file, *options)
    assert (done.status, done.out.strip()) == (0, str(explanation))
    assert (tmp_path / "why.json").exists()
    assert anabranch("why", file).err.startswith("anabranch: ")
    assert anabranch("why", file, "--workbook", workbook, "--query", "shop", "--row", "2").status == 2


def test_missing_answers_are_explained(spark: SparkSession, workbook: Path, anabranch: Command) -> None:
    done = anabranch("why-not", workbook, "--query", "tea", "--key", "person=sue")
    assert done.status == 0, done.err
    assert done.out.splitlines() == [
        "tea: person = 'sue'",
        "  - the goals before goal 2 are satisfied, first at 1; the highest probability is 0.200",
        "  - no event matches goal 2, at(p, 'tea')",
        "  - no row of at has location = 'tea'; seen: 'coffee', 'office', 'hall'",
        "  - quarantined, 1 row of at: p is outside [0, 1], such as "
        '{"person": "sue", "location": "coffee", "t": 3, "p": 1.7}',
        "  - the watermark of a stream is at 3 after all rows; it is past these keys",
    ]
    assert anabranch("why-not", workbook, "--query", "tea", "--key", "colour=red").status == 1
    assert anabranch("why-not", workbook, "--query", "tea", "--key", "person").status == 2
    for query, key in (("shop", "tag=b"), ("near", "car=3"), ("jams", "sector=3"), ("hit", "id=9")):
        assert anabranch("why-not", workbook, "--query", query, "--key", key).status == 0
