"""The patch that ends the process while threads of PySpark are running."""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from anabranch.patches import python_exit

#: A thread is in C++ while the main thread ends, as those in which PySpark calls `foreachBatch`.
IN_ARROW = """
import atexit, sys, threading, time
import pyarrow as pa
from anabranch.patches import python_exit

arrived = threading.Event()

class Slow:
    closed = False
    def write(self, data):
        arrived.set()
        while True:
            time.sleep(0.001)
    def flush(self): pass
    def close(self): pass

def write():
    table = pa.table({{"a": [1]}})
    pa.ipc.new_stream(pa.PythonFile(Slow(), "w"), table.schema).write_table(table)

threading.Thread(target=write, daemon=True).start()
threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
atexit.register(print, "at exit")
arrived.wait()
{leave}(3)
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="threads wait while CPython ends since 3.14")
def test_without_it_a_thread_in_arrow_aborts_the_process() -> None:
    assert run("sys.exit").returncode == -6


def test_a_thread_in_arrow_leaves_the_exit_status() -> None:
    ended = run("python_exit.leave")
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "thread\nat exit\n", "")


def run(leave: str) -> subprocess.CompletedProcess[str]:
    code = IN_ARROW.format(leave=leave)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("threads", "exits"), [(threading, SimpleNamespace()), (None, atexit)])
def test_without_the_functions_of_cpython_it_raises_system_exit(threads: object, exits: object) -> None:
    waiting = threading.Thread(target=time.sleep, args=(0.2,), daemon=True)
    waiting.start()
    with pytest.raises(SystemExit) as ended:
        python_exit.leave(4, threads or SimpleNamespace(enumerate=threading.enumerate), exits)
    assert ended.value.code == 4
    waiting.join()


def test_without_threads_it_raises_system_exit() -> None:
    with pytest.raises(SystemExit) as ended:
        python_exit.leave(5, SimpleNamespace(enumerate=lambda: [threading.main_thread()], _shutdown=None), atexit)
    assert ended.value.code == 5
