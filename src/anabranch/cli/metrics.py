"""Metrics of running streams for Prometheus, on a port of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from anabranch.cli.messages import say

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from anabranch.cli.supervision import Watched
    from anabranch.runtime.stream_log import Entry

#: Only processes of this machine may read the metrics; a proxy or an agent can pass them on.
ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Measured:
    """A stream that is measured.

    Attributes
    ----------
    name : the label of its metrics
    last_entry : returns the last entry of its log; None if it was not started
    watched : knows whether it runs, and how often it has failed
    """

    name: str
    last_entry: Callable[[], Entry | None]
    watched: Watched


class Collector:
    """Makes the metrics from the logs of the streams whenever they are asked for."""

    def __init__(self, streams: Sequence[Measured]) -> None:
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        """The metrics, for prometheus_client."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        rows = CounterMetricFamily("anabranch_rows", "Rows, by what happened to them", labels=["stream", "outcome"])
        answers = CounterMetricFamily("anabranch_answers", "Answers", labels=["stream"])
        failures = CounterMetricFamily("anabranch_failures", "Failures of the stream", labels=["stream"])
        gauges = {
            name: GaugeMetricFamily(f"anabranch_{name}", text, labels=["stream"]) for name, text in _GAUGES.items()
        }
        for stream in self._streams:
            entry = stream.last_entry()
            failures.add_metric([stream.name], stream.watched.total_failures)
            gauges["running"].add_metric([stream.name], stream.watched.is_running)
            if entry is None:
                continue
            for outcome in ("read", "used", "duplicate", "late", "quarantined", "excluded"):
                rows.add_metric([stream.name, outcome], getattr(entry.total, outcome))
            answers.add_metric([stream.name], entry.total.answers)
            for name, value in _values(entry).items():
                gauges[name].add_metric([stream.name], value)
        yield from (rows, answers, failures, *gauges.values())


_GAUGES = {
    "running": "1 if the stream runs",
    "micro_batch": "Number of the last complete micro-batch",
    "micro_batch_seconds": "Duration of the last complete micro-batch",
    "last_micro_batch_timestamp_seconds": "When the last micro-batch was complete",
    "watermark": "Watermark: seconds since 1970 of a TIMESTAMP, otherwise the number",
    "state_bytes": "State that every micro-batch reads and writes",
    "kept_events": "Events kept after the last micro-batch, for kinds that keep events",
}


def _values(entry: Entry) -> dict[str, float]:
    """The gauges of an entry; without those that have no value yet."""
    if entry.batch is None:
        return {}
    values = {
        "micro_batch": entry.batch,
        "micro_batch_seconds": entry.seconds,
        "last_micro_batch_timestamp_seconds": entry.at.timestamp(),
        "state_bytes": entry.state_bytes,
        "kept_events": entry.rows.kept,
    }
    if isinstance(entry.watermark, str):
        with suppress(ValueError):  # after the year 9999
            values["watermark"] = datetime.fromisoformat(entry.watermark).timestamp()
    elif entry.watermark is not None:
        values["watermark"] = entry.watermark
    return values


@contextmanager
def serve_metrics(port: int | None, streams: Sequence[Measured]) -> Iterator[None]:
    """Serve the metrics of streams at http://127.0.0.1:PORT/metrics while the block runs."""
    if port is None:
        yield
        return
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(Collector(streams))
    try:
        server, thread = start_http_server(port, ADDRESS, registry)
    except OSError as error:
        raise typer.BadParameter(f"--metrics-port {port} cannot be used: {error.strerror}") from None
    say(f"metrics at http://{ADDRESS}:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
