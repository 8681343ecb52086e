"""A real DDP job on gloo, 4 nodes x 2 ranks under torchrun and `ncclcheck watch`, and what may befall it.

`scripts/watches` runs each case many times; `test_watch.py` runs a few.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tests.lab.launched import job_environment
from tests.lab.namespaces import call, inside
from tests.lab.nodes import PYTHON, Lab, Node
from tests.lab.process import Running

RANK, HOST = 5, "node3"  # whom the fault strikes: the second rank of the third node
PATIENCE_S = 6.0
_PORT = "29500"
JOB = """
import os, signal, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

CASE = os.environ["CASE"]
AT, MORE = (6, 6) if CASE == "loader" else (40, 40)
RANK = int(os.environ["RANK"])

def strike():
    if CASE == "sleep":
        time.sleep(3600)
    elif CASE == "read":
        os.read(os.open("never", os.O_RDWR), 1)
    elif CASE == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif CASE == "collective":
        dist.all_gather([torch.ones(1) for _ in range(8)], torch.ones(1))
    elif CASE == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif CASE == "exception":
        raise ValueError("broken")
    elif CASE == "poll":
        while not os.path.exists("never-comes"):
            time.sleep(0.05)

def busy(seconds):
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1

def save(seconds):
    end = time.monotonic() + seconds
    with open("saved", "wb", buffering=0) as file:
        while time.monotonic() < end:
            file.write(bytes(200_000))
            file.seek(0)
            time.sleep(0.1)

def pause():
    if CASE == "save":
        if RANK == 0:
            save(20)
        dist.barrier()
    elif CASE == "compile":
        busy(20)
    elif CASE == "compile-one":
        if RANK == 5:
            busy(20)
        dist.barrier()

