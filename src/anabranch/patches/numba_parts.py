"""Numba's compiler for called functions: what another compiled function calls gets no machine code of its own.

What is patched
    A second dispatcher of the same function, the *part*, serves the calls from compiled code: the methods
    `get_call_template` and `get_overload` of the first one are replaced by those of the part, by attributes of the same
    names on the object. The part's compiler sets the flags `no_compile` and `no_cpython_wrapper`. Its code library
    skips `_optimize_final_module`, and the last steps of `_finalize_final_module`: `_add_module` and
    `_finalize_specific`.
Why
    Numba links the code of a called function into its caller, and optimises it there. Before, it optimises the called
    function by itself, and emits machine code and a Python wrapper for it, which nothing here calls. That is half of
    the time of a first use.
Tried on
    Numba 0.68.1.
Where it does not fit
    Without these methods and flags, nothing is changed. Numba then emits code for called functions too, which takes
    longer.
"""

from __future__ import annotations

from typing import Any

from numba.core import codegen, compiler

_LIBRARY_STEPS = (
    "_finalize_dynamic_globals",
    "_finalize_final_module",
    "_optimize_final_module",
    "_verify_declare_only_symbols",
)


def use_parts(dispatcher: Any, part: Any) -> bool:
    """Let compiled callers of a dispatcher use `part`, which is compiled without machine code; return whether patched.

    Parameters
    ----------
    dispatcher, part : Any
        Two dispatchers of one function.
    """
    if not _fits(dispatcher):
        return False
    part._compiler = _PartCompiler(part._compiler)
    # By this counter Numba notices that a function calls itself.
    part._compiling_counter = dispatcher._compiling_counter
    dispatcher.get_call_template = part.get_call_template
    dispatcher.get_overload = part.get_overload
    return True


def _fits(dispatcher: Any) -> bool:
    return (
        all(hasattr(codegen.CPUCodeLibrary, name) for name in _LIBRARY_STEPS)
        and all(hasattr(compiler.Flags, flag) for flag in ("no_compile", "no_cpython_wrapper"))
        and all(
            hasattr(dispatcher, name)
            for name in ("get_call_template", "get_overload", "_compiler", "_compiling_counter")
        )
        and hasattr(dispatcher._compiler, "_customize_flags")
    )


class _PartCompiler:
    """A dispatcher's compiler that stops before machine code is emitted; the rest is Numba's."""

    def __init__(self, numba_compiler: Any) -> None:
        self._numba = numba_compiler
        numba_compiler._customize_flags = _without_machine_code
        numba_compiler.pipeline_class = _PartPipeline

    def compile(self, args: Any, return_type: Any) -> Any:
        """Compile for argument types; the result has a key instead of an entry point."""
        result = self._numba.compile(args, return_type)
        # Numba finds the code of a part by this object. It must be a built-in function unlike all others: the method of
        # a new list. Nothing calls it.
        result = result._replace(entry_point=[].append)
        result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numba, name)


def _without_machine_code(flags: Any) -> Any:
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    return flags


class _PartPipeline(compiler.Compiler):
    """Numba's pipeline with a code library that is neither optimised nor turned into machine code."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function into such a library."""
        library = self.state.targetctx.codegen().create_library(func.__qualname__)
        library.enable_object_caching()
        library._optimize_final_module = lambda: None
        library._finalize_final_module = lambda: _finish_without_machine_code(library)
        self.state.library = library
        return super().compile_extra(func)


def _finish_without_machine_code(library: Any) -> None:
    library._finalize_dynamic_globals()
    library._verify_declare_only_symbols()
    library._finalized = True
