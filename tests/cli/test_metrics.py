"""The metrics of streams: what Prometheus reads, and what the dashboard shows."""

from __future__ import annotations

import json
import re
from http.client import HTTPConnection
from pathlib import Path

import pytest
import typer
from prometheus_client.parser import text_string_to_metric_families
from tests.cli.test_supervision import Stream
from tests.runtime.test_stream_log import outcomes

from anabranch.cli.metrics import Measured, serve_metrics
from anabranch.cli.supervision import Watched
from anabranch.runtime.file_system import LocalFolder
from anabranch.runtime.stream_log import StreamLog, last_entry
from anabranch.transport.operator import Counts

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana.json"


def measured(folder: Path, watermark: str | float | None) -> Measured:
    """A stream that runs and has failed twice, with one micro-batch."""
    log = StreamLog(LocalFolder(folder), "near", Counts())
    log.add(3, outcomes(read=10, used=8, quarantined=2, kept=6, state_bytes=300), 5, 0.25, watermark)
    watched = Watched("near", Stream, lambda stream: None, stream=Stream(), total_failures=2)
    return Measured("near", lambda: last_entry(LocalFolder(folder)), watched)


def samples(text: str) -> dict[tuple[str, str], float]:
    """The values by name and outcome, of the stream `near`."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels["stream"] == "near"
            found[sample.name, sample.labels.get("outcome", "")] = sample.value
    return found


def port_of(message: str) -> int:
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", message)
    return int(port)


def served(stream: Measured, capsys: pytest.CaptureFixture[str]) -> str:
    with serve_metrics(0, [stream]):
        connection = HTTPConnection("127.0.0.1", port_of(capsys.readouterr().err))
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return text


def test_prometheus_reads_the_counts_of_running_streams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = samples(served(measured(tmp_path, "1970-01-02 00:00:00Z"), capsys))
    assert values["anabranch_rows_total", "read"] == 10
    assert values["anabranch_rows_total", "quarantined"] == 2
    assert values["anabranch_answers_total", ""] == 5
    assert values["anabranch_failures_total", ""] == 2
    assert values["anabranch_running", ""] == 1
    assert values["anabranch_watermark", ""] == 86_400
    assert values["anabranch_micro_batch_seconds", ""] == 0.25
    assert values["anabranch_state_bytes", ""] == 300
    assert values["anabranch_kept_events", ""] == 6


@pytest.mark.parametrize(("watermark", "value"), [(12.5, 12.5), (None, None), ("12026-01-01 00:00:00Z", None)])
def test_a_watermark_without_a_number_is_left_out(
    watermark: str | float | None, value: float | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = samples(served(measured(tmp_path, watermark), capsys))
    assert values.get(("anabranch_watermark", "")) == value


def test_a_port_that_is_taken_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = measured(tmp_path, None)
    with serve_metrics(0, [stream]):
        port = port_of(capsys.readouterr().err)
        with pytest.raises(typer.BadParameter, match="cannot be used: Address already in use"), serve_metrics(port, []):
            pass


def test_the_dashboard_shows_metrics_that_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {name for name, _ in samples(served(measured(tmp_path, 1), capsys))}
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown = {name for expression in expressions for name in re.findall(r"anabranch_\w+", expression)}
    assert shown <= names
    assert names - shown <= {"anabranch_micro_batch"}, "every metric is worth a panel"
