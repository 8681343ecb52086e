"""NC903 master-addr-wrong: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_everybody_calls_localhost() -> None:
    text = (
        "[host2] [W socket.cpp:601] [c10d] The client socket has failed to connect to [localhost]:29500 "
        "(errno: 111 - Connection refused).\n"
        "[host2] [E socket.cpp:860] [c10d] The client socket has timed out after 1800s while trying to c"
        "onnect to (localhost, 29500).\n"
        "[host1] torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 8/1"
        "6 clients joined.\n"
    )
    assert_cause(text, "master-addr-wrong", {"host2"})


def test_endpoints_differ() -> None:
    text = (
        "[w1] exec torchrun --nnodes=2 --rdzv_endpoint=172.30.1.1:29400 --rdzv_backend=c10d t.py\n"
        "[w2] exec torchrun --nnodes=2 --rdzv_endpoint=172.30.9.9:29400 --rdzv_backend=c10d t.py\n"
        "[w2] [E socket.cpp:957] [c10d] The client socket has timed out after 60s while trying to connec"
        "t to (172.30.9.9, 29400).\n"
        "[w2] torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the "
        "C10d store has failed. See inner exception for details.\n"
    )
    assert_cause(text, "master-addr-wrong", {"w2"})


def test_nobody_listens_there() -> None:
    text = (
        "7: [W1005 10:00:00.1 socket.cpp:759] [c10d] The client socket has failed to connect to [10.6.0."
        "2]:23456 (errno: 111 - Connection refused).\n"
        "7: [E1005 10:05:00.1 socket.cpp:1011] [c10d] The client socket has timed out after 300000ms whi"
        "le trying to connect to (10.6.0.2, 23456).\n"
        "7: torch.distributed.DistNetworkError: The client socket has timed out after 300000ms while try"
        "ing to connect to (10.6.0.2, 23456).\n"
    )
    assert_cause(text, "master-addr-wrong", {"rank 7"})
