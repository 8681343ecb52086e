"""Reading stays fast: 1 GB of lines that all differ, of 1,024 ranks, in at most 30 s; here a part of it.

Measured in processor time, with room for slow machines; `grep -c NCCL` on the same bytes is recorded beside it.
"""

from __future__ import annotations

import random
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from tests.logs.rounds import explain

RANKS = 1024
BYTES = 40_000_000
SECONDS_PER_BYTE = 30 / 1e9
ONCE_S = 3.0  # what the first lines of 1,024 ranks cost, whatever follows
SLOW_MACHINE = 3
CHUNK = 1 << 20


def varied(size_bytes: int) -> Iterator[bytes]:
    """Start-up lines and progress of all ranks as `srun -l` shows them; no two lines are the same."""
    pick = random.Random(7).randrange  # noqa: S311
    written = rank = 0
    while written < size_bytes:
        rank = (rank + 1) % RANKS
        host, peer, stamp = rank // 8, pick(RANKS), f"2025-03-14T09:41:07.{pick(10**6):06d}Z"
        head = f"{rank:4d}: {stamp} node{host:03d}:{9000 + rank}:{9000 + rank} [{rank % 8}] NCCL INFO "
        lines = [
            f"Bootstrap : Using eth0:10.0.{host}.1<0>",
            f"Trees [0] {peer}/-1/-1->{rank}->{pick(RANKS)} [1] {pick(RANKS)}/-1/-1->{rank}->{peer}",
        ]
        for channel in range(12):
            lines += (
                f"Channel {channel:02d}/0 : {rank}[0] -> {peer}[{peer % 8}] [send] via NET/IB/{pick(8)}/GDRDMA",
                f"Ring {channel:02d} : {pick(RANKS)} -> {rank} -> {peer} comm 0x{pick(1 << 40):x} nRanks {RANKS}",
                f"Connected to proxy localRank {pick(8)} -> connection 0x7f{pick(1 << 40):010x}",
                f"AllReduce: opCount {pick(1 << 20):x} sendbuff 0x7f{pick(1 << 40):010x} count {pick(1 << 20)} "
                f"datatype 9 op 0 root 0 comm 0x{pick(1 << 40):x} [nranks={RANKS}] stream 0x{pick(1 << 40):x}",
                f"NET/IB: NCCL Dev {pick(8)} IbDev {pick(8)} Port 1 qpn {pick(65536)} mtu 5 LID {pick(65536)} "
                f"GID {pick(4)} ({pick(1 << 60):X}/{pick(1 << 60):X}) fifoRkey=0x{pick(1 << 32):x}",
            )
        block = "".join(f"{head}{line}\n" for line in lines)
        block += f"{rank:4d}: {stamp} step {pick(10**6)} loss {pick(10**6) / 1e6} shard /data/{pick(1 << 60):x}.tar\n"
        written += len(block)
        yield block.encode()


@pytest.mark.slow
def test_a_gigabyte_takes_half_a_minute_at_most(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = tmp_path / "job.log"
    with path.open("wb") as stream:
        stream.writelines(varied(BYTES))
    size, clock = path.stat().st_size, []
    grep = subprocess.run(["grep", "-c", "NCCL", str(path)], capture_output=True, text=True, check=True)
    grep_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    def chunks() -> Iterator[bytes]:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                clock.append(time.process_time())
                yield chunk
        clock.append(time.process_time())

    collector = Collector()
    collector.read("job.log", batches(chunks()))
    log = collector.log()
    took = time.process_time() - clock[0]
    record_property("megabytes, seconds, seconds of grep and what ran before it", (size / 1e6, took, grep_s))
    assert len(log.processes) == RANKS
    assert log.files[0].lines > int(grep.stdout)
    assert took <= SLOW_MACHINE * (ONCE_S + size * SECONDS_PER_BYTE)
    middle = len(clock) // 2
    assert clock[-1] - clock[middle] <= 1.5 * (clock[middle] - clock[0]), "the second half is no dearer"


def test_a_megabyte_takes_less_than_a_second() -> None:
    start = time.process_time()
    collector = Collector()
    collector.read("job.log", batches(varied(1_000_000)))
    assert collector.log().processes
    assert time.process_time() - start <= SLOW_MACHINE * 1.0


def failures(ranks: int) -> bytes:
    """Return the end of a job whose ranks all timed out but for one: each says so on several lines."""
    lines = []
    for rank in range(ranks):
        head = f"[rank{rank}]:[E1124 10:23:01.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] "
        lines += [
            f"$ srun -n1 python train.py --node_rank {rank}",
            f"{head}Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, "
            "Timeout(ms)=600000) ran for 600010 milliseconds before timing out.",
            f"{head}Timeout at NCCL work: 812, last enqueued NCCL work: 812, last completed NCCL work: 811.",
            f"[rank{rank}]: Traceback (most recent call last):",
            f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1331, remote process exited",
        ]
    return "\n".join(lines).encode()


@pytest.mark.slow
def test_the_time_grows_with_the_ranks_that_failed_and_not_with_their_square() -> None:
    took = []
    for ranks in (64, 512, 2048):
        start = time.process_time()
        assert explain("job.log", failures(ranks)).findings
        took.append(time.process_time() - start)
    assert took[2] <= 8 * took[1], f"{took} s for 64 (to warm up), 512 and 2,048 ranks"
