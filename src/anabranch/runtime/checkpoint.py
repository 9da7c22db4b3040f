"""Checkpoint folders: Spark's own checkpoint, the control folder, and a manifest of what must not change.

A checkpoint belongs to one identity (`planning/identity.py`), one number of buckets and one set of source columns.
Opening it with others is refused in one line, instead of failing inside Spark.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql.types import StructType

from anabranch.errors import StateError
from anabranch.planning.identity import Document, differences
from anabranch.transport.state import FORMAT

_MANIFEST = "anabranch.json"


class Checkpoint:
    """The checkpoint folder of a stream; created if it does not exist."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).absolute()
        self.spark = str(self._folder / "spark")
        self.control = str(self._folder / "control")
        self.rows = str(self._folder / "rows")
        self.counts = str(self._folder / "counts.json")
        os.makedirs(self.control, exist_ok=True)
        self._manifest = self._read()

    @property
    def id(self) -> str:
        """A unique name, which marks the output folders of the stream."""
        return self._manifest["id"]

    def schema(self, name: str) -> StructType | None:
        """The columns that a source had when the stream was first started."""
        saved = self._manifest.get("schemas", {}).get(name)
        return StructType.fromJson(saved) if saved else None

    def claim(self, identity: Document, n_buckets: int, schemas: Mapping[str, StructType]) -> None:
        """Write the manifest of a new checkpoint; refuse a checkpoint of another identity."""
        if "format" in self._manifest:
            self._refuse_changes(identity, n_buckets)
            return
        self._manifest |= {"format": FORMAT, "buckets": n_buckets, "identity": identity}
        self._manifest["schemas"] = {name: schema.jsonValue() for name, schema in schemas.items()}
        draft = self._folder / f".{_MANIFEST}.{uuid.uuid4().hex}"
        draft.write_text(json.dumps(self._manifest, indent=1))
        os.replace(draft, self._folder / _MANIFEST)

    def end_input(self) -> None:
        """Write a control file, which a stream on this checkpoint reads as the end of its input."""
        draft = self._folder / f".end.{uuid.uuid4().hex}"
        draft.write_text("end\n")
        os.replace(draft, Path(self.control) / f"end-{uuid.uuid4().hex}.txt")

    def _refuse_changes(self, identity: Document, n_buckets: int) -> None:
        saved = self._manifest
        if saved["format"] != FORMAT:
            reason = f"has state format {saved['format']}, this version writes {FORMAT}"
        elif saved["buckets"] != n_buckets:
            reason = f"was created with {saved['buckets']} buckets, not {n_buckets}"
        else:
            # Compared as JSON, in which tuples and lists are the same.
            reason = differences(json.loads(json.dumps(identity)), saved["identity"])
        if reason:
            raise StateError(f"the checkpoint {self._folder} {reason}; start with a new checkpoint folder")

    def _read(self) -> dict:
        path = self._folder / _MANIFEST
        if not path.exists():
            return {"id": uuid.uuid4().hex}
        try:
            return json.loads(path.read_text())
        except ValueError as error:
            raise StateError(f"{path} is damaged; start with a new checkpoint folder") from error
