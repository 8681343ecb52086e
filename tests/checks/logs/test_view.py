"""Questions to a log."""

from __future__ import annotations

from ncclcheck.checks.logs._view import (
    alarms,
    culprits,
    finished_well,
    hosts_of_address,
    is_local,
    remarks,
    settings,
    silent_ranks,
    world_size,
)
from ncclcheck.model.events import LogPosition
from tests.checks.logs.explaining import read

LOG = read(
    """
0: a:1:1 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>
0: a:1:1 [0] NCCL INFO NCCL_DEBUG set by environment to INFO
0: a:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 3 cudaDev 0 busId 1 commId 0x2 - Init START
2: torch.distributed.DistStoreError: Timed out after 21 seconds waiting for clients. 2/3 clients joined.
"""
)


def test_who_never_spoke() -> None:
    assert world_size(LOG) == 3
    assert silent_ranks(LOG) == (1,)


def test_settings_and_addresses() -> None:
    assert list(settings(LOG, "NCCL_DEBUG")) == ["INFO"]
    assert hosts_of_address(LOG, "10.0.0.1") == ("a",)


def test_alarms_are_what_failed() -> None:
    assert alarms(LOG)
    assert not alarms(read("a:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0\n"))
    assert finished_well(read("training finished\n"))
    assert not finished_well(read("training finished\nValueError: x\n"))


def test_culprits_are_hosts_and_a_single_rank() -> None:
    assert culprits(LOG, [LogPosition("x", 1, 0)]) == ("a", "rank 0")
    assert culprits(LOG, [LogPosition("x", 1, 7)]) == ("rank 7",)
    assert culprits(LOG, [LogPosition("x", 1, 4, "b"), LogPosition("x", 2, 5, "b")]) == ("b",)


def test_local_addresses() -> None:
    assert [is_local(word) for word in ("127.0.1.1", "::1", "localhost", "10.0.0.1", "node1")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_topics() -> None:
    assert remarks(LOG, "no-such-topic") == ()
