"""A process notices for how long it was stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ncclcheck.bench.heartbeat import Heartbeat, waited_ns

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
    overslept += heartbeat.take().stood_s
    time.sleep(0.005)
print(overslept, heartbeat.take().stood_s)
"""


@pytest.mark.alone
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


def crowd(threads: Path, **waited_ns: int) -> None:
    """The kernel's account of the threads of a process: time on a core, time waiting for one, time slices."""
    for name, waited in waited_ns.items():
        (threads / name).mkdir(exist_ok=True)
        (threads / name / "schedstat").write_text(f"5000 {waited} 7\n")


def test_what_threads_waited_for_a_core_is_added_up_and_told_once(tmp_path: Path) -> None:
    crowd(tmp_path, t1=1_000_000, t2=2_000_000)
    heartbeat = Heartbeat(tmp_path)
    time.sleep(0.05)  # as long as they are said to have waited: nobody waits longer than there was time
    crowd(tmp_path, t1=11_000_000, t3=5_000_000)
    assert heartbeat.take().waited_s == pytest.approx(0.015)
    assert heartbeat.take().waited_s == 0.0


def test_nobody_waits_longer_than_there_was_time(tmp_path: Path) -> None:
    crowd(tmp_path, t1=0)
    heartbeat = Heartbeat(tmp_path)
    crowd(tmp_path, t1=10**15)
    assert heartbeat.take().waited_s < 60.0


def test_where_the_kernel_keeps_no_account_nothing_is_made_up(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "schedstat").write_text("0 0\n")
    assert waited_ns(tmp_path) == {"2": 0}
    assert waited_ns(tmp_path / "nothing") == {}
    assert Heartbeat(tmp_path).take().waited_s == 0.0


class _Told:
    """An account of a thread that waited for so long since the last beat."""

    def __init__(self, waited_s: float) -> None:
        self._waited_s = waited_s

    def waited_s(self) -> float:
        """As the kernel would say."""
        return self._waited_s


@pytest.mark.parametrize(
    ("own_s", "maker_s", "stood"), [(0.0, 0.0, True), (1.9, 0.0, False), (0.0, 1.9, False)]
)
def test_a_beat_that_is_late_for_lack_of_a_core_or_of_pythons_lock_is_no_standstill(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_s: float, maker_s: float, stood: bool
) -> None:
    beats_of = sys.modules[Heartbeat.__module__]
    monkeypatch.setattr(beats_of, "_beat", lambda _of, ready: ready.set())  # the test beats
    heartbeat = Heartbeat(tmp_path)
    heartbeat._last = time.monotonic() - 2.0
    heartbeat.beat([_Told(own_s), _Told(maker_s)])  # type: ignore[list-item]
    assert (heartbeat.take().stood_s > 1.5) is stood


def test_it_ends_with_its_owner() -> None:
    before = set(threading.enumerate())
    heartbeat = Heartbeat()
    (beating,) = set(threading.enumerate()) - before
    del heartbeat
    beating.join(10)
    assert not beating.is_alive()
