"""Logs that nobody wrote: the tests' own lines cut, spliced, doubled and flipped, the same ones at every run.

A mutation that leads to a meaning not seen so far is kept and mutated further, so the search goes where the readers
of lines have branches. SEEDS are what once went wrong, or came near.
"""

from __future__ import annotations

import random

import pytest

from ncclcheck.checks.logs._outcome import explained
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.events import Log, PythonException, Remark
from ncclcheck.model.snapshot import Snapshot

SNIPPETS = (
    b"0: n1:100:200 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n",
    b"n1:100:200 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]={[0] mlx5_1:1/RoCE} [RO]; OOB eth0:1<0>\n",
    b"[rank1]: n1:101:201 [1] NCCL INFO Channel 00/0 : 1[1] -> 8[0] [send] via NET/IB/1/GDRDMA\n",
    b"n1:100:200 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 commId 0x3b - Init START\n",
    b"n2:1:2 [0] socket.cc:4 NCCL WARN socketStartConnect: Connect to 10.0.0.1<4> failed : Connection refused\n",
    b"[rank3]:[E314 12:09:32.816323028 Process.cpp:616] [Rank 3] Watchdog caught collective operation timeout: "
    b"WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600671 ms\n",
    b"[rank2]: Traceback (most recent call last):\n[rank2]:   File \"/app/train.py\", line 3, in main\n"
    b"[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n",
    b"Root Cause (first observed failure):\n[0]:\n  time      : 2025-03-14_09:41:07\n  host      : n1\n"
    b"  rank      : 3 (local_rank: 3)\n  exitcode  : -9 (pid: 77)\n",
    b"srun: error: n2: tasks 8-15: Exited with exit code 1\n",
    b"2025-03-14T09:41:07.123Z 3: [W314 09:41:12.1 socket.cpp:759] [c10d] The client socket has failed to connect to "
    b"[h1]:29500 (errno: 111 - Connection refused).\n",
    b"Mar 14 09:41:07 n1 kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=77, GPU has fallen off the bus.\n",
    b"Timed out after 61 seconds waiting for clients. 3/4 clients joined.\n",
    b"epoch 1:  50%|#####     | 5/10\repoch 1: 100%|##########| 10/10\n",
    b"10.5.0.0/16 dev ens6f1 proto kernel scope link src 10.5.1.4 metric 100\n",
)  # fmt: skip
SEEDS = (
    b" [ NCCL INFO Channel  via \n",
    b"a [0] NCCL INFO a [0] NCCL INFO Init START\n",
    b"0: n:1:1 [0] NCCL INFO comm 0x rank 99999999999999999999 nranks 99999999999999999999 - Init START\n",
    b"2025-99-99T99:99:99Z rank 00000000: RuntimeError: \n",
    b"\x1b[\x1b[31m[rank\xff]: \n",
    b"tasks 0-99999999,1-2: Exited\nsrun: error: n: tasks 5-1,-,: Exited with exit code 999999999999\n",
    b"exitcode  : --\n  rank      : \n  host      : \n",
)
ROUNDS = 300


def mutated(source: random.Random, text: bytes, donor: bytes) -> bytes:
    """One or a few mutations of a text; `other` gives what is spliced in."""
    data = bytearray(text)
    for _ in range(source.randint(1, 4)):
        start = source.randrange(len(data) + 1)
        end = min(len(data), start + source.randrange(1, 60))
        how = source.randrange(7)
        if how == 0:
            del data[start:end]
        elif how == 1:
            data[start:start] = data[start:end] * source.randrange(1, 30)
        elif how == 2:
            cut = source.randrange(len(donor) + 1)
            data[start:end] = donor[cut : cut + source.randrange(1, 200)]
        elif how == 3 and start < len(data):
            data[start] ^= 1 << source.randrange(8)
        elif how == 4:
            data[start:end] = source.choice(
                (b"\n", b"\r", b"\0", b": ", b"NCCL ", b"[", b"9" * 40, b"\xe2\x82")
            )
        elif how == 5:
            del data[start:]
        else:
            lines = bytes(data).split(b"\n")
            source.shuffle(lines)
            data[:] = b"\n".join(lines)
    return bytes(data[:20_000])


def answered(text: bytes) -> frozenset[str]:
    """The meanings that were found; the answer must stand whatever the text is."""
    collector = Collector()
    collector.read("a", batches([text[: len(text) // 2]]))
    collector.read("b", batches([text[len(text) // 2 :]]))
    log = collector.log()
    assert decode(encode(log), Log) == log
    runs = run_checks(Snapshot(nodes=(), log=log), Selection(), "log")
    assert [run.slug for run in runs if run.outcome == "crashed"] == []
    verdict = explained(log, runs)
    topics = {event.topic if isinstance(event, Remark) else type(event).__name__ for event in log.events}
    kinds = {event.kind for event in log.events if isinstance(event, PythonException)}
    return frozenset(topics | kinds | {verdict.outcome} | {finding.slug for finding in verdict.findings})


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds(seed: bytes) -> None:
    assert answered(seed) == answered(seed)


@pytest.mark.parametrize("start", range(3))
def test_mutations_of_real_lines_give_an_answer(start: int) -> None:
    source = random.Random(start)  # noqa: S311
    pool = [*SNIPPETS, *SEEDS]
    seen: set[str] = set()
    for _ in range(ROUNDS):
        text = mutated(source, source.choice(pool) + source.choice(pool), source.choice(pool))
        meanings = answered(text)
        if not meanings <= seen:
            seen |= meanings
            pool.append(text)
    assert {"named", "undetermined", "ConnectFailure", "CommInit"} <= seen
