"""NC901 firewall-blocked-ports: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_nccl_2_18_never_gets_an_answer() -> None:
    text = (
        "gpu-a7:1201:1240 [0] NCCL INFO Bootstrap : Using bond0:10.40.2.7<0>\n"
        "gpu-a7:1201:1240 [0] NCCL INFO comm 0x5581 rank 8 nranks 16 cudaDev 0 nvmlDev 0 busId 7000 comm"
        "Id 0x9f3 - Init START\n"
        "gpu-a7:1201:1240 [0] NCCL INFO socketPollConnect: Connect to 10.40.2.6<38311> returned 110(Conn"
        "ection timed out), errno 115\n"
        "gpu-a7:1201:1240 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.40.2.6<3831"
        "1> failed : Connection timed out\n"
        "gpu-a7:1201:1240 [0] NCCL INFO bootstrap.cc:269 -> 2\n"
    )
    assert_cause(text, "firewall-blocked-ports", {"gpu-a7", "rank 8"})


def test_gloo_is_rejected() -> None:
    text = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/app/main.py", line 9, in <module>\n'
        '[rank1]:     dist.init_process_group("gloo")\n'
        "[rank1]: RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp"
        "/pair.cc:144] timed out connecting: SO_ERROR: No route to host, remote=[192.168.4.20]:33841$1\n"
    )
    assert_cause(text, "firewall-blocked-ports", {"rank 1"})


def test_the_master_port_is_dropped() -> None:
    text = (
        "node4: [rank12]: torch.distributed.DistNetworkError: The client socket has timed out after 6000"
        "00ms while trying to connect to (10.2.0.1, 29500).\n"
        "node1: [rank0]: torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clien"
        "ts. 12/16 clients joined.\n"
    )
    assert_cause(text, "firewall-blocked-ports", {"node4", "rank 12"})
