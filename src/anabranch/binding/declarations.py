"""Binds CREATE STREAM and CREATE RELATION: checks their clauses, columns and types."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.binding.connector_options import check_connector
from anabranch.binding.derived_streams import (
    check_inference,
    check_predictor,
    check_segmented,
    derivation_word,
    derived_model,
)
from anabranch.binding.durations import checked_duration
from anabranch.binding.file_options import check_format, check_options, extension_format
from anabranch.binding.reading import has_reading
from anabranch.binding.segment_laws import check_segment_law
from anabranch.binding.stream_columns import check_column_types
from anabranch.binding.type_rules import a_type
from anabranch.catalog import Column, Model, Relation, Stream, as_time
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.temporal import instant_of
from anabranch.language.types import TYPE_NAMES, Type

#: The models that allow each clause; other clauses are allowed for every model.
_CLAUSE_MODELS: dict[str, tuple[Model, ...]] = {
    "PROBABILITY": (Model.INDEPENDENT, Model.MARKOV),
    "ORDER": (Model.INTERVALS,),
    "HORIZON": (Model.INTERVALS,),
    "LENGTH": (Model.INTERVALS,),
    "ROLE": (Model.INTERVALS,),
    "WINDOW": (Model.INTERVALS,),
    "DURATION": (Model.INTERVALS,),
    "GAP": (Model.INTERVALS,),
    "ERROR": (Model.CERTAIN, Model.INDEPENDENT, Model.PREDICTED),
    "PERIOD": (Model.PREDICTED,),
}

#: The clauses that each model requires, and an example of each.
_REQUIRED: dict[Model, tuple[str, ...]] = {
    Model.CERTAIN: ("KEY", "TIME"),
    Model.INDEPENDENT: ("KEY", "TIME"),
    Model.MARKOV: ("KEY", "VALUE", "TIME"),
    Model.INTERVALS: ("KEY", "TIME", "ORDER"),
    Model.PREDICTED: ("KEY", "VALUE", "TIME", "ERROR", "PERIOD"),
}
_EXAMPLES = {
    "KEY": "KEY (person)", "VALUE": "VALUE (location)", "TIME": "TIME t", "ORDER": "ORDER seq",
    "ERROR": "ERROR 25", "PERIOD": "PERIOD 30 SECONDS",
}  # fmt: skip

_TIME_TYPES = (Type.INTEGER, Type.DOUBLE, Type.TIMESTAMP, Type.UNKNOWN)


class DeclarationBinder:
    """Binds CREATE STREAM and CREATE RELATION; always returns an entry, so that queries over it are checked too."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    # ------------------------------------------------------------ entries

    def relation(self, node: nodes.CreateRelation) -> Relation:
        """The catalog entry of a relation."""
        self.check_source(node.source)
        self.check_distinct((column.name, column.span) for column in node.columns)
        return Relation(node.name, tuple(self.column(column) for column in node.columns), node)

    def stream(self, node: nodes.CreateStream) -> Stream:
        """The catalog entry of a stream."""
        model = self.model(node)
        time = self.time(node.time) if node.time else Column("t")
        start = self.time(node.start) if node.start else None
        keys = tuple(self.column(column) for column in node.keys)
        values = tuple(self.column(column) for column in node.values)
        if node.time_format is not None or node.zone is not None:
            time = self.written_time(node, time)
            start = start and self.written_time(node, start)
        shape = _shape(node, (*keys, *values))
        probability = node.probability or ("probability" if isinstance(node.source, nodes.QuerySource) else "p")
        stream = Stream(node.name, keys, values, time, model, node, probability, start, shape)
        self.check_clauses(node, model)
        self.check_duration(stream)
        self.check_space(stream)
        check_column_types(stream, self.findings, declared=True)
        self.check_columns(stream)
        self.check_amounts(stream)
        self.check_clustered(node)
        self.check_source(node.source)
        if isinstance(node.source, nodes.PredictedSource):
            check_predictor(node, node.source, self.findings)
        if isinstance(node.source, nodes.SegmentedSource):
            check_segmented(node, node.source, self.findings)
        if isinstance(node.source, nodes.DerivedSource):
            self.check_no_reading(stream, node.source)
        return stream

    def check_no_reading(self, stream: Stream, source: nodes.DerivedSource) -> None:
        """Report clauses about the rows of a source in a stream that reads none."""
        node = stream.declaration
        for clause, stated in (("IDLE AFTER", node.idle_after), ("MAX AHEAD", node.max_ahead)):
            if stated is not None:
                message = (
                    f"{clause} is for streams that are read, but {shown(stream.name)} is {derivation_word(source)}"
                )
                self.findings.add("derived-reading", message, stated.span, f"write it for {source.stream}")
        if node.clustered:
            message = (
                f"CLUSTERED BY is for streams that are read, but {shown(stream.name)} is {derivation_word(source)}"
            )
            hint = f"write it for {source.stream}"
            self.findings.add("derived-reading", message, node.clause_span("CLUSTERED BY"), hint)
        if has_reading(stream):
            words = "AS, computed columns, FORMAT, ZONE, JOIN and WHERE are for streams that are read"
            message = f"{words}, but {shown(stream.name)} is {derivation_word(source)}"
            clause = next((name for name in ("WHERE", "FORMAT", "ZONE") if name in node.clause_spans), "KEY")
            self.findings.add("derived-reading", message, node.clause_span(clause), f"write them for {source.stream}")

    def time(self, node: nodes.ColumnName) -> Column:
        """A time column."""
        time = as_time(self.column(node))
        if time.type not in _TIME_TYPES:
            column = f"{shown(time.name)} is {a_type(time.type)}"
            message = f"a time must be an INTEGER, a DOUBLE, a TIMESTAMP or a DATE, but {column}"
            self.findings.add("time-type", message, node.span, "declare one of these types")
        return time

    def written_time(self, node: nodes.CreateStream, time: Column) -> Column:
        """A time column that FORMAT or ZONE convert to a TIMESTAMP."""
        if time.type not in (Type.UNKNOWN, Type.TIMESTAMP):
            clause = "FORMAT" if node.time_format is not None else "ZONE"
            message = f"{clause} is for TIMESTAMP times, but {shown(time.name)} is {a_type(time.type)}"
            self.findings.add("time-type", message, node.clause_span("TIME"), f"remove the type, or {clause}")
        return Column(time.name, Type.TIMESTAMP, declared=True)

    def column(self, node: nodes.ColumnName) -> Column:
        """A column, with its type if the workbook states one."""
        if node.type_name is None:
            return Column(node.name)
        kind = TYPE_NAMES.get(node.type_name.upper())
        if kind is None:
            names = dict.fromkeys(kind.value for kind in TYPE_NAMES.values())
            hint = f"the types are {listed(names, 'and')}"
            self.findings.unknown("type", node.type_name, TYPE_NAMES, node.span, hint)
            return Column(node.name)
        return Column(node.name, kind, declared=True)

    # ------------------------------------------------------------ models and clauses

    def model(self, node: nodes.CreateStream) -> Model:
        """The model of a derived stream, or of the MODEL clause; without either, that of answers, or CERTAIN."""
        stated = self.stated_model(node)
        clause, derived = derived_model(node.source)
        if derived is not None and stated is not None and stated is not derived:
            article = "an" if derived.value.startswith("I") else "a"
            message = f"{clause} produces {article} {derived.value} stream, not {stated.value}"
            hint = f"remove MODEL, or write MODEL {derived.value}"
            self.findings.add("wrong-model", message, node.clause_span("MODEL"), hint)
        if isinstance(node.source, nodes.QuerySource) and node.start is None:
            return stated or Model.INDEPENDENT
        return derived or stated or Model.CERTAIN

    def stated_model(self, node: nodes.CreateStream) -> Model | None:
        """The model of the MODEL clause."""
        if node.model is None:
            return None
        names = [model.value for model in Model]
        if node.model not in names:
            hint = f"the models are {listed(names, 'and')}"
            self.findings.unknown("model", node.model, names, node.clause_span("MODEL"), hint)
            return None
        return Model(node.model)

    def check_clauses(self, node: nodes.CreateStream, model: Model) -> None:
        """Report clauses that the model does not allow, and required clauses that are missing."""
        if node.model is not None and node.model != model.value:
            return  # The model itself is wrong, so its clauses cannot be checked.
        for clause, models in _CLAUSE_MODELS.items():
            if clause in node.clause_spans and model not in models:
                message = f"{clause} is not allowed for MODEL {model.value}"
                hint = f"write MODEL {listed(model.value for model in models)}, or remove {clause}"
                self.findings.add("clause-model", message, node.clause_span(clause), hint)
        if "USING" in node.clause_spans and not isinstance(node.source, nodes.PredictedSource):
            message = "USING needs PREDICTED FROM, which this stream does not have"
            self.findings.add("clause-model", message, node.clause_span("USING"), "add PREDICTED FROM, or remove USING")
        if "SILENCE" in node.clause_spans and not isinstance(node.source, nodes.SegmentedSource):
            message = "SILENCE needs INTERVALS FROM, which this stream does not have"
            hint = "add INTERVALS FROM, or remove SILENCE"
            self.findings.add("clause-model", message, node.clause_span("SILENCE"), hint)
        for clause in _REQUIRED[model]:
            if clause == "ORDER" and (node.start is not None or isinstance(node.source, nodes.SegmentedSource)):
                continue  # Segments with both ends, and runs, are numbered by time.
            if clause in ("KEY", "TIME") and isinstance(node.source, nodes.QuerySource):
                continue  # The query has keys and a time.
            if clause not in node.clause_spans:
                message = f"stream {node.name} has no {clause}, which MODEL {model.value} requires"
                self.findings.add("clause-missing", message, node.span, f"add {_EXAMPLES[clause]}")

    def check_duration(self, stream: Stream) -> None:
        """Report events with a duration in a stream that is derived, or neither CERTAIN nor INTERVALS."""
        node = stream.declaration
        if stream.start is None:
            return
        if isinstance(node.source, nodes.DerivedSource):
            article = "an" if isinstance(node.source, nodes.InferredSource) else "a"
            message = f"{article} {derivation_word(node.source)} stream has point events, but TIME has two columns"
            self.findings.add("event-duration", message, node.clause_span("TIME"), f"write TIME {stream.time.name}")
        elif stream.model is Model.INTERVALS:
            for clause in ("ROLE", "WINDOW"):
                if clause in node.clause_spans:
                    message = f"{clause} is about single events, but a row with two times is a segment"
                    hint = f"remove {clause}, or write one row per event"
                    self.findings.add("clause-model", message, node.clause_span(clause), hint)
        elif stream.model is not Model.CERTAIN:
            model = f"{shown(stream.name)} is {stream.model.value}"
            message = f"only a CERTAIN or INTERVALS stream can have events with a duration, but {model}"
            hint = f"write TIME {stream.time.name}, or remove MODEL"
            self.findings.add("event-duration", message, node.clause_span("TIME"), hint)

    def check_space(self, stream: Stream) -> None:
        """Report GEODESIC geometries, which are planar, and a projection of three coordinates."""
        node = stream.declaration
        if stream.shape is not None and node.geodesic:
            message = "GEODESIC is only allowed for points: geometries are planar"
            hint = "remove GEODESIC, or name two columns: SPACE (lon, lat) GEODESIC"
            self.findings.add("geodesic-shape", message, node.clause_span("SPACE"), hint)
        if node.origin is not None and not (abs(node.origin[0]) <= 180 and abs(node.origin[1]) <= 90):
            message = f"ORIGIN must be a longitude and a latitude in degrees, not {node.origin}"
            self.findings.add("out-of-range", message, node.clause_span("SPACE"), "write ORIGIN (8.2, 46.8)")
        if node.origin is not None and stream.has_height:
            message = "ORIGIN projects a longitude and a latitude, but SPACE has three columns"
            self.findings.add("projected-height", message, node.clause_span("SPACE"), "write SPACE (lon, lat)")

    # ------------------------------------------------------------ columns

    def check_columns(self, stream: Stream) -> None:
        """Report columns of the same name."""
        node = stream.declaration
        named = [(column.name, column.span) for column in (*node.keys, *node.values)]
        named += [(time.name, time.span) for time in (node.start, node.time) if time is not None]
        for clause, name in (("ORDER", node.order), ("LENGTH", node.length), ("ROLE", node.role)):
            if name is not None:
                named.append((name, node.clause_span(clause)))
        taken = self.check_distinct(named)
        horizon = [name for name in stream.horizon_columns if name is not None]
        for clause, names in (("WINDOW", node.window), ("SPACE", node.space), ("HORIZON", horizon)):
            self.check_distinct((name, node.clause_span(clause)) for name in names or ())
        for implied in stream.columns:
            if implied.name.lower() in taken and self.is_implied(stream, implied.name):
                message = f"MODEL {stream.model.value} already uses the column {shown(implied.name)}"
                hint = "rename this column"
                if implied.name.lower() == "p":
                    hint = "name the column of probabilities with PROBABILITY"
                self.findings.add("name-twice", message, taken[implied.name.lower()], hint)

    def is_implied(self, stream: Stream, name: str) -> bool:
        """Whether the model gives a column of this name a meaning."""
        implied = {column.name.lower() for column in stream.previous}
        if stream.model in (Model.INDEPENDENT, Model.MARKOV):
            implied.add(stream.probability.lower())
        if stream.model is Model.PREDICTED:
            implied |= {f"{column.name.lower()}_rate" for column in stream.values}
            implied |= {column.name.lower() for column in stream.optional_columns}
        return name.lower() in implied

    def check_distinct(self, named: Iterable[tuple[str, Span]]) -> dict[str, Span]:
        """Return the span of each name by lower-case name; report repeated names."""
        seen: dict[str, Span] = {}
        for name, span in named:
            if name.lower() in seen:
                first = seen[name.lower()]
                message = f"column {shown(name)} is named twice, first at {first.line}:{first.column}"
                self.findings.add("name-twice", message, span, "use distinct column names")
            seen.setdefault(name.lower(), span)
        return seen

    # ------------------------------------------------------------ amounts

    def check_amounts(self, stream: Stream) -> None:
        """Check durations, errors, distributions and horizons."""
        node = stream.declaration
        if node.period is not None:
            checked_duration(self.findings, "PERIOD", node.period, positive=True)
        if node.watermark is not None:
            checked_duration(self.findings, "WATERMARK", node.watermark, positive=False)
        self.check_clock(stream)
        if stream.location_error is not None:
            self.check_location_error(stream, stream.location_error)
        elif node.error:
            self.check_error(node)
        for clause, law in stream.segment_laws:
            check_segment_law(self.findings, clause, law)
        if node.horizon is not None:
            self.check_horizon(node, *node.horizon, stream.time.type)

    def check_clock(self, stream: Stream) -> None:
        """Check IDLE AFTER, which cannot be shorter than the WATERMARK, and MAX AHEAD, above 0 for numeric times."""
        node = stream.declaration
        if node.idle_after is not None:
            idle = checked_duration(self.findings, "IDLE AFTER", node.idle_after, positive=False)
            if idle < stream.lateness:
                message = "IDLE AFTER is shorter than WATERMARK, so rows within the watermark would be late"
                self.findings.add("out-of-range", message, node.idle_after.span, "write a longer IDLE AFTER")
        if node.max_ahead is not None:
            is_numeric = stream.time.type in (Type.INTEGER, Type.DOUBLE)
            checked_duration(self.findings, "MAX AHEAD", node.max_ahead, positive=is_numeric)

    def check_clustered(self, node: nodes.CreateStream) -> None:
        """Report columns of CLUSTERED BY that are not key columns."""
        keys = {column.name.lower(): column.name for column in node.keys}
        for name in node.clustered:
            if name.lower() not in keys:
                hint = f"the keys are {listed(keys.values(), 'and')}"
                self.findings.unknown("column", name, keys.values(), node.clause_span("CLUSTERED BY"), hint, "KEY")

    def check_error(self, node: nodes.CreateStream) -> None:
        """Report errors below 0, and value columns without an error or with two."""
        values = {column.name.lower(): column.name for column in node.values}
        seen: set[str] = set()
        for bound in node.error:
            self.check_error_amount(node, bound)
            if bound.column is None:
                return
            if bound.column.lower() not in values:
                hint = f"the values are {listed(values.values(), 'and')}"
                self.findings.unknown("column", bound.column, values.values(), bound.span, hint, "VALUE")
            elif bound.column.lower() in seen:
                message = f"ERROR names {shown(bound.column)} twice"
                self.findings.add("name-twice", message, bound.span, "remove one of them")
            seen.add(bound.column.lower())
        for name, label in values.items():
            if name not in seen:
                message = f"ERROR has no value for {shown(label)}"
                self.findings.add("clause-missing", message, node.clause_span("ERROR"), f"add {label} = 25")

    def check_location_error(self, stream: Stream, bound: nodes.ErrorBound) -> None:
        """Report the ERROR of a stream without points, and any ERROR that is not a radius around them."""
        node = stream.declaration
        if len(node.space or ()) < 2:
            message = f"ERROR is that of a location or of a prediction, and {shown(stream.name)} has none"
            self.findings.add(
                "clause-model", message, node.clause_span("ERROR"), "add SPACE (x, y), or MODEL PREDICTED"
            )
        elif bound.column is not None or bound.normal is not None:
            message = "the ERROR of a location is the greatest distance to the true one, in any direction"
            self.findings.add("error-column", message, bound.span, "write ERROR 10, or ERROR and a column of VALUE")
        elif bound.source is not None and bound.source.lower() not in (value.name.lower() for value in node.values):
            values = [value.name for value in node.values]
            hint = f"the values are {listed(values, 'and')}" if values else f"add VALUE ({bound.source})"
            self.findings.unknown("column", bound.source, values, bound.span, hint, "VALUE")
        else:
            self.check_error_amount(node, bound)

    def check_error_amount(self, node: nodes.CreateStream, bound: nodes.ErrorBound) -> None:
        """Report an error below 0, an error column with PREDICTED FROM, or a standard deviation of 0 or less."""
        if bound.amount is not None and bound.amount < 0:
            message = f"ERROR must be 0 or more, not {bound.amount}"
            self.findings.add("out-of-range", message, bound.span, "write how far the truth can be away")
        if bound.source is not None and isinstance(node.source, nodes.PredictedSource):
            message = f"with PREDICTED FROM, ERROR must be a number, not the column {shown(bound.source)}"
            self.findings.add("error-column", message, bound.span, "write the update threshold, such as 25")
        if bound.normal is not None and not bound.normal > 0:
            message = f"NORMAL takes a standard deviation above 0, not {bound.normal}"
            self.findings.add("out-of-range", message, bound.span, "remove NORMAL if the error is uniform")

    def check_horizon(self, node: nodes.CreateStream, low: nodes.Expr, high: nodes.Expr, kind: Type) -> None:
        """Report ends of HORIZON that are no times, have the wrong type, or are in the wrong order."""
        constants = [end for end in (low, high) if not isinstance(end, nodes.Variable)]
        ends = [instant_of(end) for end in constants]
        for end, written in zip(ends, constants, strict=True):
            if end is None:
                hint = "write a number, a string such as '2026-01-31 12:00:00', or a column"
                self.findings.add("not-a-time", "this is not a valid time", written.span, hint)
                return
        is_text = {isinstance(end, nodes.Literal) and isinstance(end.value, str) for end in constants}
        span = node.clause_span("HORIZON")
        if len(is_text) > 1 or (kind is not Type.UNKNOWN and is_text - {kind is Type.TIMESTAMP}):
            message = "HORIZON must have the type of the time column"
            self.findings.add("type-mismatch", message, span, "write strings for a TIMESTAMP, else numbers")
        elif kind is Type.INTEGER and any(end is not None and end % 1 for end in ends):
            message = "HORIZON must have the type of the time column"
            hint = f"write whole numbers, or declare TIME {node.time.name if node.time else 't'} DOUBLE"
            self.findings.add("type-mismatch", message, span, hint)
        elif len(ends) == 2 and ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]:
            message = "HORIZON [lo, hi] needs lo below hi"
            self.findings.add("out-of-range", message, span, "write the earlier time first")

    # ------------------------------------------------------------ sources

    def check_source(self, source: nodes.Source | None) -> None:
        """Check the clauses of a source, without reading it."""
        if isinstance(source, nodes.FileSource):
            self.check_path(source.path, source.span)
            self.check_options_once(source.options)
            check_format(source, self.findings)
            check_options(source.options, source.format or extension_format(source.path), self.findings)
        elif isinstance(source, nodes.ConnectorSource):
            self.check_options_once(source.options)
            check_connector(source, self.findings)
        elif isinstance(source, nodes.InferredSource):
            self.check_path(source.path, source.span)
            check_inference(source, self.findings)

    def check_options_once(self, options: Iterable[nodes.Option]) -> None:
        """Report an option that is given twice."""
        seen: set[str] = set()
        for option in options:
            if option.name.lower() in seen:
                message = f"option {shown(option.name)} is given twice"
                self.findings.add("name-twice", message, option.span, "remove one of them")
            seen.add(option.name.lower())

    def check_path(self, path: str, span: Span) -> None:
        """Report an empty path."""
        if not path.strip():
            self.findings.add("empty-path", "the path is empty", span, "write the path of a file or folder")


def _shape(node: nodes.CreateStream, columns: tuple[Column, ...]) -> Column | None:
    """The geometry column that SPACE names; None if SPACE names coordinates or is absent."""
    if node.space is None or len(node.space) != 1:
        return None
    name = node.space[0]
    return next((column for column in columns if column.name.lower() == name.lower()), Column(name))
