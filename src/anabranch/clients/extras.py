"""Optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from anabranch.errors import AnabranchError

#: The extra of this package that installs a module.
_EXTRAS = {"confluent_kafka": "kafka", "paho.mqtt.client": "mqtt", "psycopg": "postgres"}


def optional_module(name: str) -> Any:
    """An optional module; if it is not installed, the error says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        extra = _EXTRAS[name]
        raise AnabranchError(f"this needs another package; install it with pip install 'anabranch[{extra}]'") from error
