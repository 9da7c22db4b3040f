"""The columns of a stream whose rows are messages: a message has no schema, so the workbook states their types.

The declaration of the stream states them, or the option `columns`. An Avro schema has them in a file, which is read
when the stream is opened. Every message also has the columns of `METADATA`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from anabranch.binding.reading import source_name
from anabranch.catalog import Column, Relation, Stream
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.types import TYPE_NAMES, Type

#: The columns that describe a message, by connector.
METADATA: dict[str, dict[str, Type]] = {
    "KAFKA": {
        "message_key": Type.STRING,
        "message_timestamp": Type.TIMESTAMP,
        "message_topic": Type.STRING,
        "message_partition": Type.INTEGER,
        "message_offset": Type.INTEGER,
    },
    "MQTT": {
        "message_topic": Type.STRING,
        "message_timestamp": Type.TIMESTAMP,
        "message_position": Type.INTEGER,
    },
}

#: The options that only one format has.
_OPTIONS_OF = {"avro": ("schema", "schema_id"), "csv": ("separator",)}


def message_format(source: nodes.ConnectorSource) -> str:
    """The format of the values of messages."""
    return str(_stated(source).get("format", "json")).lower()


def schema_path(source: nodes.Source | None) -> str | None:
    """The path of the schema of Avro messages; None for other sources."""
    if not isinstance(source, nodes.ConnectorSource) or source.connector not in METADATA:
        return None
    path = _stated(source).get("schema")
    return str(path) if path is not None and message_format(source) == "avro" else None


def check_messages(
    entry: Stream | Relation, source: nodes.ConnectorSource, needed: Iterable[Column], findings: Findings
) -> None:
    """Report options that do not belong to the format of the messages, and columns without a type."""
    file_format = message_format(source)
    stated = _stated(source)
    for other, names in _OPTIONS_OF.items():
        for name in names:
            if name in stated and other != file_format:
                message = f"the option {name} is for {other.upper()} messages"
                findings.add("option", message, source.span, f"remove it, or write format = '{other}'")
    if file_format == "avro":
        if "schema" not in stated:
            message = "Avro messages need the option schema"
            findings.add("option", message, source.span, "write the path of their schema: schema = 'event.avsc'")
    elif file_format == "csv" and "columns" not in stated:
        message = "CSV messages need the option columns"
        findings.add("option", message, source.span, "list their columns in order: columns = 'person STRING, t DOUBLE'")
    else:
        message_columns(entry, source, needed, findings)


def message_columns(
    entry: Stream | Relation, source: nodes.ConnectorSource, needed: Iterable[Column], findings: Findings
) -> dict[str, Type]:
    """The columns of the values of JSON or CSV messages, in their order.

    Parameters
    ----------
    needed : the columns of the source that are read, with the types that the declaration states
    """
    metadata = METADATA[source.connector]
    listed_columns = _listed_columns(source, findings)
    lower = {name.lower() for name in listed_columns}
    known: dict[str, Type] = {}
    wanted = {column.name.lower(): column for column in needed}
    for name, kind in listed_columns.items():
        column = wanted.get(name.lower())
        known[name] = kind if kind is not None else Type.STRING if column is None else _type_of(entry, column)
    is_csv = message_format(source) == "csv"
    for name, column in wanted.items():
        if name in lower or name in metadata:
            continue
        if is_csv:
            message = f"the option columns has no column {shown(column.name)}"
            findings.add("option", message, source.span, f"it has {listed(listed_columns, 'and')}")
        known[column.name] = _type_of(entry, column)
    unknown = [name for name, kind in known.items() if kind is Type.UNKNOWN]
    if unknown:
        subject = (
            f"the type of {shown(unknown[0])} is" if len(unknown) == 1 else f"the types of {listed(unknown, 'and')} are"
        )
        hint = f"declare {'it' if len(unknown) == 1 else 'them'}, such as {unknown[0]} STRING, or write "
        hint += f"OPTIONS (columns = '{', '.join(f'{name} DOUBLE' for name in unknown)}')"
        findings.add("column-type", f"{subject} not known, because messages have no schema", source.span, hint)
    return known


def metadata_columns(source: nodes.ConnectorSource, wanted: Collection[str], known: Collection[str]) -> dict[str, Type]:
    """The columns of `METADATA` that are read and that are no columns of the values; names in lower case."""
    own = {name.lower() for name in known}
    return {name: kind for name, kind in METADATA[source.connector].items() if name in wanted and name not in own}


def _type_of(entry: Stream | Relation, column: Column) -> Type:
    """The type of a column in the messages; a time is text if the stream has a ZONE, because it lacks its offset."""
    if isinstance(entry, Stream) and entry.declaration.zone is not None:
        if column.name.lower() in (source_name(entry, name).lower() for name in entry.time_names):
            return Type.STRING
    return column.source_type or column.type


def _listed_columns(source: nodes.ConnectorSource, findings: Findings) -> dict[str, Type | None]:
    """The names and types of the option `columns`; the type is None where it is not stated."""
    option = next((option for option in source.options if option.name.lower() == "columns"), None)
    columns: dict[str, Type | None] = {}
    for item in [] if option is None else str(option.value).split(","):
        name, *kind = item.split()[:3] or [""]
        wrong = not name or len(kind) > 1 or name.lower() in map(str.lower, columns)
        if wrong or (kind and kind[0].upper() not in TYPE_NAMES):
            message = f"the option columns cannot be read at {shown(item.strip())}"
            hint = "write each name once with its type: 'person STRING, t TIMESTAMP'"
            findings.add("option", message, option.span if option else source.span, hint)
            return {}
        columns[name] = TYPE_NAMES[kind[0].upper()] if kind else None
    return columns


def _stated(source: nodes.ConnectorSource) -> Mapping[str, object]:
    return {option.name.lower(): option.value for option in source.options}
