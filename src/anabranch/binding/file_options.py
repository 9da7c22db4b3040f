"""The formats of files, and the options that a workbook may pass to Spark's reader of each format.

Only options that say how the bytes of a file are parsed are allowed. Spark's readers have others that skip rows or
files without counting them, or that move or delete the files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import urlparse

from anabranch.language import nodes
from anabranch.language.findings import Findings, did_you_mean, listed, shown

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}

_TEXT = ("dateFormat", "encoding", "lineSep", "locale", "multiLine", "samplingRatio", "timeZone", "timestampFormat",
         "timestampNTZFormat")  # fmt: skip

_OPTIONS: dict[str, tuple[str, ...]] = {
    "csv": (
        *_TEXT, "charset", "charToEscapeQuoteEscaping", "comment", "delimiter", "emptyValue", "escape", "header",
        "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "maxCharsPerColumn", "maxColumns", "nanValue",
        "negativeInf", "nullValue", "positiveInf", "quote", "sep", "unescapedQuoteHandling",
    ),
    "json": (
        *_TEXT, "allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers",
        "allowNumericLeadingZeros", "allowSingleQuotes", "allowUnquotedControlChars", "allowUnquotedFieldNames",
        "primitivesAsString",
    ),
    "parquet": ("datetimeRebaseMode", "int96RebaseMode", "mergeSchema"),
}  # fmt: skip

#: What to do instead of options that users know from Spark.
_INSTEAD = {
    "badrecordspath": "rows that cannot be read are quarantined",
    "cleansource": "a query never deletes or moves its input",
    "columnnameofcorruptrecord": "rows that cannot be read are quarantined",
    "enforceschema": "columns are found by their names in the header",
    "ignorecorruptfiles": "files that cannot be read are quarantined",
    "ignoremissingfiles": "files that cannot be read are quarantined",
    "inferschema": "types that are not declared are inferred",
    "latestfirst": "files are read in the order in which they arrive",
    "maxfileage": "every file is read, whatever its age",
    "maxfilespertrigger": "use the option --max-files of anabranch stream",
    "mode": "rows that cannot be read are quarantined; use --strict to stop at the first",
    "modifiedafter": "write a path that selects the files",
    "modifiedbefore": "write a path that selects the files",
    "pathglobfilter": "write a path with a pattern, such as 'folder/*.csv'",
    "recursivefilelookup": "all files in the folders of a path are read",
    "sourcearchivedir": "a query never deletes or moves its input",
}


#: The formats that FORMAT can name.
FORMATS = tuple(_OPTIONS)


def check_format(source: nodes.FileSource, findings: Findings) -> None:
    """Report a format that is not known, and an address that says none: its folder is not listed without data."""
    if source.format is not None and source.format not in FORMATS:
        hint = f"the formats are {listed(FORMATS, 'and')}; FROM SOURCE reads others"
        findings.unknown("format", source.format, FORMATS, source.span, hint)
    elif source.format is None and urlparse(source.path).scheme not in ("", "file"):
        if extension_format(source.path) is None:
            message = f"the format of {shown(source.path)} is unknown"
            findings.add("source", message, source.span, f"write FORMAT {listed(FORMATS)} behind the address")


def extension_format(path: str) -> str | None:
    """Return the format of a path, by its last known extension; `.gz` and the like are skipped.

    >>> extension_format("in/2026.CSV.gz"), extension_format("in/")
    ('csv', None)
    """
    extensions = (suffix.lower() for suffix in reversed(PurePosixPath(path).suffixes))
    return next((_FORMATS[extension] for extension in extensions if extension in _FORMATS), None)


def check_options(options: Iterable[nodes.Option], file_format: str | None, findings: Findings) -> None:
    """Report options that are not allowed for a format; if it is None, those that no format allows."""
    formats = {file_format: _OPTIONS[file_format]} if file_format in _OPTIONS else _OPTIONS
    allowed = {name.lower(): name for names in formats.values() for name in names}
    for option in options:
        if option.name.lower() in allowed:
            continue
        files = (
            "files"
            if file_format not in _OPTIONS
            else f"{'JSON' if file_format == 'json' else file_format.upper()} files"
        )
        message = f"the option {shown(option.name)} is not allowed for {files}"
        hint = _INSTEAD.get(option.name.lower()) or did_you_mean(option.name, allowed.values())
        findings.add(
            "file-option", message, option.span, hint or f"the options are {listed(sorted(allowed.values()), 'and')}"
        )
