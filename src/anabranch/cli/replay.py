"""`anabranch replay`: an archive as a live stream."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli.messages import say
from anabranch.cli.progress import progress

if TYPE_CHECKING:
    from anabranch.replay.archive import Archive
    from anabranch.replay.playing import Target


class To(Enum):
    """Where the rows are sent."""

    FOLDER = "folder"
    KAFKA = "kafka"
    MQTT = "mqtt"


#: Seconds of the replay whose rows are sent together, without --every. A file costs more than a message.
_TOGETHER = {To.FOLDER: 1.0, To.KAFKA: 0.1, To.MQTT: 0.1}

#: The option of the client that --server sets.
_SERVER = {To.KAFKA: "bootstrap_servers", To.MQTT: "server"}

File = Annotated[Path, typer.Argument(metavar="FILE", help="A CSV, JSON lines or Parquet file.")]
Destination = Annotated[To, typer.Option("--to", help="Where the rows are sent.")]
Speed = Annotated[
    str, typer.Option("--speed", metavar="N|max", help="60 plays an hour in a minute; max does not wait.")
]
Time = Annotated[str | None, typer.Option("--time", metavar="COLUMN", help="The column with the time.")]
Every = Annotated[
    float | None,
    typer.Option(
        "--every",
        metavar="SECONDS",
        help="Send the rows of this much event time together, as one file. Default: a second of the replay (kafka, "
        "mqtt: a tenth); with --speed max, 10,000 rows.",
    ),
]
Output = Annotated[str | None, typer.Option("--output", metavar="DIR", help="The folder of --to folder.")]
Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="The topic of --to kafka and --to mqtt.")]
Server = Annotated[str | None, typer.Option("--server", metavar="HOST:PORT", help="The Kafka or MQTT broker.")]
Key = Annotated[str | None, typer.Option("--key", metavar="COLUMN", help="The key of Kafka messages.")]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the client; '${NAME}' is a variable of the environment (may be repeated).",
    ),
]


def command(
    file: File,
    to: Destination,
    speed: Speed = "1",
    time: Time = None,
    every: Every = None,
    output: Output = None,
    topic: Topic = None,
    server: Server = None,
    key: Key = None,
    option: Options = None,
) -> None:
    """Play an archive as a live stream by event time: to a folder, a Kafka topic or an MQTT topic."""
    rate = _rate(speed)
    if every is not None and every <= 0:
        raise typer.BadParameter(f"--every is above 0, not {every:g}")
    if to is not To.KAFKA and key is not None:
        raise typer.BadParameter("--key is for --to kafka")
    needed = {"--output": output} if to is To.FOLDER else {"--topic": topic, "--server": server}
    for name, value in needed.items():
        if value is None:
            raise typer.BadParameter(f"--to {to.value} needs {name}")
    # Loads pandas and Arrow.
    from anabranch.replay.archive import open_archive
    from anabranch.replay.playing import Player, slices

    archive = open_archive(str(file), time, [key] if key else [])
    if every is None and rate is not None:
        every = _TOGETHER[to] * rate
    survey = archive.survey
    say(f"{survey.n_rows:,} rows by {archive.time}" + ("" if survey.is_sorted else "; sorted in memory"))
    if survey.n_without_time:
        say(f"{survey.n_without_time:,} rows without a time are left out")
    target = _open(archive, to, output, topic, server, key, option or [])
    try:
        with progress("replay", lambda: target.sent):
            Player(target, rate).play(slices(archive.blocks(), every))
        say(f"{target.sent:,} rows sent")
    except KeyboardInterrupt:
        say(f"stopped; {target.sent:,} of {survey.n_rows:,} rows sent")
    finally:
        target.close()


def _rate(speed: str) -> float | None:
    """Seconds of event time per second; None for max."""
    if speed.lower() == "max":
        return None
    try:
        rate = float(speed)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise typer.BadParameter(f"--speed is a number above 0, or max, not {speed}")
    return rate


def _open(
    archive: Archive, to: To, output: str | None, topic: str | None, server: str | None, key: str | None,
    options: list[str],
) -> Target:  # fmt: skip
    from anabranch.binding.secrets import resolve
    from anabranch.binding.targets import TARGET_OPTIONS
    from anabranch.clients.kafka import kafka_settings
    from anabranch.language.nodes import Option
    from anabranch.replay.targets import FolderTarget, KafkaTarget, MqttTarget

    if to is To.FOLDER:
        return FolderTarget(archive, str(output))
    named = [option.partition("=") for option in options]
    for name, equals, _ in named:
        if not equals or not name:
            raise typer.BadParameter(f"--option takes NAME=VALUE, not {name}")
    allowed = TARGET_OPTIONS[to.name]
    for name, _, _ in named:
        if name not in allowed:
            raise typer.BadParameter(f"--option has no {name}; there are {', '.join(allowed)}")
    stated = resolve([Option(name, value) for name, _, value in named], os.environ)
    stated[_SERVER[to]] = str(server)
    if to is To.KAFKA:
        return KafkaTarget(archive, str(topic), kafka_settings(stated, os.getcwd()), key)
    return MqttTarget(archive, str(topic), stated)
