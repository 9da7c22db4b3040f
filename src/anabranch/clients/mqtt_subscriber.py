"""Receives the messages of MQTT topics into a log on disk, and acknowledges them when they are there."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from typing import Any

from anabranch.clients.message_log import MessageLog, Received
from anabranch.clients.mqtt import TIMEOUT, connect, new_client
from anabranch.errors import AnabranchError

#: Messages that are flushed to disk together at most.
_TOGETHER = 5000


class Subscriber:
    """A subscription with QoS 1 and a session that the broker keeps while the client is away.

    A message is acknowledged after it is on disk: the broker sends again what a killed process had not stored. It may
    send again what was stored but not acknowledged, so a message may be in the log twice.

    Parameters
    ----------
    settings : of the connection; its client_id is the name of the session
    topic : may have the wildcards of MQTT
    """

    def __init__(self, settings: Mapping[str, str], topic: str, log: MessageLog) -> None:
        self._topic, self._log = topic, log
        self._received: queue.Queue[tuple[Received, int, int]] = queue.Queue()
        self._failure: Exception | None = None
        self._stopped = threading.Event()
        self._changed = time.monotonic()
        self._client = new_client(settings, clean_session=False, manual_ack=True)
        self._client.on_message = self._receive
        self._client.on_subscribe = self._subscribed
        self._is_subscribed = threading.Event()
        self._refusal = ""
        self._writer = threading.Thread(target=self._write, daemon=True)
        connect(self._client, settings, self._subscribe)
        if not self._is_subscribed.wait(TIMEOUT) or self._refusal:
            self._client.loop_stop()
            raise AnabranchError(f"MQTT: the broker refuses the topic '{topic}': {self._refusal or 'no answer'}")
        self._writer.start()

    def end(self) -> int:
        """The position behind the last message that is on disk; raises if messages could not be stored."""
        if self._failure is not None:
            raise AnabranchError(f"MQTT: messages cannot be stored: {self._failure}") from self._failure
        return self._log.end

    def settle(self, quiet: float, longest: float) -> None:
        """Wait until no message has come for `quiet` seconds: the broker has sent what it had."""
        began = time.monotonic()
        while time.monotonic() - max(self._changed, began) < quiet and time.monotonic() - began < longest:
            time.sleep(0.05)

    def stop(self) -> None:
        """End the connection; the broker keeps the session."""
        self._client.disconnect()
        self._client.loop_stop()
        self._stopped.set()
        if self._writer.is_alive():
            self._writer.join()
        self._log.close()

    def _subscribe(self, has_session: bool) -> None:
        # A session has its subscriptions. Subscribing again would send retained messages again.
        if has_session:
            self._is_subscribed.set()
        else:
            self._client.subscribe(self._topic, qos=1)

    def _subscribed(self, client: Any, data: Any, number: int, reasons: Any, properties: Any) -> None:
        self._refusal = "".join(reason.getName() for reason in reasons if reason.is_failure)
        self._is_subscribed.set()

    def _receive(self, client: Any, data: Any, message: Any) -> None:
        arrived = Received(time.time_ns() // 1000, message.topic, bytes(message.payload))
        self._received.put((arrived, message.mid, message.qos))

    def _write(self) -> None:
        while not (self._stopped.is_set() and self._received.empty()):
            try:
                waiting = [self._received.get(timeout=0.1)]
            except queue.Empty:
                continue
            while len(waiting) < _TOGETHER and not self._received.empty():
                waiting.append(self._received.get())
            try:
                self._log.append([message for message, _, _ in waiting])
            except OSError as error:
                self._failure = error
                return
            self._changed = time.monotonic()
            for _, number, quality in waiting:
                self._client.ack(number, quality)
