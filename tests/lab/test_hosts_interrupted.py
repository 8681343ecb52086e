"""Ctrl-C at the head of `--hosts`, at any moment and whatever the hosts do just then: nothing stays behind on them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.lab import namespaces
from tests.lab.launched import command, job_environment
from tests.lab.nodes import Lab, Node
from tests.lab.process import Running
from tests.lab.ssh import Site, ssh_skip_reason

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]
GONE_S = 10.0  # a host ends within REMOTE_ENDING_S whatever it does


@pytest.fixture
def site() -> Iterator[Callable[[Lab], Site]]:
    if reason := ssh_skip_reason():
        pytest.skip(reason)
    with ExitStack() as stack:
        yield lambda lab: stack.enter_context(Site(lab))


PYTHON_STARTS = (
    "Could not import runpy module"  # as Python ends, with 1, where it is interrupted while it starts
)


def begin(lab: Lab, site: Site) -> Running:
    head, hosts = lab["switch"], f"node[1-{len(lab.nodes)}]"
    words = ["preflight", "--hosts", hosts, "--ssh", site.ssh]
    return head.start(command(head, *words), job_environment(), fresh=True)


def there(node: Node, site: Site) -> list[str]:
    """Everything that runs on the node, but for the daemon that listens."""
    found = []
    for pid in namespaces.pids(node.namespace):
        if pid == site.running[node.name].pid:
            continue
        with suppress(FileNotFoundError, ProcessLookupError):
            line = Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ")
            found += [f"{pid} {line.decode(errors='replace')}"] if line else []
    return found


def all_gone(lab: Lab, site: Site) -> None:
    deadline = time.monotonic() + GONE_S
    while left := [line for node in lab.nodes for line in there(node, site)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def wait_for(node: Node, site: Site, text: str) -> None:
    deadline = time.monotonic() + 60
    while not any(text in line for line in there(node, site)):
        assert time.monotonic() < deadline, f"no {text} on {node.name}"
        time.sleep(0.005)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.further)])
def test_a_login_shell_that_hangs_ends_with_the_head(
    lab: LabOf, site: Callable[[Lab], Site], number: signal.Signals
) -> None:
    two = lab(2)
    ssh = site(two)
    ssh.force(two["node2"], "sleep 1000; :")
    running = begin(two, ssh)
    wait_for(two["node2"], ssh, "sleep 1000")
    running.signal(number)
    ended = running.wait(20)
    assert not ended.timed_out, str(ended)
    assert ended.returncode == (130 if number == signal.SIGINT else -number), str(ended)
    all_gone(two, ssh)


@pytest.mark.parametrize(
    "after_s",
    [
        0.05,
        *(
            pytest.param(moment, marks=pytest.mark.further)
            for moment in (0.2, 0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 2.5)
        ),
    ],
)
def test_the_head_is_interrupted_at_any_moment(
    lab: LabOf, site: Callable[[Lab], Site], after_s: float
) -> None:
    two = lab(2)
    ssh = site(two)
    running = begin(two, ssh)
    time.sleep(after_s)
    running.signal(signal.SIGINT)
    ended = running.wait(20)
    assert not ended.timed_out, str(ended)
    if ended.returncode != -signal.SIGINT and not ended.stderr.startswith(
        PYTHON_STARTS
    ):  # before any line of ours
        assert ended.returncode == 130, str(ended)
        assert "Traceback" not in ended.stderr, str(ended)
    all_gone(two, ssh)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.further)])
def test_a_host_that_has_only_begun_to_start_ends_too(
    lab: LabOf, site: Callable[[Lab], Site], number: signal.Signals
) -> None:
    """Its interpreter is there and still imports, so it has not heard of the head node yet."""
    two = lab(2)
    ssh = site(two)
    slow = two["node2"].folder / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text("import time; time.sleep(6)\n")
    ssh.restart(two["node2"], f"SetEnv PYTHONPATH={slow}:{Path(__file__).resolve().parents[2]}")
    running = begin(two, ssh)
    wait_for(two["node2"], ssh, "ncclcheck remote")
    running.signal(number)
    running.wait(20)
    all_gone(two, ssh)
