"""The target that a query declares."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from anabranch.catalog import Query
from anabranch.language import nodes
from anabranch.runtime.sinks.files import FolderTarget
from anabranch.runtime.sinks.messages import KafkaTarget, MqttTarget
from anabranch.runtime.sinks.postgres import PostgresTarget
from anabranch.runtime.sinks.table import TableTarget
from anabranch.runtime.sinks.target import AnswerTarget
from anabranch.runtime.sources.files import resolve

_TARGETS: dict[str, Callable[[str, nodes.Target, str], AnswerTarget]] = {
    "KAFKA": KafkaTarget,
    "MQTT": MqttTarget,
    "POSTGRES": PostgresTarget,
}


def declared_target(query: Query, base: str, spark: Callable[[], SparkSession]) -> AnswerTarget | None:
    """The target of a query (`TO ...`), None if it declares none; `base` is the folder of its workbook."""
    target = query.declaration.target
    if target is None:
        return None
    if target.system is None:
        return FolderTarget(resolve(target.name, base), target.format or "parquet", spark)
    if target.system == "TABLE":
        return TableTarget(target)
    return _TARGETS[target.system](query.name, target, base)
