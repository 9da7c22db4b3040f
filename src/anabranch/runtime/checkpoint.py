"""Checkpoint folders: Spark's own checkpoint, the control folder, and a manifest of what must not change.

A checkpoint belongs to one identity (`planning/identity.py`), one number of buckets and one set of source columns.
Opening it with others is refused in one line, instead of failing inside Spark. Queries that share a pass may be added
and removed. The manifest says which the last start had; the state itself says which it was written for.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql.types import StructType

from anabranch.errors import StateError
from anabranch.patches.spark_file_log import unfinished_files
from anabranch.planning.identity import Document, differences, queries_in
from anabranch.runtime.file_system import Folder, LocalFolder
from anabranch.runtime.lock import FolderLock
from anabranch.transport.state import FORMAT, is_readable, wrong_format

_MANIFEST = "anabranch.json"
#: The name of the checksum of everything else in the manifest.
_CHECKSUM = "checksum"


@dataclass(frozen=True, slots=True)
class Changes:
    """The names of the queries that a start adds to a checkpoint, and of those that it removes."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Checkpoint:
    """The checkpoint folder of a stream; created if it does not exist."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.spark = folder.folder("spark")
        self.control = folder.folder("control")
        self.rows = folder.folder("rows")
        #: The checkpoints of the queries whose answers the stream reads, also through others.
        self.read = folder.folder("read")
        self.control.make()
        #: What the file has; None if there is none yet.
        self._stored = self._read()
        self._manifest: dict[str, Any] = {"id": uuid.uuid4().hex} if self._stored is None else {**self._stored}

    @property
    def id(self) -> str:
        """A unique name, which marks the output folders of the stream."""
        return self._manifest["id"]

    def schema(self, name: str) -> StructType | None:
        """The columns that a source had when the stream was first started."""
        saved = self._manifest.get("schemas", {}).get(name)
        return StructType.fromJson(saved) if saved else None

    @property
    def queries(self) -> dict[str, str]:
        """The definitions of the queries of the last start, by lower-case name; empty if there was none."""
        return queries_in(self._manifest["identity"]) if self._is_readable else {}

    @property
    def n_buckets(self) -> int | None:
        """The number of buckets that the stream was first started with; None if it was not started yet."""
        return self._manifest.get("buckets")

    @property
    def layouts(self) -> list[dict[str, Any]]:
        """The columns of the streams, in the order of the query."""
        return [stream["layout"] for stream in self._manifest["identity"]["streams"]]

    def changes(self, names: Collection[str]) -> Changes:
        """The queries that a start of `names` adds, and those that it removes."""
        started, saved = {name.lower(): name for name in names}, self.queries
        if not saved:
            return Changes()
        added = tuple(name for key, name in started.items() if key not in saved)
        return Changes(added, tuple(name for name in saved if name not in started))

    def claim(
        self, identity: Document, n_buckets: int, schemas: Mapping[str, StructType], shares_pass: bool = False
    ) -> None:
        """Write the manifest; refuse a checkpoint of another identity.

        With `shares_pass`, queries may have been added or removed. Those that were removed stay in the manifest,
        because their names belong to the answers that they have given.
        """
        saved = self._manifest
        if "format" in saved:
            self._refuse_changes(identity, n_buckets, shares_pass)
            started = queries_in(identity)
            saved["removed"] = {name: text for name, text in self._known.items() if name not in started}
        new = {name: schema.jsonValue() for name, schema in schemas.items()}
        saved["schemas"] = new | saved.get("schemas", {})
        saved |= {"format": FORMAT, "buckets": n_buckets, "identity": identity}
        # The text of a document that was read: tuples are lists in it.
        document = json.loads(json.dumps(saved))
        if document != self._stored:
            text = json.dumps({**document, _CHECKSUM: _checksum(document)}, indent=1)
            self.folder.write(_MANIFEST, text.encode())
            self._stored = document

    def answers(self, stream: str) -> Folder:
        """The folder of the answers of another query that a stream reads."""
        return self.folder.folder(f"answers/{stream}")

    def messages(self, stream: str) -> str:
        """The folder for messages that a broker does not keep. It is local: each message is appended to a file."""
        if not isinstance(self.folder, LocalFolder):
            raise StateError(f"FROM MQTT keeps its messages in the checkpoint, and {self.folder} is not a local folder")
        return self.folder.folder(f"messages/{stream}").address

    @property
    def large_answers(self) -> str | None:
        """The folder for answers that are too many for the driver; None if Python workers cannot write there."""
        return self.folder.folder("large").address if isinstance(self.folder, LocalFolder) else None

    def lock(self) -> FolderLock:
        """Refuse the checkpoint if a stream of another process uses it."""
        return FolderLock(self.folder)

    def vanished_files(self) -> list[str]:
        """Local input files of a micro-batch that is run again, which no longer exist: Spark skips them."""
        paths = [unquote(urlparse(address).path) for address in unfinished_files(self.spark) if _is_local(address)]
        return [path for path in paths if not os.path.exists(path)]

    def end_input(self) -> None:
        """Write a control file, which a stream on this checkpoint reads as the end of its input.

        Those whose answers it reads get one, too: the end of their answers follows their last one.
        """
        for name in sorted(self.read.names()):
            Checkpoint(self.read.folder(name)).end_input()
        self.control.write(f"end-{uuid.uuid4().hex}.txt", b"end\n")

    @property
    def _is_readable(self) -> bool:
        return is_readable(self._manifest.get("format", 0))

    @property
    def _known(self) -> dict[str, str]:
        """The definitions of all queries that the checkpoint has had, by lower-case name."""
        return self._manifest.get("removed", {}) | self.queries

    def _refuse_changes(self, identity: Document, n_buckets: int, shares_pass: bool) -> None:
        saved = self._manifest
        if not self._is_readable:
            reason = wrong_format(saved["format"])
        elif saved["buckets"] != n_buckets:
            reason = f"was created with {saved['buckets']} buckets, not {n_buckets}"
        else:
            # Compared as JSON, in which tuples and lists are the same.
            reason = differences(json.loads(json.dumps(identity)), saved["identity"], shares_pass)
        if reason:
            raise StateError(f"the checkpoint {self.folder} {reason}; start with a new checkpoint folder")
        for name, definition in queries_in(identity).items():
            if self._known.get(name, definition) != definition:
                raise StateError(
                    f"the checkpoint {self.folder} has another definition of {name}; give the changed query a new "
                    "name, or start with a new checkpoint folder"
                )

    def _read(self) -> dict | None:
        try:
            document = json.loads(self.folder.read(_MANIFEST))
        except FileNotFoundError:
            if self.spark.exists("offsets"):
                raise StateError(
                    f"{self.folder}/{_MANIFEST} is missing; restore it, or start with a new checkpoint folder"
                ) from None
            return None
        except ValueError:
            document = None
        # Earlier versions wrote no checksum.
        if not isinstance(document, dict) or document.pop(_CHECKSUM, None) not in (None, _checksum(document)):
            raise StateError(f"{self.folder}/{_MANIFEST} is damaged; start with a new checkpoint folder")
        return document


def _is_local(address: str) -> bool:
    return urlparse(address).scheme in ("", "file")


def _checksum(document: dict) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def folder_of(checkpoints: Folder, names: Collection[str]) -> Folder:
    """The checkpoint folder of a group of queries in a folder of checkpoints.

    It is the one that has a query of the group, because queries may have been added and removed since it was created.
    A new one is named after the queries.
    """
    wanted = {name.lower() for name in names}
    used = [
        checkpoints.folder(name)
        for name in sorted(checkpoints.names())
        if not name.startswith(".") and checkpoints.exists(f"{name}/{_MANIFEST}")
    ]
    own = [folder for folder in used if not wanted.isdisjoint(Checkpoint(folder).queries)]
    if len(own) > 1:
        shown = ", ".join(map(str, own))
        raise StateError(
            f"{', '.join(names)} have several checkpoints: {shown}; start their queries as before, with --query, or "
            "use a new checkpoint folder"
        )
    first, *others = names
    named = [first, *others] if len(others) < 3 else [first, str(len(others))]
    return own[0] if own else checkpoints.folder("+".join(named))
