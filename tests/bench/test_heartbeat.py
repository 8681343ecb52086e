"""A process notices for how long it was stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone

STOPPED_S = 0.4
# Says how much it overslept once that is more than the machine's own jitter, and what it says when asked again.
PROGRAM = """
import sys, time
from ncclcheck.bench.heartbeat import Heartbeat
heartbeat = Heartbeat()
print("ready", flush=True)
sys.stdin.readline()
end, overslept = time.monotonic() + 20, 0.0
while overslept < 0.3 and time.monotonic() < end:
    overslept += heartbeat.take_s()
    time.sleep(0.005)
print(overslept, heartbeat.take_s())
"""


def test_a_stop_is_noticed_in_full_and_told_once() -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    argv = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        began = time.monotonic()
        time.sleep(STOPPED_S)  # what is measured
        stopped_s = time.monotonic() - began
        os.kill(child.pid, signal.SIGCONT)
        overslept, again = (float(word) for word in child.communicate("now\n", timeout=30)[0].split())
    assert stopped_s - 0.1 < overslept < stopped_s + 2.0
    assert again < 0.3
