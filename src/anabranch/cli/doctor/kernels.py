"""The checks of the compiled kernels, and of the cache that has them."""

from __future__ import annotations

from anabranch.caches import VARIABLE, cache_folders, writable_cache_folder
from anabranch.cli.doctor.result import Result, ok, slow
from anabranch.compiled.build import SECONDS, all_families, missing_families
from anabranch.compiled.store import FOLDER, folders


def kernels() -> Result:
    """Which kernels this machine has."""
    missing = missing_families(all_families())
    if missing:
        seconds = max(SECONDS.get(family, 1) for family in missing)
        advice = f"the first query that needs them compiles them, for up to {seconds} s"
        if writable_cache_folder(FOLDER) is None:
            advice = "each process compiles what it uses, every time"
        return slow(
            f"not compiled: {', '.join(missing)}", f"{advice}; `python -m anabranch.compiled.build` compiles all"
        )
    used = [str(folder) for folder in folders() if any(folder.glob("*.kernel"))]
    return ok(f"compiled for this machine ({', '.join(used)})")


def cache_folder() -> Result:
    """Whether there is a folder for what later commands can use again, such as compiled kernels."""
    preferred, used = next(cache_folders(FOLDER)).parent, writable_cache_folder(FOLDER)
    advice = f"set {VARIABLE} to a folder that only you can write"
    if used is None:
        return slow("no folder is writable", advice)
    if used.parent != preferred:
        return slow(f"{preferred} is not writable, so {used.parent} is used", advice)
    return ok(f"{preferred} is writable")
