"""What the programs of peers share: they get a request as a JSON file, and print one line of JSON.

The programs run in environments without Anabranch, so they import nothing from this project but this module and
`processes.py`, which need no packages.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

# At the end: modules of this folder must not shadow others of the same name.
sys.path.append(str(Path(__file__).parents[2]))

from processes import family_of


def answer(make: Callable[[dict], Callable[[], list[float]]]) -> None:
    """Time the function that `make` returns for the request, and print the seconds of each run and the answers.

    The processor time is that of this process and its descendants, such as a JVM.
    """
    request = json.loads(Path(sys.argv[1]).read_text())
    run = make(request)
    seconds, processor = [], []
    for _ in range(1 + request["rounds"]):
        start, used = time.perf_counter(), _processor_time()
        answers = run()
        seconds.append(time.perf_counter() - start)
        processor.append(_processor_time() - used)
    values = [float(value) for value in answers]
    print(json.dumps({"seconds": seconds, "processor": processor, "answers": values}))


def _processor_time() -> float:
    return sum(process.seconds for process in family_of(os.getpid()))
