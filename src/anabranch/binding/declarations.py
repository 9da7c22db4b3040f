"""CREATE STREAM and CREATE RELATION: what each model asks of its clauses, and columns with their types."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.binding.conditions import a_type
from anabranch.binding.queries import check_column_types, checked_duration
from anabranch.binding.words import count_of
from anabranch.catalog import Column, Model, Relation, Stream
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.temporal import instant_of
from anabranch.language.types import TYPE_NAMES, Type

#: The clauses that only some models read.
_CLAUSE_MODELS: dict[str, tuple[Model, ...]] = {
    "PROBABILITY": (Model.INDEPENDENT, Model.MARKOV),
    "ORDER": (Model.INTERVALS,),
    "HORIZON": (Model.INTERVALS,),
    "LENGTH": (Model.INTERVALS,),
    "ROLE": (Model.INTERVALS,),
    "WINDOW": (Model.INTERVALS,),
    "ERROR": (Model.PREDICTED,),
    "PERIOD": (Model.PREDICTED,),
}

#: The clauses that a model cannot do without, each with an example.
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

#: The model of an inferred stream, by METHOD.
METHOD_MODELS = {
    "FILTER": Model.INDEPENDENT,
    "PARTICLE": Model.INDEPENDENT,
    "SMOOTH": Model.MARKOV,
    "MARGINALS": Model.INDEPENDENT,
    "VITERBI": Model.CERTAIN,
    "MLE": Model.CERTAIN,
}
#: The ways of predicting from positions (USING), with the arguments that each may take.
PREDICTORS = {"LINEAR": (), "KALMAN": ("acceleration", "noise")}

#: The methods that look back from the end of the readings.
WHOLE_ARCHIVE = ("SMOOTH", "MARGINALS", "VITERBI")
FAMILIES = ("HMM",)

_TIME_TYPES = (Type.INTEGER, Type.DOUBLE, Type.TIMESTAMP, Type.UNKNOWN)


class DeclarationBinder:
    """Binds CREATE STREAM and CREATE RELATION; always gives an entry, so that queries over it are checked too."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    # ------------------------------------------------------------ entries

    def relation(self, node: nodes.CreateRelation) -> Relation:
        """The catalogue entry of a relation."""
        self.check_source(node.source)
        self.check_distinct((column.name, column.span) for column in node.columns)
        return Relation(node.name, tuple(self.column(column) for column in node.columns), node)

    def stream(self, node: nodes.CreateStream) -> Stream:
        """The catalogue entry of a stream."""
        model = self.model(node)
        time = self.time(node.time) if node.time else Column("t")
        start = self.time(node.start) if node.start else None
        keys = tuple(self.column(column) for column in node.keys)
        values = tuple(self.column(column) for column in node.values)
        shape = _shape(node, (*keys, *values))
        stream = Stream(node.name, keys, values, time, model, node, node.probability or "p", start, shape)
        self.check_clauses(node, model)
        self.check_lasting(stream)
        self.check_space(stream)
        check_column_types(stream, self.findings, declared=True)
        self.check_columns(stream)
        self.check_amounts(stream)
        self.check_source(node.source)
        if isinstance(node.source, nodes.PredictedSource):
            self.check_predictor(node, node.source)
        return stream

    def time(self, node: nodes.ColumnName) -> Column:
        """A column of times."""
        time = self.column(node)
        if time.type not in _TIME_TYPES:
            message = f"a time is an INTEGER, a DOUBLE or a TIMESTAMP, and {shown(time.name)} is {a_type(time.type)}"
            self.findings.add("time-type", message, node.span, "state one of these types")
        return time

    def column(self, node: nodes.ColumnName) -> Column:
        """A column with its type, where the workbook states one."""
        if node.type_name is None:
            return Column(node.name)
        kind = TYPE_NAMES.get(node.type_name.upper())
        if kind is None:
            names = dict.fromkeys(kind.value for kind in TYPE_NAMES.values())
            self.findings.unknown(
                "type", node.type_name, TYPE_NAMES, node.span, f"the types are {listed(names, 'and')}"
            )
            return Column(node.name)
        return Column(node.name, kind, declared=True)

    # ------------------------------------------------------------ models and clauses

    def model(self, node: nodes.CreateStream) -> Model:
        """The model that is stated, or that the way a stream is made gives; CERTAIN otherwise."""
        stated = self.stated_model(node)
        how, given = _given_model(node.source)
        if given is not None and stated is not None and stated is not given:
            message = f"{how} gives a stream of model {given.value}, not {stated.value}"
            self.findings.add(
                "wrong-model", message, node.place("MODEL"), f"leave out MODEL, or write MODEL {given.value}"
            )
        return given or stated or Model.CERTAIN

    def stated_model(self, node: nodes.CreateStream) -> Model | None:
        """The model of the MODEL clause."""
        if node.model is None:
            return None
        names = [model.value for model in Model]
        if node.model not in names:
            hint = f"the models are {listed(names, 'and')}"
            self.findings.unknown("model", node.model, names, node.place("MODEL"), hint)
            return None
        return Model(node.model)

    def check_clauses(self, node: nodes.CreateStream, model: Model) -> None:
        """Every clause must be one that the model reads, and those it needs must be there."""
        if node.model is not None and node.model != model.value:
            return  # The model itself is wrong, so nothing can be said about its clauses.
        for clause, models in _CLAUSE_MODELS.items():
            if clause in node.places and model not in models:
                message = f"{clause} has no meaning for a stream of model {model.value}"
                hint = f"write MODEL {listed(model.value for model in models)}, or leave it out"
                self.findings.add("clause-model", message, node.place(clause), hint)
        if "USING" in node.places and not isinstance(node.source, nodes.PredictedSource):
            message = "USING says how values are predicted from positions, and this stream is not PREDICTED FROM any"
            self.findings.add("clause-model", message, node.place("USING"), "add PREDICTED FROM, or leave it out")
        for clause in _REQUIRED[model]:
            if clause not in node.places:
                message = f"stream {node.name} has no {clause}, which model {model.value} needs"
                self.findings.add("clause-missing", message, node.span, f"add {_EXAMPLES[clause]}")

    def check_lasting(self, stream: Stream) -> None:
        """Only certain events that are read, not made from others, may last."""
        node = stream.declaration
        if stream.start is None:
            return
        if isinstance(node.source, nodes.DerivedSource):
            message = f"what is {made(node.source)} is true at an instant, and TIME has two columns"
            self.findings.add("lasting-events", message, node.place("TIME"), f"write TIME {stream.time.name}")
        elif stream.model is not Model.CERTAIN:
            message = f"events that last are CERTAIN, and {stream.name} is {stream.model.value}"
            hint = f"write TIME {stream.time.name}, or leave out MODEL"
            self.findings.add("lasting-events", message, node.place("TIME"), hint)

    def check_space(self, stream: Stream) -> None:
        """Geometries are planar: on the globe there are points alone."""
        node = stream.declaration
        if stream.shape is not None and node.geodesic:
            message = "GEODESIC means points in degrees, and geometries are planar"
            hint = "leave out GEODESIC, or name two columns: SPACE (lon, lat) GEODESIC"
            self.findings.add("geodesic-shape", message, node.place("SPACE"), hint)

    # ------------------------------------------------------------ columns

    def check_columns(self, stream: Stream) -> None:
        """No two columns of a source may have one name."""
        node = stream.declaration
        named = [(column.name, column.span) for column in (*node.keys, *node.values)]
        named += [(time.name, time.span) for time in (node.start, node.time) if time is not None]
        for clause, name in (("ORDER", node.order), ("LENGTH", node.length), ("ROLE", node.role)):
            if name is not None:
                named.append((name, node.place(clause)))
        taken = self.check_distinct(named)
        for clause, names in (("WINDOW", node.window), ("SPACE", node.space)):
            self.check_distinct((name, node.place(clause)) for name in names or ())
        for implied in stream.columns:
            if implied.name.lower() in taken and self.is_implied(stream, implied.name):
                message = f"model {stream.model.value} reads a column {shown(implied.name)} of its own"
                hint = "name another with PROBABILITY" if implied.name.lower() == "p" else "rename yours"
                self.findings.add("name-twice", message, taken[implied.name.lower()], hint)

    def is_implied(self, stream: Stream, name: str) -> bool:
        """Whether the model itself asks for a column of this name."""
        implied = {column.name.lower() for column in stream.previous}
        if stream.model in (Model.INDEPENDENT, Model.MARKOV):
            implied.add(stream.probability.lower())
        if stream.model is Model.PREDICTED:
            implied |= {f"{column.name.lower()}_rate" for column in stream.values}
        return name.lower() in implied

    def check_distinct(self, named: Iterable[tuple[str, Span]]) -> dict[str, Span]:
        """The names by lower case; one that is there twice is a finding."""
        seen: dict[str, Span] = {}
        for name, span in named:
            if name.lower() in seen:
                first = seen[name.lower()]
                message = f"column {shown(name)} is named twice, first at {first.line}:{first.column}"
                self.findings.add("name-twice", message, span, "give each column its own name")
            seen.setdefault(name.lower(), span)
        return seen

    # ------------------------------------------------------------ amounts

    def check_amounts(self, stream: Stream) -> None:
        """Durations, errors and horizons must make sense."""
        node = stream.declaration
        if node.period is not None:
            checked_duration(self.findings, "PERIOD", node.period, positive=True)
        if node.watermark is not None:
            checked_duration(self.findings, "WATERMARK", node.watermark, positive=False)
        if node.error:
            self.check_error(node)
        if node.horizon is not None:
            self.check_horizon(node, *node.horizon, stream.time.type)

    def check_error(self, node: nodes.CreateStream) -> None:
        """ERROR is 0 or more, for every value column once."""
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
                self.findings.add(
                    "name-twice", f"ERROR names {shown(bound.column)} twice", bound.span, "keep one of them"
                )
            seen.add(bound.column.lower())
        for name, label in values.items():
            if name not in seen:
                message = f"ERROR does not say how far {shown(label)} may be off"
                self.findings.add("clause-missing", message, node.place("ERROR"), f"add {label} = 25")

    def check_error_amount(self, node: nodes.CreateStream, bound: nodes.ErrorBound) -> None:
        """An error is a number from 0, or a column of rows that are read; a standard deviation is above 0."""
        if bound.amount is not None and bound.amount < 0:
            message = f"ERROR must be 0 or more, and is {bound.amount}"
            self.findings.add("out-of-range", message, bound.span, "write the update threshold")
        if bound.source is not None and isinstance(node.source, nodes.PredictedSource):
            message = f"positions are reported by their ERROR, which is then a number, and {shown(bound.source)} is not"
            self.findings.add("error-column", message, bound.span, "write the update threshold, such as 25")
        if bound.normal is not None and not bound.normal > 0:
            message = f"NORMAL takes a standard deviation above 0, and has {bound.normal}"
            self.findings.add("out-of-range", message, bound.span, "leave it out where the error is uniform")

    def check_horizon(self, node: nodes.CreateStream, low: nodes.Expr, high: nodes.Expr, kind: Type) -> None:
        """Both ends of a horizon are numbers, or both are times, and the first is the earlier."""
        ends = [instant_of(low), instant_of(high)]
        for end, written in zip(ends, (low, high), strict=True):
            if end is None:
                hint = "write a number, or a text such as '2026-01-31 12:00:00'"
                self.findings.add("not-a-time", "this is not a time", written.span, hint)
                return
        texts = [isinstance(end, nodes.Literal) and isinstance(end.value, str) for end in (low, high)]
        if texts[0] != texts[1] or (kind is not Type.UNKNOWN and texts[0] != (kind is Type.TIMESTAMP)):
            hint = "write texts for a TIMESTAMP and numbers for a number"
            self.findings.add(
                "type-mismatch", "HORIZON must be of the type of the time column", node.place("HORIZON"), hint
            )
        elif ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]:
            self.findings.add(
                "out-of-range", "HORIZON [lo, hi] needs lo below hi", node.place("HORIZON"), "put the earlier first"
            )

    # ------------------------------------------------------------ sources

    def check_source(self, source: nodes.Source | None) -> None:
        """What can be said of a source without looking at it."""
        if isinstance(source, nodes.FileSource):
            self.check_path(source.path, source.span)
            seen: set[str] = set()
            for option in source.options:
                if option.name.lower() in seen:
                    self.findings.add(
                        "name-twice", f"option {shown(option.name)} is given twice", option.span, "keep one of them"
                    )
                seen.add(option.name.lower())
        elif isinstance(source, nodes.InferredSource):
            self.check_path(source.path, source.span)
            self.check_method(source)
            if source.step is not None:
                checked_duration(self.findings, "STEP", source.step, positive=True)
            if source.prune is not None and not 0 <= source.prune < 1:
                message = f"PRUNE must be at least 0 and below 1, and is {source.prune}"
                self.findings.add("out-of-range", message, source.span, "write PRUNE 1e-6")

    def check_predictor(self, node: nodes.CreateStream, source: nodes.PredictedSource) -> None:
        """The way of predicting is one we have, with the arguments it takes, all or none."""
        method, given, place = source.method, source.arguments, node.place("USING")
        if method not in PREDICTORS:
            hint = f"the methods are {listed(PREDICTORS, 'and')}"
            self.findings.unknown("method", method, PREDICTORS, place, hint)
            return
        names = PREDICTORS[method]
        if given and len(given) != len(names):
            takes = f"{count_of(len(names), 'argument')} ({', '.join(names)}), or none" if names else "no argument"
            message = f"USING {method} takes {takes}, and this has {len(given)}"
            self.findings.add("arity", message, place, f"write USING {method}")
        for name, number in zip(names, given, strict=False):
            if not number > 0:
                message = f"the {name} of {method} must be above 0, and is {number}"
                self.findings.add("out-of-range", message, place, "write a number above 0")

    def check_path(self, path: str, span: Span) -> None:
        """A path names something."""
        if not path.strip():
            self.findings.add("empty-path", "the path is empty", span, "write the path of a file or folder")

    def check_method(self, source: nodes.InferredSource) -> None:
        """The way of inference is one we have, with the argument it takes."""
        if source.family not in FAMILIES:
            self.findings.unknown("inference", source.family, FAMILIES, source.span, f"it can be {listed(FAMILIES)}")
        if source.method not in METHOD_MODELS:
            hint = f"the methods are {listed(METHOD_MODELS, 'and')}"
            self.findings.unknown("method", source.method, METHOD_MODELS, source.span, hint)
        elif source.method == "PARTICLE":
            if not isinstance(source.argument, int) or source.argument < 1:
                message = "PARTICLE takes the number of particles"
                self.findings.add("arity", message, source.span, "write PARTICLE(1000)")
        elif source.argument is not None:
            message = f"METHOD {source.method} takes no argument"
            self.findings.add("arity", message, source.span, f"write METHOD {source.method}")


def made(source: nodes.DerivedSource) -> str:
    """What a stream from this source is, in a word."""
    return "inferred" if isinstance(source, nodes.InferredSource) else "predicted"


def _given_model(source: nodes.Source | None) -> tuple[str, Model | None]:
    """The model that a stream has by the way it is made, and the words that say so."""
    if isinstance(source, nodes.InferredSource):
        return f"METHOD {source.method}", METHOD_MODELS.get(source.method)
    if isinstance(source, nodes.PredictedSource):
        return "PREDICTED FROM", Model.PREDICTED
    return "", None


def _shape(node: nodes.CreateStream, columns: tuple[Column, ...]) -> Column | None:
    """The column of geometries that SPACE names; None where it names coordinates, or is not there."""
    if node.space is None or len(node.space) != 1:
        return None
    name = node.space[0]
    return next((column for column in columns if column.name.lower() == name.lower()), Column(name))
