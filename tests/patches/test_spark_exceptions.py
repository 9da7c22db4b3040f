"""The patch that lets Spark raise errors of Anabranch; it is applied once, and only where it fits."""

from __future__ import annotations

from types import SimpleNamespace

from anabranch.errors import DataError
from anabranch.patches.spark_exceptions import install


def translate(error: Exception) -> Exception | None:
    return DataError("no time") if "time" in str(error) else None


def test_an_error_is_translated_or_left_to_spark() -> None:
    module = SimpleNamespace(recover_python_exception=lambda error: RuntimeError(f"of Spark: {error}"))
    assert install(module, translate)
    assert isinstance(module.recover_python_exception(ValueError("a time")), DataError)
    assert str(module.recover_python_exception(ValueError("else"))) == "of Spark: else"


def test_a_module_is_patched_once() -> None:
    module = SimpleNamespace(recover_python_exception=lambda error: error)
    assert install(module, translate)
    patched = module.recover_python_exception
    assert install(module, translate)
    assert module.recover_python_exception is patched


def test_a_module_of_another_shape_is_left_as_it_is() -> None:
    module = SimpleNamespace()
    assert not install(module, translate)
    assert vars(module) == {}
