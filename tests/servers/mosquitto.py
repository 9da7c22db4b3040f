"""A Mosquitto broker on a loopback port."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.ports import free_port, is_open, wait_for


@contextmanager
def mosquitto(folder: Path, port: int | None = None) -> Iterator[str]:
    """The address of a broker that keeps its sessions in a folder, and runs until the block ends."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed")
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "mosquitto.conf"
    settings.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {folder}/\n"
        "max_queued_messages 0\nuser root\nlog_type none\n"
    )
    process = subprocess.Popen([program, "-c", str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: is_open(port), "starting mosquitto")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


class Subscriber:
    """Collects the payloads of a topic."""

    def __init__(self, server: str, topic: str) -> None:
        import paho.mqtt.client as mqtt

        self.payloads: list[bytes] = []
        self._subscribed = False
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        self._client.on_message = lambda client, data, message: self.payloads.append(message.payload)
        self._client.on_subscribe = lambda *arguments: setattr(self, "_subscribed", True)
        host, _, port = server.partition(":")
        self._client.connect(host, int(port))
        self._client.subscribe(topic, qos=1)
        self._client.loop_start()
        wait_for(lambda: self._subscribed, "subscribing")

    def wait(self, n_messages: int) -> list[bytes]:
        wait_for(lambda: len(self.payloads) >= n_messages, f"receiving {n_messages} messages")
        return self.payloads

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
