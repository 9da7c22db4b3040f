"""The folder a stream goes on from: Spark's own checkpoint, the control folder, and a manifest of what may not change.

A checkpoint belongs to one query, one number of buckets and one set of columns; opening it with another is refused in
one line instead of failing deep inside Spark.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

from pyspark.sql.types import StructType

from anabranch.errors import StateError
from anabranch.transport.state import FORMAT

_MANIFEST = "anabranch.json"


class Checkpoint:
    """One query's checkpoint folder; created where it does not exist."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).absolute()
        self.spark = str(self._folder / "spark")
        self.control = str(self._folder / "control")
        os.makedirs(self.control, exist_ok=True)
        self._manifest = self._read()

    @property
    def id(self) -> str:
        """A name of its own, which marks the output folders that it writes to."""
        return self._manifest["id"]

    def schema(self, name: str) -> StructType | None:
        """The columns a source had when the stream was first started."""
        saved = self._manifest.get("schemas", {}).get(name)
        return StructType.fromJson(saved) if saved else None

    def claim(self, fingerprint: str, n_buckets: int, schemas: dict[str, StructType]) -> None:
        """Make the checkpoint this query's, or refuse it where it is another's."""
        ours = {"format": FORMAT, "query": fingerprint, "buckets": n_buckets}
        if "query" in self._manifest:
            self._refuse_changes(ours)
            return
        self._manifest |= ours
        self._manifest["schemas"] = {name: schema.jsonValue() for name, schema in schemas.items()}
        draft = self._folder / f".{_MANIFEST}.{uuid.uuid4().hex}"
        draft.write_text(json.dumps(self._manifest, indent=1))
        os.replace(draft, self._folder / _MANIFEST)

    def end_input(self) -> None:
        """Leave a control file, which a stream on this checkpoint reads as the end of its input."""
        draft = self._folder / f".end.{uuid.uuid4().hex}"
        draft.write_text("end\n")
        os.replace(draft, Path(self.control) / f"end-{uuid.uuid4().hex}.txt")

    def _refuse_changes(self, ours: dict) -> None:
        told = {
            "format": f"has state of format {self._manifest['format']}, this version writes {FORMAT}",
            "buckets": f"was made with {self._manifest['buckets']} buckets, not {ours['buckets']}",
            "query": "belongs to another query, or to this one before it or its streams were changed",
        }
        for name, text in told.items():
            if self._manifest[name] != ours[name]:
                raise StateError(f"the checkpoint {self._folder} {text}; start with a new checkpoint folder")

    def _read(self) -> dict:
        path = self._folder / _MANIFEST
        if not path.exists():
            return {"id": uuid.uuid4().hex}
        try:
            return json.loads(path.read_text())
        except ValueError as error:
            raise StateError(f"{path} is damaged; start with a new checkpoint folder") from error
