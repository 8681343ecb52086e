"""How the jobs of `launcher_cases` are started: by hand, by Slurm, by mpirun, over ssh."""

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
    """Write a torchrun that only tells that it was started, and the script that it is given."""
    for node in lab.nodes:
        (node.folder / "home" / "train.py").write_text("")
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


def hydra(hosts: Sequence[str]) -> Callable[[int, int], Mapping[str, str]]:
    """Return the variables that Hydra gives a rank, in place of RANK and WORLD_SIZE."""

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
