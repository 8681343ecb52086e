"""Jobs as launchers start them in odd shapes, each with the verdict that was written down before it was first run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tests.lab.launcher_starts import (
    SHORT,
    Ended,
    LauncherCase,
    Process,
    by_hand,
    c10d,
    check,
    head,
    hydra,
    lines,
    mpirun,
    on_slurm,
    ranks,
    sbatch,
    srun,
    static,
    telling,
)
from tests.lab.nodes import Lab


def _one_of(*numbers: int) -> tuple[str, ...]:
    return tuple(str(number) for number in numbers)


_MASTER = "--master-addr=node1"
_TWICE = ("torchrun", "torchrun")
_UNEVEN = ("node1", "node1", "node1", "node2", "node3", "node3")
_SAGEMAKER = '["node1", "node2", "node3"]'
_OMPI_RANK = telling("OMPI_COMM_WORLD_RANK")
_SLURM_RANK = telling("SLURM_PROCID")
_BUSY_STEP = """
srun --overlap -N2 -n2 sleep 60 &
sleep 2
srun --overlap -N2 -n2 {check}
code=$?
kill %1
exit $code
"""


def _case(name: str, nodes: int, start: Callable[[Lab, ExitStack], Ended], **verdict: Any) -> LauncherCase:
    for field in ("exits", "slugs"):
        if field in verdict:
            verdict[field] = frozenset(verdict[field])
    return LauncherCase(name, nodes, start, **verdict)


CASES = (
    # torchrun
    _case(
        "torchrun-static-endpoint", 2,
        lines(static(0, "--rdzv-endpoint=node1:29511"), static(1, "--rdzv-endpoint=node1:29511")),
        seen=2, started=_TWICE,
    ),
    _case(
        "torchrun-static-endpoint-without-port", 2,
        lines(static(0, "--rdzv-endpoint=node1"), static(1, "--rdzv-endpoint=node1")),
        exits={2}, says="needs a port",
    ),
    _case("torchrun-c10d-endpoint-without-port", 2, lines(c10d("node1"), c10d("node1:29400")), seen=2, started=_TWICE),
    _case(
        "torchrun-range-with-fewer-nodes", 3,
        lines(c10d("node1", nnodes="1:3"), c10d("node1", nnodes="1:3"), before=SHORT), seen=2, started=_TWICE,
    ),
    _case(
        "torchrun-range-with-too-few-nodes", 3,
        lines(c10d("node1", nnodes="3:4"), c10d("node1", nnodes="3:4"), before=SHORT),
        exits={3}, seen=2, slugs={"node-silent"},
    ),
    _case("torchrun-standalone", 1, lines(("--standalone", "--nproc-per-node=2")), seen=1, started=("torchrun",)),
    _case(
        "torchrun-standalone-of-two-nodes", 2, lines(("--standalone", "--nnodes=2"), ("--standalone", "--nnodes=2")),
        exits={2}, says="--standalone",
    ),
    _case(
        "torchrun-node-rank-is-a-name", 2,
        lines(static(0, _MASTER), ("--nnodes=2", "--node-rank=node2", _MASTER), before=SHORT),
        exits={2, 3}, seen=1, slugs={"node-silent"}, says="--node-rank",
    ),
    _case(
        "torchrun-node-rank-with-a-zero", 2,
        lines(("--nnodes=2", "--node-rank=00", _MASTER), ("--nnodes=2", "--node-rank=01", _MASTER)),
        seen=2, started=_TWICE,
    ),
    _case(
        "torchrun-address-here-name-there", 2,
        lines(static(0, "--master-addr=10.78.0.1"), static(1, _MASTER)), seen=2, started=_TWICE,
    ),
    _case(
        "torchrun-ipv6-endpoint", 2, lines(c10d("[fd78::1]:29400"), c10d("[fd78::1]:29400")),
        # Its host name has no IPv6 address, so torch does not recognise the host (_matches_machine_hostname is False).
        exits={1}, seen=2, slugs={"rendezvous-host"}, ipv6=True,
    ),
    _case(
        "torchrun-ipv6-master", 2, lines(static(0, "--master-addr=fd78::1"), static(1, "--master-addr=fd78::1")),
        seen=2, started=_TWICE, ipv6=True,
    ),
    _case(
        "torchrun-other-number-of-nodes", 2,
        lines(static(0, _MASTER), static(1, _MASTER, nnodes=3), before=SHORT),
        exits={1}, seen=2, slugs={"world-size-mismatch"},
    ),
    _case(
        "torchrun-other-number-of-processes", 2,
        lines(static(0, _MASTER, "--nproc-per-node=2"), static(1, _MASTER, "--nproc-per-node=4")),
        seen=2, started=_TWICE,
    ),
    _case(
        "torchrun-two-jobs-on-one-endpoint", 4,
        lines(
            c10d("node1", "--rdzv-id=7"), c10d("node1", "--rdzv-id=7"), c10d("node1", "--rdzv-id=8"),
            c10d("node1", "--rdzv-id=8"),
        ),
        exits={1}, slugs={"rendezvous-id"},
    ),
    _case(
        "torchrun-two-jobs-with-one-master", 4,
        lines(*(static(rank, _MASTER) for rank in (0, 1, 0, 1))), exits={1}, slugs={"rank-duplicate"},
    ),
    # Slurm
    _case("srun-uneven", 3, srun("-N3", "-n5", words=_SLURM_RANK), seen=3, started=_one_of(0, 1, 2, 3, 4)),
    _case(
        "srun-cyclic", 3, srun("-N3", "-n5", "-m", "cyclic", words=_SLURM_RANK),
        seen=3, started=_one_of(0, 1, 2, 3, 4),
    ),
    _case("srun-number-of-tasks-only", 3, srun("-n2", words=_SLURM_RANK), seen=1, started=_one_of(0, 1)),
    _case("srun-one-task-on-two-nodes", 3, srun("-N2", "-n1"), seen=1),
    _case("srun-beside-another-step", 3, sbatch("-N2", "-n2", script=_BUSY_STEP), seen=2),
    _case("srun-in-an-array", 2, sbatch("-N1", "--array=0-1", script="srun -N1 -n1 {check}\n"), seen=1),
    _case("sbatch-without-srun", 2, sbatch("-N2", script="{check}\n"), seen=1, says="only this node was looked at"),
    _case(
        "srun-of-two-components", 3,
        on_slurm(
            lambda report: [
                "srun", "--kill-on-bad-exit=0", "-N1", "-n1", *check(report), ":", "-N2", "-n2", *check(report),
            ]
        ),
        seen=3,
    ),
    _case(
        "srun-then-torchrun", 3,
        on_slurm(
            lambda report: [
                "srun", "--kill-on-bad-exit=0", "-N3", "--ntasks-per-node=1", "sh", "-c",
                " ".join(check(report)) + f" -- torchrun --nnodes 3 --node-rank $SLURM_NODEID {_MASTER} train.py",
            ]
        ),
        seen=3, started=(*_TWICE, "torchrun"),
    ),
    _case(
        "mpirun-in-an-allocation", 3,
        on_slurm(
            lambda report: [
                *("salloc", "-N3", "-n5", "mpirun", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe"),
                *("-np", "5"), *check(report, *_OMPI_RANK),
            ]
        ),
        seen=3, started=_one_of(0, 1, 2, 3, 4),
    ),
    # mpirun
    _case(
        "mpirun-round-robin", 3, mpirun("-np", "5", "--map-by", "node", words=_OMPI_RANK),
        seen=3, started=_one_of(0, 1, 2, 3, 4),
    ),
    _case(
        "mpirun-on-some-of-the-hosts", 3, mpirun("-np", "4", slots=(3, 3, 3), words=_OMPI_RANK),
        seen=2, started=_one_of(0, 1, 2, 3),
    ),
    _case("mpirun-on-one-host", 3, mpirun("-np", "2", words=_OMPI_RANK), seen=1, started=_one_of(0, 1)),
    _case(
        "mpirun-rank-0-elsewhere", 3,
        mpirun("--rankfile", "{folder}/rankfile", words=_OMPI_RANK, env={"MASTER_ADDR": "node2"}),
        seen=2, started=_one_of(0, 1, 2),
    ),
    _case(
        "mpirun-rank-0-elsewhere-and-not-told", 3, mpirun("--rankfile", "{folder}/rankfile", words=_OMPI_RANK),
        exits={1}, slugs={"master-not-first-node"},
    ),
    _case(
        "mpirun-with-a-port", 3, mpirun("-np", "3", "--map-by", "node", env={"MASTER_PORT": "29777"}), seen=3,
    ),
    _case(
        "mpirun-with-its-number-of-nodes", 3, mpirun(words=("--nnodes", "3", *_OMPI_RANK), slots=(2, 1, 1)),
        seen=3, started=_one_of(0, 1, 2, 3),
    ),
    _case(
        "mpirun-with-another-number-of-nodes", 3, mpirun(words=("--nnodes", "2"), slots=(2, 1, 1)),
        exits={1}, seen=3, slugs={"world-size-mismatch"},
    ),
    _case("hydra-uneven", 3, ranks(_UNEVEN, hydra(_UNEVEN)), seen=3, started=_one_of(*range(6))),
    # Plain variables
    _case(
        "ranks-without-local-ranks", 2, ranks(("node1", "node1", "node2", "node2"), lambda _rank, _local: {}),
        seen=2, started=_one_of(0, 1, 2, 3),
    ),
    _case(
        "ranks-round-robin-without-local-ranks", 2,
        ranks(("node1", "node2", "node1", "node2"), lambda _rank, _local: {}), seen=2, started=_one_of(0, 1, 2, 3),
    ),
    _case(
        "world-size-not-divisible", 3,
        ranks(
            _UNEVEN,
            lambda rank, local: {"LOCAL_RANK": str(local), "LOCAL_WORLD_SIZE": str(_UNEVEN.count(_UNEVEN[rank]))},
        ),
        seen=3, started=_one_of(*range(6)),
    ),
    _case(
        "local-size-missing", 2,
        ranks(
            ("node1", "node1", "node2", "node2"),
            lambda rank, local: {"LOCAL_RANK": str(local), "NODE_RANK": str(rank // 2)},
        ),
        seen=2, started=_one_of(0, 1, 2, 3),
    ),
    _case(
        "master-port-of-a-kubernetes-service", 2,
        ranks(("node1", "node2"), lambda _rank, _local: {"MASTER_PORT": "tcp://10.78.0.1:29500"}),
        exits={2}, says="MASTER_PORT",
    ),
    _case(
        "master-port-zero", 2, ranks(("node1", "node2"), lambda _rank, _local: {"MASTER_PORT": "0"}),
        exits={2}, says="MASTER_PORT",
    ),
    _case(
        "two-ranks-on-localhost", 1, ranks(("node1", "node1"), lambda _rank, _local: {}, "localhost"),
        seen=1, started=_one_of(0, 1),
    ),
    _case(
        "rank-0-twice", 2,
        ranks(("node1", "node2"), lambda _rank, _local: {"RANK": "0"}), exits={1}, slugs={"rank-duplicate"},
    ),
    _case(
        "sagemaker", 3,
        by_hand(
            *(Process(f"node{k}", (), {"SM_HOSTS": _SAGEMAKER, "SM_CURRENT_HOST": f"node{k}"}) for k in (1, 2, 3))
        ),
        seen=3,
    ),
    _case(
        "jobset", 2,
        by_hand(
            *(
                Process(f"node{k + 1}", (), {"JOB_COMPLETION_INDEX": str(k), "NNODES": "2", "MASTER_ADDR": "node1"})
                for k in (0, 1)
            )
        ),
        seen=2,
    ),
    _case(
        "azure-a-process-per-gpu", 2,
        ranks(
            ("node1", "node1", "node2", "node2"),
            lambda rank, local: {"LOCAL_RANK": str(local), "NODE_RANK": str(rank // 2), "NNODES": "2"},
        ),
        seen=2, started=_one_of(0, 1, 2, 3),
    ),
    # --hosts
    _case("hosts-of-a-file-with-slots", 3, head("--hostfile", "{folder}/hostfile"), seen=3),
    _case("hosts-named-twice", 2, head("--hosts", "node1,node2,node1"), seen=2),
)  # fmt: skip
