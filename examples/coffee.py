"""Run a query of a workbook from Python, and continue with pandas."""

# ruff: noqa: T201 - an example prints

from pathlib import Path

import anabranch as ab

session = ab.Session()
session.execute_file(str(Path(__file__).with_name("coffee.abq")))

# The plan of the query. This needs no data.
print(session.explain("coffee"))

# The result is a Spark DataFrame, which can be filtered, joined or written. It is small enough for pandas.
answers = session.run("coffee").orderBy("t", "p").toPandas()
print()
print(answers[["t", "p", "probability"]].to_string(index=False))

print("\nmost probable instant of each:")
best = answers.loc[answers.groupby("p")["probability"].idxmax()]
print(best.set_index("p")["t"].to_string())
