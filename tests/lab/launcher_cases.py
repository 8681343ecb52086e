"""Jobs as launchers start them in odd shapes, each with the verdict that was written down before it was first run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.lab.launched import job_environment
from tests.lab.nodes import PYTHON, Lab
from tests.lab.openmpi import OpenMpi
from tests.lab.process import Finished, wait_all
from tests.lab.slurm import Slurm
from tests.lab.ssh import Site

# Generous: what is late on a loaded machine is not what these cases ask.
PATIENT = ("--join-timeout", "50", "--timeout", "110")
SHORT = ("--join-timeout", "10", "--timeout", "60")


class Ended(Struct, frozen=True):
    """How a case ended: the processes, and the report of node 0."""

    processes: list[Finished]
    report: dict[str, Any] | None

    @property
    def text(self) -> str:
        """All that was printed."""
        return "".join(process.stdout + process.stderr for process in self.processes)


class LauncherCase(Struct, frozen=True):
    """A job on so many nodes and its verdict.

    `exits`: the exit codes of the processes that `start` started, each once. `seen`: how many nodes reported, and
    `slugs` their errors and warnings; None: there is no report. `started`: what COMMAND printed, each word once.
    `says`: words that somebody printed.
    """

    name: str
    nodes: int
    start: Callable[[Lab, ExitStack], Ended]
    exits: frozenset[int] = frozenset({0})
    seen: int | None = None
    slugs: frozenset[str] = frozenset()
    started: tuple[str, ...] = ()
    says: str = ""
    ipv6: bool = False


class Process(Struct, frozen=True):
    """A process of a job that is started by hand: its node, what follows `ncclcheck preflight`, and its environment."""

    node: str
    words: Sequence[str] = ()
    env: Mapping[str, str] = {}


def check(report: Path, *words: str, before: Sequence[str] = PATIENT) -> list[str]:
    """Return the command line of a check that writes this report."""
    return [PYTHON, "-m", "ncclcheck", "preflight", *before, "--output", str(report), *words]


def telling(variable: str) -> list[str]:
    """Return a COMMAND that prints this variable once it is started."""
    return ["--", PYTHON, "-c", f"import os; print('started', os.environ['{variable}'])"]


def _read(processes: Iterable[Finished], report: Path) -> Ended:
    return Ended(list(processes), json.loads(report.read_text()) if report.exists() else None)


# By hand


def by_hand(*processes: Process, before: Sequence[str] = PATIENT) -> Callable[[Lab, ExitStack], Ended]:
    """Return what starts these processes at the same time; the first one's report is node 0's."""

    def start(lab: Lab, _: ExitStack) -> Ended:
        _torchrun(lab)
        reports = [lab.folder / f"report-{number}.json" for number in range(len(processes))]
        running = []
        for process, report in zip(processes, reports, strict=True):
            node = lab[process.node]
            path = f"{lab.folder}/bin:{os.environ['PATH']}"
            env = job_environment({"GLOO_SOCKET_IFNAME": "eth0", "PATH": path, **process.env})
            running.append(node.start(check(report, *process.words, before=before), env))
        return _read(wait_all(running, 150), reports[0])

    return start


def _torchrun(lab: Lab) -> None:
    """Write a torchrun that only tells that it was started."""
    folder = lab.folder / "bin"
    folder.mkdir()
    program = folder / "torchrun"
    program.write_text("#!/bin/sh\necho started torchrun\n")
    program.chmod(0o755)


def lines(*words_of: Sequence[str], before: Sequence[str] = PATIENT) -> Callable[[Lab, ExitStack], Ended]:
    """Return what starts `ncclcheck preflight -- torchrun WORDS train.py` on node1, node2 ..."""
    processes = [
        Process(f"node{number}", ("--", "torchrun", *words, "train.py"))
        for number, words in enumerate(words_of, 1)
    ]
    return by_hand(*processes, before=before)


def static(rank: int, *words: str, nnodes: int = 2) -> tuple[str, ...]:
    """Return the words of a static torchrun."""
    return (f"--nnodes={nnodes}", f"--node-rank={rank}", *words)


def c10d(endpoint: str, *words: str, nnodes: str = "2") -> tuple[str, ...]:
    """Return the words of torchrun with a c10d rendezvous."""
    return (f"--nnodes={nnodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}", *words)


# Plain variables


def ranks(
    hosts: Sequence[str], own: Callable[[int, int], Mapping[str, str]], master: str = "node1"
) -> Callable[[Lab, ExitStack], Ended]:
    """Return what starts a process per rank on these hosts; `own(rank, local rank)` are its further variables."""
    processes = []
    for rank, host in enumerate(hosts):
        common = {"RANK": str(rank), "WORLD_SIZE": str(len(hosts)), "MASTER_ADDR": master}
        env = {**common, **own(rank, hosts[:rank].count(host))}
        known = {name: value for name, value in env.items() if value}
        processes.append(Process(host, telling("MY_RANK"), {**known, "MY_RANK": str(rank)}))
    return by_hand(*processes)


def _hydra(hosts: Sequence[str]) -> Callable[[int, int], Mapping[str, str]]:
    def own(rank: int, local_rank: int) -> dict[str, str]:
        mpi = {"PMI_RANK": rank, "PMI_SIZE": len(hosts), "PMI_ID": rank, "MPI_LOCALRANKID": local_rank}
        mpi["MPI_LOCALNRANKS"] = hosts.count(hosts[rank])
        return {**{name: str(value) for name, value in mpi.items()}, "RANK": "", "WORLD_SIZE": ""}

    return own


# Slurm


def srun(*options: str, words: Sequence[str] = ()) -> Callable[[Lab, ExitStack], Ended]:
    """Return what starts `srun OPTIONS ncclcheck preflight WORDS` from node1."""
    return on_slurm(lambda report: ["srun", "--kill-on-bad-exit=0", *options, *check(report, *words)])


def on_slurm(command: Callable[[Path], Sequence[str]]) -> Callable[[Lab, ExitStack], Ended]:
    """Return what runs the command for a report on node1 of a cluster."""

    def start(lab: Lab, stack: ExitStack) -> Ended:
        cluster = stack.enter_context(Slurm(lab))
        _torchrun(lab)
        report = lab.folder / "report.json"
        env = job_environment({**cluster.env, "PATH": f"{lab.folder}/bin:{os.environ['PATH']}"})
        return _read([lab.nodes[0].run(list(command(report)), env, timeout_s=170)], report)

    return start


def sbatch(*options: str, script: str) -> Callable[[Lab, ExitStack], Ended]:
    """Return what submits the script, waits for its end and prints its output; {check} is the command of a check."""

    def command(report: Path) -> list[str]:
        body = report.with_suffix(".sh")
        words = " ".join(check(report))
        body.write_text("#!/bin/bash\n" + script.replace("{check}", words))
        output = f"{report.parent}/out"
        submit = f"sbatch --wait -o {output}-%A-%a.txt {' '.join(options)} {body}"
        return ["sh", "-c", f"{submit}; code=$?; cat {output}-*.txt; exit $code"]

    return on_slurm(command)


# mpirun


def mpirun(
    *options: str,
    slots: Sequence[int] = (8, 8, 8),
    words: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Callable[[Lab, ExitStack], Ended]:
    """Return what starts `mpirun OPTIONS ncclcheck preflight WORDS` from node1; {folder} is the folder of the lab."""

    def start(lab: Lab, stack: ExitStack) -> Ended:
        cluster = stack.enter_context(OpenMpi(lab))
        (lab.folder / "rankfile").write_text(
            "rank 0=node2 slot=0\nrank 1=node1 slot=0\nrank 2=node2 slot=1\n"
        )
        report = lab.folder / "report.json"
        given = {**job_environment(env), "PYTHONPATH": lab.nodes[0].environment()["PYTHONPATH"]}
        chosen = [option.replace("{folder}", str(lab.folder)) for option in options]
        ended = cluster.mpirun(check(report, *words), given, slots=slots, options=chosen, timeout_s=170)
        return _read([ended], report)

    return start


# --hosts


def head(*words: str) -> Callable[[Lab, ExitStack], Ended]:
    """Return what starts `ncclcheck preflight WORDS` on a head node, with ssh to all nodes."""

    def start(lab: Lab, stack: ExitStack) -> Ended:
        site = stack.enter_context(Site(lab))
        report = lab.folder / "report.json"
        (lab.folder / "hostfile").write_text("node1 slots=3\nnode2 slots=1\n# node9\nnode3:2\n")
        given = [word.replace("{folder}", str(lab.folder)) for word in words]
        argv = check(report, *given, "--ssh", site.ssh)
        ended = lab["switch"].run(argv, job_environment(), timeout_s=170)
        return _read([ended], report)

    return start


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
        seen=2, started=_TWICE, ipv6=True,
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
                " ".join(check(report)) + " -- torchrun --nnodes 3 --node-rank $SLURM_NODEID --master-addr node1 t.py",
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
    _case("hydra-uneven", 3, ranks(_UNEVEN, _hydra(_UNEVEN)), seen=3, started=_one_of(*range(6))),
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
