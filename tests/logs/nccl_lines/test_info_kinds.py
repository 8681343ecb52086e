"""The kinds of INFO lines: what is noted of a process is never taken for mute."""

from __future__ import annotations

import pytest

from ncclcheck.logs.nccl_lines.info_kinds import (
    CHANNEL,
    CLOSELY,
    MEANT_NOTHING_ENOUGH,
    MUTE,
    NOTED,
    STAGE,
    InfoKinds,
    kind_of,
)
from ncclcheck.logs.nccl_lines.nccl_info import Notes
from ncclcheck.model.events import LogPosition

TELLING = [
    "Bootstrap : Using eth0:10.0.0.1<0>",
    "Bootstrap: Using eth0:10.0.0.1<0>",
    "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>",
    "NET/Socket : Using [0]eth0:10.0.0.1<0>",
    "Using network IB",
    "NCCL_SOCKET_IFNAME set by environment to eth0",
    "Loaded net plugin IBext (v8)",
    "Successfully loaded external network plugin AWS Libfabric",
    "P2P plugin IBext_v8",
    "GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
    "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}",
    "AllReduce: 1024 Bytes -> Algo 1 proto 2 time 5.0",
    "1024 Bytes -> Algo 1 proto 2 time 5.0",
    "cudaDriverVersion 12040",
    "NCCL version 2.27.7+cuda12.9",
    "16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels",
    "comm 0x55e rank 1 nRanks 8 nNodes 1 localRanks 8 localRank 1 MNNVL 0",
    "ncclCommInitRank comm 0x55 rank 0 nranks 2 cudaDev 0 busId 1b000 commId 0x3b - Init START",
]


@pytest.mark.parametrize("message", TELLING)
def test_what_is_noted_is_not_mute(message: str) -> None:
    notes = Notes("n1", 1, LogPosition("x", 1))
    empty = Notes("n1", 1, LogPosition("x", 1)).process(LogPosition("x", 1), None)
    stage = notes.info(message)
    assert stage is not None or notes.process(LogPosition("x", 1), None) != empty
    assert kind_of(message.encode()) == (STAGE if stage else NOTED)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (b"Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read", CHANNEL),
        (b"Channel 00/16 :    0   1   2   3", MUTE),
        (b"Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1", MUTE),
        (b"Ring 00 : 7 -> 0 -> 1", MUTE),
        (b"Failed to open libibverbs.so[.1]", CLOSELY),
    ],
)
def test_kinds(message: bytes, kind: int) -> None:
    assert kind_of(message) == kind


def test_a_shape_that_meant_nothing_often_enough_becomes_mute() -> None:
    kinds = InfoKinds(most=10)
    assert kinds.of(1, b"an error of no interest") == CLOSELY
    assert kinds.may_mean_something(1, "an error of no interest")
    for _ in range(MEANT_NOTHING_ENOUGH):
        kinds.meant_nothing(1)
    assert kinds.of(1, b"an error of no interest") == MUTE
    assert not kinds.may_mean_something(1, "an error of no interest")
