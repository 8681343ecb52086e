"""A process that is a fork of one with torch in it, beside a new one: what they see of themselves is the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.forked import REPOSITORY, Program
from tests.lab.launched import start, told
from tests.lab.nodes import PYTHON, Lab, Node

pytestmark = pytest.mark.lab
LabOf = Callable[..., Lab]

# Prints what a process knows of itself. The word ncclcheck makes it one that is forked.
_SELF = """
import json, os, resource, signal, socket, sys, threading
from pathlib import Path
proc = Path("/proc/self")
fields = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
mounts = [line.split() for line in (proc / "mountinfo").read_text().splitlines()]
known = {
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "flags": list(sys.flags),
    "executable": sys.executable, "prefix": sys.prefix, "environ": dict(os.environ),
    "cmdline": (proc / "cmdline").read_text(), "proc_environ": sorted((proc / "environ").read_text().split(chr(0))),
    "comm": (proc / "comm").read_text(), "cwd": str(Path.cwd()), "host": socket.gethostname(),
    "leads": [os.getpid() == os.getsid(0), os.getpid() == os.getpgrp()],
    "handlers": [str(signal.getsignal(number)) for number in signal.valid_signals()],
    "status": {name: fields[name] for name in fields if name.startswith(("SigI", "SigB", "Cap", "Uid", "Cpus"))},
    "caught": int(fields["SigCgt"], 16) & ~(0b11 << 31),  # the C library's own, with its first thread (nptl(7))
    "threads": [fields["Threads"], threading.active_count()],
    "limits": (proc / "limits").read_text(), "nice": os.nice(0), "umask": os.umask(0),
    "oom": (proc / "oom_score_adj").read_text(), "cgroup": (proc / "cgroup").read_text(),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "streams": [[s.encoding, s.errors, s.line_buffering, s.mode] for s in (sys.stdin, sys.stdout, sys.stderr)],
    "interfaces": [name for _, name in socket.if_nameindex()], "sys": sorted(os.listdir("/sys/class/net")),
    "files": [Path(file).read_text() for file in ("/etc/hosts", "/etc/resolv.conf")],
    "shared_memory": os.listdir("/dev/shm"),
    "mounts": sorted([m[3], m[4], m[5], m[m.index("-") + 1]] for m in mounts if "/netns" not in m[4]),
    "main": [__name__, sys.modules["__main__"].__dict__ is globals(), sorted(globals())],
    "test_modules": [name for name in sys.modules if name.startswith("tests")],
    "namespaces": {kind: os.readlink(proc / "ns" / kind) for kind in ("net", "pid", "user", "ipc")},
}
print(json.dumps(known))
"""


def seen(node: Node, *, fresh: bool, **environ: str) -> dict[str, Any]:
    argv = [PYTHON, "-c", _SELF + "# ncclcheck", "--a", "ü b"]
    done = node.start(argv, {"NCCL_DEBUG": "INFO", **environ}, fresh=fresh).wait(90)
    assert done.returncode == 0, str(done)
    assert done.stderr == ""
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_forked_process_and_a_new_one_see_the_same(lab: LabOf) -> None:
    node = lab(2, docker=True)["node2"]
    (node.lab.folder / "node2" / "home" / "file").touch()
    forked, new = seen(node, fresh=False), seen(node, fresh=True)
    for name, value in new.items():
        assert forked[name] == value, name


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("import ncclcheck, os; os._exit(7)", 7),
        ("import ncclcheck; raise SystemExit(3)", 3),
        ("import ncclcheck; raise ValueError", 1),
        ("import ncclcheck, os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import ncclcheck, os; os.kill(os.getpid(), 2)", -signal.SIGINT),
    ],
)
def test_its_end_is_that_of_a_process(lab: LabOf, code: str, end: int) -> None:
    done = lab(1)["node1"].run([PYTHON, "-c", code])
    assert done.returncode == end, str(done)


def test_signals_and_deadlines_reach_it_and_its_children(lab: LabOf) -> None:
    node = lab(1)["node1"]
    sleep = "s.Popen(['sleep', '100'])"
    code = f"import ncclcheck, subprocess as s; {sleep}; print('ready', flush=True); {sleep}.wait()"
    running = node.start([PYTHON, "-c", code])
    running.wait_for("ready", 30)
    assert len(node.processes()) == 3
    running.signal(signal.SIGTERM)
    assert running.wait(10).returncode == -signal.SIGTERM
    running.signal(signal.SIGKILL, group=True)
    assert node.lab.leftovers() == ()
    late = node.start([PYTHON, "-c", code]).wait(1)
    assert (late.timed_out, late.returncode) == (True, -signal.SIGKILL)
    assert node.lab.leftovers() == ()


def test_descriptors_that_are_passed_have_the_same_numbers(lab: LabOf) -> None:
    read_end, write_end = os.pipe()
    code = f"import ncclcheck, os; os.write({write_end}, b'said')"
    try:
        lab(1)["node1"].start([PYTHON, "-c", code], pass_fds=[write_end]).wait(30)
        os.set_blocking(read_end, False)
        assert os.read(read_end, 10) == b"said"
    finally:
        os.close(read_end)
        os.close(write_end)


@pytest.mark.parametrize(
    ("argv", "env", "forks"),
    [
        ((PYTHON, "-m", "ncclcheck", "preflight"), {"HOME": "/", "NCCL_DEBUG": "INFO"}, True),
        ((PYTHON, "-c", "import ncclcheck"), {}, True),
        ((PYTHON, "-m", "ncclcheck"), {"TORCH_CPP_LOG_LEVEL": "INFO"}, False),  # torch reads it at its import
        ((PYTHON, "-m", "ncclcheck"), {"PYTHONIOENCODING": "ascii"}, False),
        ((PYTHON, "-m", "torch.distributed.run"), {}, False),
        ((PYTHON, "-W", "ignore", "-c", "import ncclcheck"), {}, False),
        ((PYTHON, "-c", "import torch"), {}, False),  # ncclcheck sets the log level before it imports torch
        (("sh", "-c", "import ncclcheck"), {}, False),
    ],
)
def test_what_a_new_interpreter_would_do_in_another_way_is_not_forked(
    argv: tuple[str, ...], env: dict[str, str], forks: bool
) -> None:
    assert Program(argv, env, Path("/")).can_fork() is forks


def facts_of_a_process(pid: int, node: Node) -> dict[str, Any]:
    proc = Path("/proc", str(pid))
    fields = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines())
    variables = (proc / "environ").read_text().replace(f"/{node.name}/", "/NODE/").split("\0")
    return {
        "cmdline": (proc / "cmdline").read_text(),
        "environ": sorted(word for word in variables if not word.startswith("_=")),
        "comm": fields["Name"],
        "cwd": str((proc / "cwd").readlink()).replace(node.name, "NODE"),
        "signals": [fields["SigIgn"], fields["SigBlk"]],
        "leads": os.getsid(pid) == os.getpgid(pid) == pid,
        "descriptors": sorted(path.name for path in (proc / "fd").iterdir() if int(path.name) <= 2),
        "memory": (proc / "oom_score_adj").read_text(),
    }


def test_a_forked_worker_is_its_agents_child_and_looks_like_a_new_one(lab: LabOf) -> None:
    two = lab(2)
    words = ("bench", "--no-preflight", "--sizes", "1K", "--iters", "100000")
    running = {
        **start(two, *words, nodes=two.nodes[:1]),
        **start(two, *words, nodes=two.nodes[1:], fresh=True),
    }
    deadline = time.monotonic() + 60
    found: dict[str, int] = {}
    while len(found) < 2:
        assert time.monotonic() < deadline, told(two, running, 0)
        time.sleep(0.2)
        for node in two.nodes:
            for pid, line in node.processes().items():
                begun = line.endswith(" ncclcheck.bench.worker") and int(
                    Path(f"/proc/{pid}/oom_score_adj").read_text()
                )
                found |= {node.name: pid} if begun else {}
    for name, pid in found.items():
        assert f"PPid:\t{running[name].pid}\n" in Path(f"/proc/{pid}/status").read_text()
    forked, new = (facts_of_a_process(found[node.name], node) for node in two.nodes)
    for name, value in new.items():
        assert forked[name] == value, name
    running["node1"].signal(signal.SIGINT)
    assert {one.code for one in told(two, running, 60).values()} == {130}
    assert two.leftovers() == ()


# The worker's setsid takes a while, as on a machine without a free core.
_LEADS = """
import os, subprocess, sys, time
from tests.lab import fork_workers
setsid = os.setsid
os.setsid = lambda: (time.sleep(0.3), setsid())
if fork_workers.begin() is not None:
    time.sleep(60)
pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
argv = [sys.executable, "-m", "ncclcheck.bench.worker"]
worker = subprocess.Popen(argv, env=dict(os.environ), start_new_session=True, **pipes)
print(os.getpgid(worker.pid) == worker.pid)
worker.kill()
worker.wait()
"""


def test_a_forked_worker_leads_its_group_as_soon_as_its_agent_knows_it() -> None:
    """Else the agent would kill a group that is not there yet, and the worker would live on."""
    done = subprocess.run(
        [PYTHON, "-c", _LEADS], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
