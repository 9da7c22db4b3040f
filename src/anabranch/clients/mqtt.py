"""Connections to MQTT brokers, and a publisher that waits for the broker to acknowledge every message (QoS 1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from anabranch.clients.extras import optional_module
from anabranch.errors import AnabranchError

#: How long a broker may take to answer, in seconds.
TIMEOUT = 30.0

#: How many messages may wait for an acknowledgement.
_IN_FLIGHT = 200


def new_client(settings: Mapping[str, str], **arguments: Any) -> Any:
    """A client with the settings that is not connected; the other arguments are those of paho's `Client`."""
    mqtt = optional_module("paho.mqtt.client")
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=settings.get("client_id", ""), **arguments)
    if "username" in settings:
        client.username_pw_set(settings["username"], settings.get("password", ""))
    if settings.get("tls") == "true" or "ca_file" in settings:
        client.tls_set(ca_certs=settings.get("ca_file"))
    return client


def connect(
    client: Any, settings: Mapping[str, str], accepted: Callable[[bool], None] = lambda has_session: None
) -> None:
    """Connect a client and start its thread; returns when the broker has accepted the connection.

    `accepted` is called after each connection, also when a lost one was restored; its argument says whether the broker
    has kept the session of the client.
    """
    server = settings["server"]
    host, _, port = server.partition(":")
    answers: list[Any] = []

    def connected(client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if not reason.is_failure:
            accepted(flags.session_present)
        answers.append(reason)

    client.on_connect = connected
    try:
        client.connect(host, int(port or 1883), int(settings.get("keepalive", "60")))
    except (OSError, ValueError) as error:
        raise AnabranchError(f"MQTT: {server} cannot be reached: {error}") from error
    client.loop_start()
    deadline = time.monotonic() + TIMEOUT
    while not answers and time.monotonic() < deadline:
        time.sleep(0.01)
    if not answers or answers[0].is_failure:
        client.loop_stop()
        reason = answers[0].getName() if answers else f"no answer in {TIMEOUT:g} s"
        raise AnabranchError(f"MQTT: {server} refuses the connection: {reason}")


class MqttSender:
    """Publishes messages with QoS 1: each arrives at least once."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._client = new_client(settings)
        self._client.max_inflight_messages_set(_IN_FLIGHT)
        #: How many messages the broker has acknowledged.
        self.sent = 0
        connect(self._client, settings)

    def send(self, topic: str, payloads: Iterable[bytes]) -> None:
        """Publish messages; returns when the broker has acknowledged all."""
        deadline = time.monotonic() + TIMEOUT
        for waiting in [self._client.publish(topic, payload, qos=1) for payload in payloads]:
            try:
                waiting.wait_for_publish(max(deadline - time.monotonic(), 0.001))
            except (RuntimeError, ValueError) as error:
                raise AnabranchError(f"MQTT: a message was not sent: {error}") from error
            if not waiting.is_published():
                raise AnabranchError(f"MQTT: a message was not acknowledged in {TIMEOUT:g} s")
            self.sent += 1
            deadline = time.monotonic() + TIMEOUT

    def close(self) -> None:
        """End the connection."""
        self._client.disconnect()
        self._client.loop_stop()
