"""Optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from anabranch.errors import DataError

#: The extra of this package that installs a module.
_EXTRAS = {
    "confluent_kafka": "kafka",
    "fastavro": "kafka",
    "paho.mqtt.client": "mqtt",
    "psycopg": "postgres",
}


def optional_module(name: str) -> Any:
    """An optional module; if it is not installed, the error says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("_", "-")
        message = f"the package {package} is not installed; install it with: pip install 'anabranch[{_EXTRAS[name]}]'"
        raise DataError(message) from error
