# ruff: noqa: E501 (lines as NCCL writes them)
"""Benchmarks of NCCL ranks as their own logs tell of them: lines as NCCL writes them, read by the one parser."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.bench import BenchPlan, BenchResult, NodeLog, Op, Point, RankTime, TimeUs
from ncclcheck.model.snapshot import Snapshot
from tests.fact_builders import host_of

DEVICES = " ".join(f"[{rail}]mlx5_{rail}:1/IB" for rail in range(8))
# NCCL 2.18 writes "Bootstrap : Using" and numbers of algorithms, 2.28 "Bootstrap: Using" and their names.
OLD = """\
{host}:{pid}:{pid} [0] NCCL INFO NCCL version 2.18.6+cuda12.1
{host}:{pid}:{pid} [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
{host}:{pid}:{pid} [0] NCCL INFO {net}
{host}:{pid}:{pid} [0] NCCL INFO Using network {network}
{host}:{pid}:{pid} [0] NCCL INFO comm 0x55d0 rank {rank} nranks {ranks} cudaDev 0 nvmlDev 0 busId 1000 commId 0x5c1d3f70a9be11aa - Init START
{host}:{pid}:{pid} [0] NCCL INFO Channel 00/0 : {rank}[0] -> {next}[0] [send] via {via}
{host}:{pid}:{pid} [0] NCCL INFO 16 coll channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer
{host}:{pid}:{pid} [0] NCCL INFO 4194304 Bytes -> Algo 1 proto 2 time 190.000000
"""
NEW = """\
{host}:{pid}:{pid} [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>
{host}:{pid}:{pid} [0] NCCL INFO NCCL version 2.28.9+cuda12.9
{host}:{pid}:{pid} [0] NCCL INFO {net}
{host}:{pid}:{pid} [0] NCCL INFO Initialized NET plugin {network}
{host}:{pid}:{pid} [0] NCCL INFO Using network {network}
{host}:{pid}:{pid} [0] NCCL INFO ncclCommInitRankConfig comm 0x55d0 rank {rank} nranks {ranks} cudaDev 0 nvmlDev 0 busId 1000 commId 0x5c1d3f70a9be11aa - Init START
{host}:{pid}:{pid} [0] NCCL INFO Channel 00/0 : {rank}[0] -> {next}[0] [send] via {via}
{host}:{pid}:{pid} [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer
{host}:{pid}:{pid} [0] NCCL INFO AllReduce: 4194304 Bytes -> Algo {algorithm} proto SIMPLE channel{{Lo..Hi}}={{0..15}}
"""
IB: dict[str, Any] = {
    "net": f"NET/IB : Using {DEVICES} [RO]; OOB eth0:10.0.0.1<0>",
    "network": "IB",
    "via": "NET/IB/0/GDRDMA",
}
SOCKET: dict[str, Any] = {
    "net": "NET/Socket : Using [0]eth0:10.0.0.1<0>",
    "network": "Socket",
    "via": "NET/Socket/0",
}


def node_log(host: str, *ranks: int, of: int = 4, text: str = NEW, **words: str) -> NodeLog:
    """What the ranks of a host wrote, each a process of its own, which uses the card of its rail."""
    collector = Collector()
    for rank in ranks:
        if "via" in words:
            words["via"] = re.sub(r"^NET/IB/\d", f"NET/IB/{rank % 8}", words["via"])
        filled = text.format(
            host=host,
            pid=1000 + rank,
            rank=rank,
            ranks=of,
            next=(rank + 1) % of,
            **{"algorithm": "RING", **words},
        )
        collector.read(f"rank-{rank}", batches([filled.encode()]))
    return NodeLog(
        host, tuple(replace(process, host=host, settings={}) for process in collector.log().processes)
    )


def nccl_point(op: Op, size_bytes: int, busbw_gb_s: float, ranks: int = 4, nodes: int = 4) -> Point:
    """A point of that bandwidth."""
    time_us = size_bytes / 1e3 / busbw_gb_s
    return Point(
        op=op,
        size_bytes=size_bytes,
        count=size_bytes // 4,
        dtype="float32",
        iters=50,
        time_us=TimeUs(time_us, time_us, time_us, time_us, None, time_us),
        first_us=time_us,
        algbw_gb_s=busbw_gb_s,
        busbw_gb_s=busbw_gb_s,
        wrong=0,
        unstable=None,
        ranks=tuple(RankTime(rank, host_of(rank * nodes // ranks), 1.0, time_us) for rank in range(ranks)),
    )


def with_nccl_bench(
    snapshot: Snapshot, *logs: NodeLog, points: tuple[Point, ...] = (), ranks: int = 4, **changes: Any
) -> Snapshot:
    """The snapshot with a benchmark of NCCL ranks, those logs and those points."""
    nodes = len(snapshot.nodes)
    measured = points or (nccl_point("all_reduce", 1 << 30, 190.0, ranks, nodes),)
    ops = tuple(dict.fromkeys(point.op for point in measured))
    sizes = tuple(dict.fromkeys(point.size_bytes for point in measured))
    plan = BenchPlan("nccl", ops, sizes, "float32", 5, None, 20.0, True)
    bench = BenchResult("nccl", ranks, nodes, plan, "nccl", measured, logs=logs)
    return replace(snapshot, bench=replace(bench, **changes))
