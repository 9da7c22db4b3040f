"""Sources of Spark by the name of their format (`FROM SOURCE`)."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from anabranch.binding.connector_options import option_values, without_secrets
from anabranch.errors import Finding, WorkbookError
from anabranch.language import nodes
from anabranch.patches.spark_tracebacks import first_line

#: Spark's error for a source of files that is read as a stream without columns.
_NEEDS_SCHEMA = "Schema must be specified"


def open_source(
    spark: SparkSession, source: nodes.ConnectorSource, live: bool, saved: spark_types.StructType | None
) -> DataFrame:
    """The rows of a source of Spark; `saved` are the columns that it had when the stream was first started."""
    options = option_values(source)
    try:
        if not live:
            return spark.read.format(source.address).options(**options).load()
        reader = spark.readStream.format(source.address).options(**options)
        try:
            return reader.load()
        except PySparkException as error:
            if _NEEDS_SCHEMA not in str(error):
                raise
            columns = saved or spark.read.format(source.address).options(**options).load().schema
            return reader.schema(columns).load()
    except (PySparkException, Py4JJavaError) as error:
        text = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
        reason = first_line(without_secrets(text or type(error).__name__, source))
        message = f"the source '{source.address}' cannot be read{' as a stream' if live else ''}: {reason}"
        hint = "check its name and options; --packages and --conf add connectors to Spark"
        raise WorkbookError([Finding("source", message, hint, source.span)]) from None
