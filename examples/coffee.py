"""Ask a workbook's query from Python, and go on with pandas."""

# ruff: noqa: T201 - an example prints

from pathlib import Path

import anabranch as ab

session = ab.Session()
session.execute_file(str(Path(__file__).with_name("coffee.abq")))

# What kind of query is it, and how will it be run? This needs no data.
print(session.explain("coffee"))

# A Spark DataFrame: filter, join or write it like any other. Here it is small enough for pandas.
answers = session.run("coffee").orderBy("t", "p").toPandas()
print()
print(answers[["t", "p", "probability"]].to_string(index=False))

print("\nmost probable instant of each:")
best = answers.loc[answers.groupby("p")["probability"].idxmax()]
print(best.set_index("p")["t"].to_string())