def train():
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    while True:
        if CASE == "loader":
            time.sleep(3)
        loss = model(torch.randn(8, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach())
        step += 1
        if step % 10 == 0 or CASE == "loader":
            time.sleep(0.05)
        if step == AT:
            if RANK == 0:
                print("under way", flush=True)
            if RANK == 5:
                time.sleep(1)
                strike()
            pause()
        if step == AT + MORE and RANK == 0:
            print("went on", flush=True)

if CASE == "read":
    try:
        os.mkfifo("never")
    except FileExistsError:
        pass
dist.init_process_group("gloo")
train()
"""


class WatchCase(Struct, frozen=True):
    """A case: what the job does, what is done to the network then, and what node 0 must say, all of it in one line.

    `line`: the text of the source line that is named. `calm`: no line may speak of a hang, and the job goes on.
    `there`: what the watcher of the struck node itself must say, which node 0 cannot know.
    """

    name: str
    says: tuple[str, ...] = ()
    line: str = ""
    strike: Callable[[Lab], None] | None = None
    calm: bool = False
    within_s: float = 0.0
    there: str = ""


def _drop(chain: str) -> Callable[[Lab], None]:
    def strike(lab: Lab) -> None:
        rule = [
            "-A",
            chain,
            "-i" if chain == "INPUT" else "-o",
            "eth0",
            "-p",
            "tcp",
            "!",
            "--syn",
            "-j",
            "DROP",
        ]
        call(inside(lab[HOST].namespace, ["iptables", "-w", *rule]))

    return strike


_WHO = f"rank {RANK} on {HOST} "
_SOON_S = 10.0
CASES = (
    WatchCase("sleep", ("the job hangs", _WHO), "time.sleep(3600)"),
    WatchCase("read", ("the job hangs", _WHO), 'os.read(os.open("never"'),
    WatchCase("poll", ("the job hangs", _WHO), "time.sleep(0.05)"),
    WatchCase("stop", (_WHO, "is stopped")),
    WatchCase("collective", ("the job hangs", _WHO, "another collective (all_gather)"), "dist.all_gather"),
    WatchCase("kill", (_WHO, "was killed by SIGKILL"), within_s=_SOON_S),
    WatchCase("exception", (_WHO, "ended with exit code 1"), within_s=_SOON_S),
    WatchCase("drop-in", ("the job hangs", f"to {HOST} get lost"), strike=_drop("INPUT")),
    WatchCase(
        "drop-out",
        ("the job hangs", f"{HOST} is not heard from"),
        strike=_drop("OUTPUT"),
        there=f"packets from {HOST} ",
    ),
    WatchCase("save", calm=True),
    WatchCase("compile", calm=True),
    WatchCase("compile-one", calm=True),
    WatchCase("loader", calm=True),
)
OF = {case.name: case for case in CASES}


class Outcome(Struct, frozen=True):
    """What came of a run: is it as it must be, after how many seconds was it said, and what was said."""

    is_right: bool
    seconds: float
    said: str


def start(lab: Lab, case: WatchCase, *options: str) -> dict[str, Running]:
    """Start the job of the case on all nodes."""
    words = {node: [*_watch(node, *options), *_torchrun(lab, node)] for node in lab.nodes}
    for node in lab.nodes:
        (node.folder / "home" / "job.py").write_text(JOB)
    env = job_environment({"GLOO_SOCKET_IFNAME": "eth0", "CASE": case.name, "OMP_NUM_THREADS": "1"})
    return lab.start_all(words, env, fresh=True)


def judge(lab: Lab, running: dict[str, Running], case: WatchCase, limit_s: float = 40.0) -> Outcome:
    """Wait until the job is under way, strike, and return what node 0 says."""
    first = running["node1"]
    first.wait_for("under way", 120)
    began = time.monotonic()
    if case.strike is not None:
        case.strike(lab)
    if case.calm:
        return _calm(first, began, limit_s)
    while time.monotonic() - began < (case.within_s or limit_s):
        for line in told(first):
            if all(text in line for text in (*case.says, _place(case))):
                others = [said for said in told(first) if "the job hangs" in said or "of all ranks" in said]
                is_first = not others or others[0] == line
                is_told = _waits_for(running[HOST], case.there, limit_s)
                return Outcome(is_first and is_told, time.monotonic() - began, line)
        time.sleep(0.05)
    return Outcome(False, time.monotonic() - began, said_by_all(running))


def _waits_for(process: Running, text: str, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not any(text in line for line in told(process)) and text:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def end(running: dict[str, Running]) -> None:
    """End the job and its watchers on all nodes."""
    for process in running.values():
        process.signal(signal.SIGKILL, group=True)


def told(process: Running) -> list[str]:
    """Return the lines of the watcher."""
    return [line for line in process.stderr.splitlines() if line.startswith("ncclcheck: watch:")]


def said_by_all(running: dict[str, Running]) -> str:
    """Return what all watchers said, but for what they set."""
    return "\n".join(
        f"[{name}] {line}"
        for name, process in running.items()
        for line in told(process)
        if " watch: set " not in line and " watch: evidence " not in line
    )


def _calm(first: Running, began: float, limit_s: float) -> Outcome:
    while "went on" not in first.stdout and time.monotonic() - began < limit_s:
        time.sleep(0.1)
    seconds = time.monotonic() - began
    alarms = [line for line in told(first) if "hangs" in line or "is stopped" in line or "silent" in line]
    went_on = "went on" in first.stdout or seconds >= limit_s > PATIENCE_S * 3
    return Outcome(went_on and not alarms and first.alive, seconds, "\n".join(alarms or told(first)))


def _place(case: WatchCase) -> str:
    number = next((at for at, line in enumerate(JOB.splitlines(), 1) if case.line in line), 0)
    return f"job.py:{number}" if case.line else ""


def _watch(node: Node, *options: str) -> list[str]:
    kept = str(node.folder / "home" / "kept")
    words = ["-m", "ncclcheck", "watch", "--dir", kept, "--patience", f"{PATIENCE_S:g}", *options, "--"]
    return [PYTHON, *words]


def _torchrun(lab: Lab, node: Node) -> list[str]:
    words = ["-m", "torch.distributed.run", "--nnodes", str(len(lab.nodes)), "--node-rank", str(node.rank)]
    words += ["--nproc-per-node", "2", "--master-addr", lab.nodes[0].address, "--master-port", _PORT]
    return [PYTHON, *words, str(Path("job.py"))]
