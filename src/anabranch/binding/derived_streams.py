"""Streams derived from the rows of another stream: INFERRED FROM and PREDICTED FROM."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.binding.conditions import ConditionBinder
from anabranch.binding.durations import checked_duration
from anabranch.binding.scopes import RowScope
from anabranch.binding.type_rules import a_type
from anabranch.binding.typed import Typed
from anabranch.binding.words import count_of
from anabranch.catalog import Catalog, Column, Model, Query, Relation, Stream
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.temporal import amount_of
from anabranch.language.types import Type
from anabranch.language.unparse import unparse

#: The model of an inferred stream, by METHOD.
METHOD_MODELS = {
    "FILTER": Model.INDEPENDENT,
    "PARTICLE": Model.INDEPENDENT,
    "SMOOTH": Model.MARKOV,
    "MARGINALS": Model.INDEPENDENT,
    "VITERBI": Model.CERTAIN,
    "MLE": Model.CERTAIN,
    "JOINT": Model.MARKOV,
    "LAG": Model.MARKOV,
}

#: The methods that go back from the last reading, and so need all readings.
WHOLE_ARCHIVE = ("SMOOTH", "MARGINALS", "VITERBI")

#: The methods whose rows are weights of pairs of successive values, not probabilities of moves: the answer at an
#: instant is given the readings up to it, or a lag later, and not given all readings.
WEIGHTED = ("JOINT", "LAG")

#: The kinds of inference model (USING).
FAMILIES = ("HMM",)

#: The prediction methods (USING), with the names of their arguments.
PREDICTORS = {"LINEAR": (), "KALMAN": ("acceleration", "noise")}


def is_weighted(stream: Stream) -> bool:
    """Whether the rows of a MARKOV stream are weights."""
    return isinstance(stream.source, nodes.InferredSource) and stream.source.method in WEIGHTED


def derivation_word(source: nodes.DerivedSource) -> str:
    """`inferred`, `predicted` or `segmented`, for messages."""
    if isinstance(source, nodes.SegmentedSource):
        return "segmented"
    return "inferred" if isinstance(source, nodes.InferredSource) else "predicted"


def derived_model(source: nodes.Source | None) -> tuple[str, Model | None]:
    """The clause that determines the model of a derived stream, and that model; None for other sources."""
    if isinstance(source, nodes.InferredSource):
        return f"METHOD {source.method}", METHOD_MODELS.get(source.method)
    if isinstance(source, nodes.PredictedSource):
        return "PREDICTED FROM", Model.PREDICTED
    if isinstance(source, nodes.SegmentedSource):
        return "INTERVALS FROM", Model.INTERVALS
    return "", None


# ---------------------------------------------------------------- the clauses of the derived stream


def check_inference(source: nodes.InferredSource, findings: Findings) -> None:
    """Report an unknown model or METHOD, a wrong argument, or a wrong STEP, PRUNE or EXPIRE."""
    if source.family not in FAMILIES:
        hint = f"the inference models are {listed(FAMILIES, 'and')}"
        findings.unknown("inference model", source.family, FAMILIES, source.span, hint)
    if source.method not in METHOD_MODELS:
        hint = f"the methods are {listed(METHOD_MODELS, 'and')}"
        findings.unknown("method", source.method, METHOD_MODELS, source.span, hint)
    else:
        _check_argument(source, findings)
    if source.step is not None:
        checked_duration(findings, "STEP", source.step, positive=True)
    if source.expire is not None:
        checked_duration(findings, "EXPIRE", source.expire, positive=True)
    if source.prune is not None and not 0 <= source.prune < 1:
        message = f"PRUNE must be 0 or more and below 1, not {source.prune}"
        findings.add("out-of-range", message, source.span, "write PRUNE 1e-6")
    elif source.prune is not None and source.method in WEIGHTED:
        message = f"PRUNE cannot be used with METHOD {source.method}, whose rows are weights"
        findings.add("clause-method", message, source.span, "remove PRUNE")


def _check_argument(source: nodes.InferredSource, findings: Findings) -> None:
    """PARTICLE takes a number, LAG a duration of a step or more, and the other methods nothing."""
    method, argument = source.method, source.argument
    if method == "PARTICLE":
        if not isinstance(argument, int) or argument < 1:
            message = "METHOD PARTICLE takes the number of particles"
            findings.add("arity", message, source.span, "write METHOD PARTICLE(1000)")
    elif method == "LAG":
        if not isinstance(argument, nodes.Duration):
            message = "METHOD LAG takes a duration: how much later the last reading is that counts"
            findings.add("arity", message, source.span, "write METHOD LAG 5 SECONDS")
        elif amount_of(argument) < (1 if source.step is None else amount_of(source.step)):
            message = "the duration of METHOD LAG is shorter than a STEP"
            findings.add("out-of-range", message, argument.span, "write a longer one, or METHOD JOINT")
    elif argument is not None:
        message = f"METHOD {method} takes no argument"
        findings.add("arity", message, source.span, f"write METHOD {method}")


def check_predictor(node: nodes.CreateStream, source: nodes.PredictedSource, findings: Findings) -> None:
    """Report an unknown prediction method or wrong arguments; a method takes all its arguments or none."""
    method, arguments, span = source.method, source.arguments, node.clause_span("USING")
    if method not in PREDICTORS:
        findings.unknown("method", method, PREDICTORS, span, f"the methods are {listed(PREDICTORS, 'and')}")
        return
    names = PREDICTORS[method]
    if arguments and len(arguments) != len(names):
        takes = f"{count_of(len(names), 'argument')} ({', '.join(names)}) or none" if names else "no argument"
        message = f"USING {method} takes {takes}, but this has {len(arguments)}"
        findings.add("arity", message, span, f"write USING {method}")
    for name, number in zip(names, arguments, strict=False):
        if not number > 0:
            message = f"the {name} of {method} must be above 0, not {number}"
            findings.add("out-of-range", message, span, "write a number above 0")


# ---------------------------------------------------------------- the input stream


def check_derived(entry: Stream, source: nodes.DerivedSource, catalog: Catalog, findings: Findings) -> None:
    """Report an input stream that does not exist or cannot be used.

    The input of a derived stream must be a CERTAIN stream that is not derived itself. Positions must be point events;
    readings may have a duration.
    """
    input_stream = catalog.stream(source.stream)
    if input_stream is None:
        report_missing("stream", source.stream, catalog, source.span, findings)
        return
    if input_stream is entry:
        return  # Reported as a cycle.
    derived, name = derivation_word(source), shown(input_stream.name)
    if isinstance(input_stream.source, nodes.DerivedSource):
        is_derived = f"which is itself {derivation_word(input_stream.source)}"
        message = f"{shown(entry.name)} cannot be {derived} from {name}, {is_derived}"
        findings.add("derived-twice", message, source.span, "use a stream that is not derived")
    elif input_stream.model is not Model.CERTAIN:
        message = f"streams can only be {derived} from CERTAIN streams, but {name} is {input_stream.model.value}"
        findings.add("wrong-model", message, source.span, f"remove MODEL from {name}")
    elif input_stream.start is not None and not isinstance(source, nodes.InferredSource):
        duration = f"has events with a duration, TIME ({input_stream.start.name}, {input_stream.time.name})"
        message = f"streams can only be {derived} from point events, but {name} {duration}"
        findings.add("event-duration", message, source.span, f"declare {name} with TIME {input_stream.time.name}")
    elif isinstance(source, nodes.InferredSource):
        _check_readings(entry, source, input_stream, findings)
        check_step(source, input_stream, findings)
    elif isinstance(source, nodes.SegmentedSource):
        _check_runs(entry, input_stream, source, catalog, findings)
    else:
        _check_positions(entry, input_stream, findings)


def report_missing(kind: str, name: str, catalog: Catalog, span: Span, findings: Findings) -> None:
    """Report a source that names no query or stream (`kind`) of the catalog."""
    entry = catalog.get(name)
    classes = {"query": Query, "stream": Stream}
    if entry is None:
        findings.unknown(kind, name, catalog.names((classes[kind],)), span, f"declare it with CREATE {kind.upper()}")
    else:
        message = f"{shown(name)} is a {type(entry).__name__.lower()}, but a {kind} is expected here"
        findings.add(f"not-a-{kind}", message, span)


def _check_readings(entry: Stream, source: nodes.InferredSource, readings: Stream, findings: Findings) -> None:
    """Readings have as many keys as the inferred stream, a reader, the class of BY, and numbers that they measure."""
    if len(entry.values) != 1:
        message = f"inference takes one VALUE column, but {shown(entry.name)} has {len(entry.values)}"
        findings.add("value-columns", message, entry.declaration.span, "name only the hidden state in VALUE")
    if not readings.values:
        message = f"inference needs the reader as a VALUE column, but {shown(readings.name)} has none"
        findings.add("value-columns", message, readings.declaration.span, "name the reader in VALUE")
    by = "" if source.by is None else source.by.lower()
    _check_class(source, readings, findings)
    for column in readings.values[1:]:
        if column.declared and not column.type.is_numeric and column.name.lower() != by:
            message = f"what a reading measures must be a number, but {shown(column.name)} is {a_type(column.type)}"
            findings.add("value-type", message, readings.declaration.span, "name the reader first, then numbers")
    if len(entry.keys) != len(readings.keys):
        counts = f"{count_of(len(entry.keys), 'KEY column')}, but {shown(readings.name)} has {len(readings.keys)}"
        message = f"{shown(entry.name)} has {counts}"
        findings.add("key-columns", message, entry.declaration.span, "declare the same keys, in the same order")


def _check_class(source: nodes.InferredSource, readings: Stream, findings: Findings) -> None:
    """Report BY with a column that is not the class of a key: a KEY column, or a VALUE column besides the reader."""
    if source.by is None:
        return
    available = _names((*readings.keys, *readings.values[1:]))
    if readings.values and readings.values[0].name.lower() == source.by.lower():
        message = f"{shown(source.by)} is the reader, which differs from reading to reading; a key has one class"
        findings.add("class-column", message, source.span, "name a KEY column, or another VALUE column, in BY")
    elif source.by.lower() not in (name.lower() for name in available):
        where = f"KEY and VALUE of {readings.name}"
        findings.unknown("column", source.by, available, source.span, f"it has {listed(available, 'and')}", where)


def check_step(source: nodes.InferredSource, readings: Stream, findings: Findings) -> None:
    """Report a STEP with a fraction if times are integers."""
    if source.step is not None and readings.time.type is Type.INTEGER and amount_of(source.step) % 1:
        message = f"STEP {float(amount_of(source.step)):g} is no integer, and the times of {readings.name} are integers"
        findings.add("step", message, source.span, "write an integer")


def _check_positions(entry: Stream, positions: Stream, findings: Findings) -> None:
    """Positions have the keys, the values and the time of the predicted stream, under the same names."""
    clauses = (
        ("KEY", _names(entry.keys), _names(positions.keys), f"KEY of {positions.name}"),
        ("VALUE", _names(entry.values), _names(positions.quantities), f"VALUE of {positions.name}"),
        ("TIME", [entry.time.name], [positions.time.name], f"TIME of {positions.name}"),
        # The rows of a predicted stream have its values, and no other columns that could be coordinates.
        ("SPACE", entry.declaration.space or (), _names(entry.values), f"VALUE of {entry.name}"),
    )
    for clause, names, available, where in clauses:
        for name in names:
            if name.lower() not in (column.lower() for column in available):
                hint = f"it has {listed(available, 'and')}" if available else "it has none"
                findings.unknown("column", name, available, entry.declaration.clause_span(clause), hint, where)
    _check_projection(entry, positions, findings)
    keys = {column.name.lower() for column in entry.keys}
    missing = [column.name for column in positions.keys if column.name.lower() not in keys]
    if len(entry.keys) < len(positions.keys):
        columns = f"KEY column{'s' if len(missing) > 1 else ''} {listed(missing, 'and')}"
        message = f"{shown(entry.name)} lacks the {columns} of {shown(positions.name)}"
        findings.add("key-columns", message, entry.declaration.clause_span("KEY"), "declare the same keys")
    values = {column.name.lower() for column in entry.values}
    for column in positions.quantities:
        if column.name.lower() in values and column.declared and not column.type.is_numeric:
            column_type = f"{shown(column.name)} of {positions.name} is {a_type(column.type)}"
            message = f"a predicted value must be a number, but {column_type}"
            findings.add("value-type", message, entry.declaration.clause_span("VALUE"), "use a numeric column")


def _check_runs(
    entry: Stream, rows: Stream, source: nodes.SegmentedSource, catalog: Catalog, findings: Findings
) -> None:
    """Report keys that are not those of the rows, and a condition that cannot be evaluated on a row."""
    keys, wanted = _names(entry.keys), _names(rows.keys)
    if [name.lower() for name in keys] != [name.lower() for name in wanted]:
        message = f"{shown(entry.name)} must have the keys of {shown(rows.name)}"
        hint = f"write KEY ({', '.join(wanted)})"
        findings.add("key-columns", message, entry.declaration.clause_span("KEY"), hint)
    run_condition(rows, source, catalog, findings)


def run_condition(rows: Stream, source: nodes.SegmentedSource, catalog: Catalog, findings: Findings) -> Typed | None:
    """The condition after WHILE, on the columns of the stream that is read."""
    return _RunConditionBinder(catalog, findings, RowScope(rows, findings)).condition(source.condition)


class _RunConditionBinder(ConditionBinder):
    """Binds a condition that looks up no relation: only the stream that is read has relations."""

    def member(self, relation: Relation, node: nodes.Call) -> Typed | None:
        """Report a relation."""
        message = f"WHILE cannot look up {shown(relation.name)}"
        hint = f"compute a column of the stream that is read: VALUE (known = {unparse(node)})"
        self.findings.add("while-relation", message, node.span, hint)
        return None


def check_segmented(node: nodes.CreateStream, source: nodes.SegmentedSource, findings: Findings) -> None:
    """Report durations below 0, and clauses about the columns of rows, which this stream does not have."""
    for clause, duration in (("FOR AT LEAST", source.at_least), ("SILENCE", source.silence)):
        if duration is not None:
            checked_duration(findings, clause, duration, positive=True)
    for clause in ("ORDER", "LENGTH", "ROLE", "WINDOW", "VALUE"):
        if clause in node.clause_spans:
            message = f"{clause} names a column of rows, but the segments of {shown(node.name)} have none"
            findings.add("clause-model", message, node.clause_span(clause), f"remove {clause}")
    if any(isinstance(end, nodes.Variable) for end in node.horizon or ()):
        message = f"HORIZON names a column of rows, but the segments of {shown(node.name)} have none"
        findings.add("clause-model", message, node.clause_span("HORIZON"), "write two times")
    for clause, law in (("DURATION", node.duration), ("GAP", node.gap)):
        if law is not None and law.column is not None:
            message = f"{clause} names a column of rows, but the segments of {shown(node.name)} have none"
            findings.add("clause-model", message, node.clause_span(clause), "write a mean")


def projected_space(entry: Stream, positions: Stream) -> tuple[tuple[str, ...], tuple[float, float] | None] | None:
    """The longitude and the latitude that a predicted stream has as values, and the ORIGIN of their projection.

    None if neither stream is GEODESIC, or the predicted stream has no coordinate as a value.
    """
    values = {column.name.lower() for column in entry.values}
    for declaration in (entry.declaration, positions.declaration):
        space = declaration.space or ()
        # One column is a geometry, which is refused elsewhere if it is GEODESIC.
        if declaration.geodesic and len(space) > 1 and values & {name.lower() for name in space}:
            origin = entry.declaration.origin or positions.declaration.origin
            return space[:2], origin
    return None


def _check_projection(entry: Stream, positions: Stream, findings: Findings) -> None:
    """Degrees are no metres: predicted coordinates on the globe need the origin of a projection."""
    projected = projected_space(entry, positions)
    if projected is None:
        return
    columns, origin = projected
    values = {column.name.lower() for column in entry.values}
    missing = [name for name in columns if name.lower() not in values]
    if missing:
        message = f"{shown(entry.name)} predicts one coordinate of a GEODESIC position, but not {shown(missing[0])}"
        findings.add("geodesic-origin", message, entry.declaration.clause_span("VALUE"), f"add {missing[0]} to VALUE")
    elif origin is None:
        message = f"{columns[0]} and {columns[1]} are degrees, but ERROR and constraints are in metres"
        hint = "write SPACE (lon, lat) GEODESIC ORIGIN (8.2, 46.8), with a point near the data"
        findings.add("geodesic-origin", message, entry.declaration.span, hint)


def _names(columns: Iterable[Column]) -> list[str]:
    return [column.name for column in columns]
