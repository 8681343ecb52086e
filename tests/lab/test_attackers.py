"""A stranger at the master port, without any credential: runs nothing, calls nobody, sets nothing, starts nothing."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab.launched import PORT, job_environment, start
from tests.lab.launchers import substituted
from tests.lab.nodes import PYTHON, Lab, Node
from tests.lab.process import Finished, wait_all

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]

ATTACKER = Path(__file__).with_name("attacker.py")
TOOL = {"schema_version": "1", "tool_version": "1"}
STEPS = tuple(f"step/{number}" for number in range(3))
THIRD_PORT = 40099
# Counts who connects, in a file that says so from the first moment on.
COUNTER = f"""
import pathlib, socket
file, count = pathlib.Path.home() / "called", 0
listener = socket.create_server(("", {THIRD_PORT}))
while True:
    file.write_text(str(count))
    listener.accept()[0].close()
    count += 1
"""
PLAN = {
    "backend": "gloo", "ops": ["all_reduce"], "sizes_bytes": [1024], "dtype": "float32", "warmup": 1, "iters": 1,
    "budget_s": 1.0, "verify": False,
}  # fmt: skip


def step(**order: Any) -> dict[str, Any]:
    return {**TOOL, "order": order}


@contextmanager
def stranger(
    lab: Lab, documents: Mapping[str, Any], rewrite: Mapping[str, tuple[str, str]] | None = None
) -> Iterator[None]:
    """Somebody on the switch, who is no node of the run, attacks it while the block runs."""
    task = {"documents": documents, "rewrite": rewrite or {}, "seconds": 60}
    with lab.switch.service(
        [PYTHON, str(ATTACKER), lab.nodes[0].address, str(PORT), json.dumps(task)], job_environment({})
    ):
        said, deadline = lab.switch.folder / "home" / "attacker", time.monotonic() + 30
        while not said.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield
        assert said.read_text() == "attacks"


def finished(lab: Lab, *words: str) -> list[Finished]:
    """`ncclcheck WORDS` on every node, ended by itself."""
    ended = wait_all(list(start(lab, *words).values()), 100)
    assert not any(one.timed_out for one in ended), [str(one) for one in ended]
    return ended


def prefixed(lab: Lab, *words: str, env: Mapping[Node, Mapping[str, str]]) -> list[Finished]:
    """`ncclcheck preflight WORDS -- COMMAND`, where COMMAND writes its environment to a file."""
    command = ["env", "MASTER_PORT=29500", "sh", "-c", "env > $HOME/started"]
    flags = ["--nnodes", "{nnodes}", "--node-rank", "{node_rank}", "--master-addr", "{master_addr}"]
    line = [PYTHON, "-m", "ncclcheck", "preflight", *flags, "--timeout", "40", *words, "--", *command]
    running = lab.start_all(
        {node: substituted(lab, node, line) for node in lab.nodes},
        job_environment({"GLOO_SOCKET_IFNAME": "eth0"}),
        env_by_node=env,
    )
    ended = wait_all(list(running.values()), 100)
    assert not any(one.timed_out for one in ended), [str(one) for one in ended]
    return ended


def started(lab: Lab) -> dict[str, str]:
    """The environment of COMMAND on the nodes on which it was started."""
    files = {node.name: node.folder / "home" / "started" for node in lab.nodes}
    return {name: file.read_text() for name, file in files.items() if file.exists()}


def test_a_forged_bench_order_runs_nothing_and_is_reported(lab: LabOf) -> None:
    two = lab(2)
    owned = [node.folder / "home" / "owned" for node in two.nodes]
    # Python imports the category of a warning; this module opens a browser, which is a command of the stranger.
    environment = {
        "PYTHONWARNINGS": "all:0:antigravity.x:0:0",
        "BROWSER": f"sh -c {shlex.quote('touch $HOME/owned')} %s",
    }
    order = step(
        type="bench", plan=PLAN, world_size=2, hosts=["node1", "node2"], first_rank={"1": 0, "2": 1},
        count={"1": 1, "2": 1}, environments={"1": environment, "2": environment}, nonce="ab", deadline_s=20.0,
    )  # fmt: skip
    with stranger(two, dict.fromkeys(STEPS, order)):
        ended = finished(two, "preflight", "--timeout", "40")
    assert not any(file.exists() for file in owned)
    assert all(one.returncode != 0 for one in ended)
    assert "PYTHONWARNINGS" in "".join(one.stdout + one.stderr for one in ended)
    assert two.leftovers() == ()


@pytest.mark.further
def test_a_forged_order_makes_nobody_call_a_third_address(lab: LabOf) -> None:
    two = lab(2)
    third = {"interface": "eth0", "address": two.switch.address, "port": THIRD_PORT}
    peers = [{"ticket": ticket, "host": f"node{ticket}", "targets": [third]} for ticket in (1, 2)]
    order = step(type="reach", peers=peers, targets_of={"1": [2], "2": [1]}, deadline_s=10.0)
    called = two.switch.folder / "home" / "called"
    with two.switch.service([PYTHON, "-c", COUNTER]), stranger(two, dict.fromkeys(STEPS, order)):
        finished(two, "preflight", "--timeout", "40")
    assert called.read_text() == "0"
    assert two.leftovers() == ()


@pytest.mark.further
def test_a_forged_verdict_starts_nothing_where_a_real_fault_is(lab: LabOf) -> None:
    two = lab(2, docker=True)
    verdict = step(type="finish", exit_code=0, reasons=["all checks passed"])
    fault = {node: {"NCCL_SOCKET_IFNAME": "^eth"} for node in two.nodes}
    with stranger(two, dict.fromkeys((f"step/{number}" for number in range(12)), verdict)):
        ended = prefixed(two, env=fault)
    assert started(two) == {}
    assert all(one.returncode != 0 for one in ended)
    assert two.leftovers() == ()


def test_a_forged_report_sets_nothing(lab: LabOf) -> None:
    two = lab(2)
    evil = {
        "name": "LD_PRELOAD", "value": "/tmp/evil.so", "hosts": [], "why": "", "proof": "asked", "evidence": "",
    }  # fmt: skip
    evil_sound = {**evil, "name": "NCCL_IB_DISABLE", "value": "1"}
    forged = f'"advice":{{"env":{json.dumps([evil, evil_sound])}'
    with stranger(two, {}, {"report": ('"advice":{"env":[]', forged)}):
        ended = prefixed(two, "--apply", env={})
    assert [one.returncode for one in ended] == [0, 0], [str(one) for one in ended]
    assert set(started(two)) == {"node1", "node2"}
    assert not any("LD_PRELOAD" in text or "NCCL_IB_DISABLE" in text for text in started(two).values())
    assert two.leftovers() == ()
