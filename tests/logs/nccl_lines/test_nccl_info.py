"""What a process used, from the INFO lines of NCCL 2.7 to 2.32."""

from __future__ import annotations

import pytest

from ncclcheck.logs.nccl_lines.nccl_info import MOST_LINKS, Notes, version_in
from ncclcheck.model.events import Link, LogPosition, Process


def noted(*messages: str) -> Process:
    notes = Notes("n1", 7, LogPosition("job.log", 1))
    for message in messages:
        if message.startswith("Channel"):
            notes.channel(message.encode())
        else:
            notes.info(message)
    return notes.process(LogPosition("job.log", 1), 0)


@pytest.mark.parametrize(
    "line",
    [
        "Bootstrap : Using eth0:10.0.0.1<0>",
        "Bootstrap: Using eth0:10.0.0.1<0>",
        "Bootstrap : Using [0]eth0:10.0.0.1<0> [1]e:1<0>",
    ],
)
def test_the_interface(line: str) -> None:
    assert (noted(line).interface, noted(line).address) == ("eth0", "10.0.0.1")


@pytest.mark.parametrize(
    ("line", "devices"),
    [
        (
            "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>",
            ("mlx5_0:1/RoCE", "mlx5_1:1/IB"),
        ),
        (
            "NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]; OOB eth0:10.0.0.1<0>",
            ("mlx5_0:1/RoCE", "mlx5_1:1/RoCE"),
        ),
    ],
)
def test_rdma_devices(line: str, devices: tuple[str, ...]) -> None:
    assert noted(line).devices == devices


def test_ports_that_are_one_network_device_are_told() -> None:
    both = "[{0}]={{[{1}] mlx5_{1}:1/RoCE, [{2}] mlx5_{2}:1/RoCE}}"
    line = f"NET/IB : Using {both.format(0, 0, 1)} [2]mlx5_2:1/RoCE {both.format(2, 3, 4)} [RO]; OOB eth0:10.0.0.1<0>"
    assert noted(line).network_devices == (
        ("mlx5_0:1/RoCE", "mlx5_1:1/RoCE"),
        ("mlx5_2:1/RoCE",),
        ("mlx5_3:1/RoCE", "mlx5_4:1/RoCE"),
    )
    assert (
        noted("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>").network_devices == ()
    )


@pytest.mark.parametrize(
    "line",
    [
        "comm 0x55 rank 3 nranks 8 cudaDev 0 busId 1b000 commId 0x9 - Init COMPLETE",
        "ncclCommInitRank comm 0x55 rank 3 nranks 8 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x9 - Init COMPLETE",
        "[Rank 3] ncclCommInitRankConfig comm 0x55 rank 3 nranks 8 cudaDev 0 busId 1b000 commId 0x9 - Init COMPLETE",
        "ncclCommSplit comm 0x55 rank 3 nranks 8 cudaDev 0 busId 1b000 parent 0x4 color 1 commId 0x9- Init COMPLETE",
    ],
)
def test_communicators(line: str) -> None:
    notes = Notes("n1", 7, LogPosition("job.log", 1))
    assert notes.info(line) == ("complete", "0x9", 3, 8)


def test_the_rest() -> None:
    process = noted(
        "NCCL version 2.27.3+cuda12.8",
        "cudaDriverVersion 12080",
        "NCCL_SOCKET_IFNAME set by environment to ^lo,docker0",
        "NCCL_IB_DISABLE set by environment to 1.",
        "Using network AWS Libfabric",
        "comm 0x55 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0",
        "Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM/read",
        "Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0/GDRDMA",
        "8 coll channels, 0 collnet channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer",
        "AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}",
    )
    assert (process.nccl_version, process.cuda_version, process.driver_version) == ("2.27.3", "12.8", "12080")
    assert process.settings == {"NCCL_SOCKET_IFNAME": "^lo,docker0", "NCCL_IB_DISABLE": "1"}
    assert (process.network, process.nodes, process.local_ranks, process.channels) == (
        "AWS Libfabric",
        2,
        8,
        8,
    )
    assert process.links == (Link(3, 4, "P2P/CUMEM/read"), Link(3, 11, "NET/IB/0/GDRDMA"))
    assert process.algorithms == ("AllReduce RING LL",)


@pytest.mark.parametrize(
    ("line", "algorithm"),
    [
        ("4096 Bytes -> Algo 0 proto 0 time 26.799999", "TREE LL"),  # 2.20 to 2.22
        ("268435456 Bytes -> Algo 5 proto 2 time 1206.1", "NVLS_TREE SIMPLE"),
        ("AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008", "AllGather RING SIMPLE"),  # 2.23
        ("AllReduce: 4096 Bytes -> Algo 99 proto 1 time 1.0", "AllReduce 99 LL128"),
        ("AllReduce: 4096 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}", "AllReduce NVLS SIMPLE"),
    ],
)
def test_algorithm_and_protocol_in_the_words_of_every_version(line: str, algorithm: str) -> None:
    assert noted(line).algorithms == (algorithm,)


def test_channels_are_bounded() -> None:
    assert (
        len(noted(*(f"Channel 00 : 0[0] -> {rank}[0] via P2P/IPC" for rank in range(1000))).links)
        == MOST_LINKS
    )


def test_a_bare_version_line() -> None:
    assert version_in("NCCL version 2.21.5+cuda12.4") == ("2.21.5", "12.4")
    assert version_in("no version") is None


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("21.0.3", "2.10.3"),
        ("20.9.6", "2.9.6"),
        ("2.10.3", "2.10.3"),
        ("2.30.7", "2.30.7"),
        ("2.4.8", "2.4.8"),
    ],
)
def test_a_version_that_an_old_torch_took_apart_wrongly_is_nccls_own(said: str, version: str) -> None:
    assert version_in(f"unhandled system error, NCCL version {said}") == (version, "")
