"""NC904 hostname-resolution: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_a_name_that_dns_does_not_have() -> None:
    text = (
        "3: [W socket.cpp:663] [c10d] The IPv4 network addresses of (gpu-head.old.example, 29500) cannot"
        " be retrieved (gai error: -3 - Temporary failure in name resolution).\n"
        "3: torch.distributed.DistNetworkError: The client socket has timed out after 900s while trying "
        "to connect to (gpu-head.old.example, 29500).\n"
    )
    assert_cause(text, "hostname-resolution", {"rank 3"})


def test_python_says_it() -> None:
    text = (
        "[node9] Traceback (most recent call last):\n"
        '[node9]   File "run.py", line 3, in <module>\n'
        "[node9] socket.gaierror: [Errno -2] Name or service not known\n"
    )
    assert_cause(text, "hostname-resolution", {"node9"})
