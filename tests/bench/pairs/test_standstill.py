"""That node 0 stood still is seen from its own clock: a real process that is stopped, and one that only works hard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from ncclcheck.bench.pairs.standstill import Standstill

TELLS = """
import sys, time
from ncclcheck.bench.pairs.standstill import Standstill
with Standstill() as standstill:
    print("ready", flush=True)
    sys.stdin.readline()
    print(standstill.total_s(), flush=True)
"""


@pytest.mark.slow
def test_a_process_that_was_stopped_knows_for_how_long() -> None:
    words = [sys.executable, "-c", TELLS]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        time.sleep(3.0)
        os.kill(process.pid, signal.SIGCONT)
        took_s = time.monotonic() - stopped
        out, _ = process.communicate("now\n", timeout=30)
    assert 2.0 <= float(out) <= took_s + 1.0


def test_a_process_that_ran_did_not_stand_still() -> None:
    with Standstill() as standstill:
        assert standstill.total_s() == 0.0
