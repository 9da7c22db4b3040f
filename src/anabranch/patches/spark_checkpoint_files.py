"""Spark's own way to write the files of a checkpoint as a whole, on any file system that Hadoop knows.

What is used
    `CheckpointFileManager`, an internal class of Spark. It writes a hidden file and renames it, in one step where
    Hadoop's FileContext can (HDFS, local file systems). The setting `spark.sql.streaming.checkpointFileManagerClass`
    names another implementation.
Why
    No interface of Hadoop writes a file as a whole on each of its file systems. Spark has solved this for its own
    checkpoint, next to which our files are: they then have the same guarantees, with the same setting.
Tried on
    PySpark 4.3.0.
Where it does not fit
    None is returned: addresses such as `s3a://` cannot be a checkpoint then, and local folders can.
"""

from __future__ import annotations

from typing import Any

#: The class, without the companion object of Scala that makes it.
_CLASS = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager"


def file_manager(jvm: Any, path: Any, configuration: Any) -> Any:
    """The manager of a path: `createAtomic(path, overwrite)` gives a stream with `close` and `cancel`.

    Parameters
    ----------
    jvm : the view of the JVM, as Py4J has it
    path, configuration : objects of Hadoop
    """
    made_by = jvm
    for part in _CLASS.split("."):
        made_by = getattr(made_by, part)
    try:
        return made_by.create(path, configuration)
    except TypeError:  # Py4J takes the name of a class that does not exist for that of a package
        return None


def renames_over_files(manager: Any) -> bool:
    """Whether a new file of this manager replaces one of its name. If not, Spark may leave the old one, silently."""
    return manager.getClass().getSimpleName() != "FileSystemBasedCheckpointFileManager"
