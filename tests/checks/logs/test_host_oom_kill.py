"""NC927 host-oom-kill: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_kernel() -> None:
    text = (
        "u4 kernel: [881.1] Out of memory: Killed process 4412 (python) total-vm:91234kB\n"
        "[rank1]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:55"
        "44\n"
    )
    assert_cause(text, "host-oom-kill")


def test_kubelet() -> None:
    text = (
        "[pod/w-3/main] OOMKilled\n"
        "[rank0]: ncclRemoteError: A call failed possibly due to a network error or a remote process exi"
        "ting prematurely.\n"
    )
    assert_cause(text, "host-oom-kill", {"w-3"})


def test_torchrun_signal_9() -> None:
    text = (
        "E0101 00:00:01.000000 11 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode"
        ": -9) local_rank: 2 (pid: 99) of binary: /usr/bin/python3\n"
        "Root Cause (first observed failure):\n"
        "[0]:\n"
        "  time      : 2025-01-01_00:00:01\n"
        "  host      : e9\n"
        "  rank      : 2 (local_rank: 2)\n"
        "  exitcode  : -9 (pid: 99)\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 99\n"
    )
    assert_cause(text, "host-oom-kill", {"e9", "rank 2"})
