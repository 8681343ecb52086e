"""NC906 port-in-use: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_legacy_store() -> None:
    text = (
        "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Addre"
        "ss already in use).\n"
        "[E socket.cpp:462] [c10d] The server socket has failed to listen on any local network address.\n"
        "RuntimeError: The server socket has failed to listen on any local network address. The server s"
        "ocket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
    )
    assert_cause(text, "port-in-use")


def test_python_3_socket() -> None:
    text = (
        "0: Traceback (most recent call last):\n"
        '0:   File "/opt/l.py", line 2, in <module>\n'
        "0: OSError: [Errno 98] Address already in use\n"
    )
    assert_cause(text, "port-in-use", {"rank 0"})
