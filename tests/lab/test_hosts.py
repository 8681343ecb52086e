"""--hosts from a head node, with a real sshd on every node: blocked, interrupted, and each way to fail."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.lab import faults, namespaces
from tests.lab.launched import Told, command, job_environment, read
from tests.lab.nodes import Lab, Node
from tests.lab.process import Running
from tests.lab.slurm import Slurm
from tests.lab.ssh import Site, ssh_skip_reason

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]
SiteOf = Callable[[Lab], Site]


@pytest.fixture
def site() -> Iterator[SiteOf]:
    """Starts ssh on the nodes of a lab."""
    if reason := ssh_skip_reason():
        pytest.skip(reason)
    with ExitStack() as stack:
        yield lambda lab: stack.enter_context(Site(lab))


def begin(head: Node, site: Site, *words: str) -> Running:
    return head.start(command(head, *words, "--ssh", site.ssh), job_environment())


def ended(head: Node, site: Site, *words: str) -> Told:
    return read(head, begin(head, site, *words).wait(120))


@pytest.mark.further
def test_all_facts_come_back_though_no_node_reaches_another(lab: LabOf, site: SiteOf) -> None:
    two = lab(2)
    ssh = site(two)
    for node in two.nodes:
        faults.reject(node, (1024, 65535), syn_only=True)
    one = ended(two["switch"], ssh, "preflight", "--hosts", "node[1-2]")
    assert one.code == 1, str(one.finished)
    assert one.report is not None
    assert {node["status"] for node in one.report["nodes"]} == {"reported"}
    assert all(node["facts"]["interfaces"] for node in one.report["nodes"])
    assert one.finding("peer-refused")["hosts"] == ["node1", "node2"]
    assert one.outcome("host-unreachable") == "passed"
    assert one.report["authentication"]["by"] == "ssh"
    # node 0 cannot even reach its own port, so it never listens there
    assert one.findings("master-refused"), str(one.finished)
    assert one.finished.seconds < 30
    assert two.leftovers() == ()


def test_each_way_to_fail_is_told_with_its_reason(lab: LabOf, site: SiteOf) -> None:
    eight = lab(8)
    ssh = site(eight)
    node = {number: eight[f"node{number}"] for number in range(1, 9)}
    slow_and_noisy = 'echo "Welcome!"; sleep 2; printf "no end of line"; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    ssh.force(node[2], slow_and_noisy)
    ssh.make_key("host-node3")  # a new key, that the user does not know: another machine, or a new system
    ssh.restart(node[3])
    ssh.restart(node[4], "AuthorizedKeysFile none")
    ssh.force(node[5], "exec python3 -S -I -m ncclcheck remote")
    node[6].ip("link set eth0 down")
    ssh.running["node7"].stop()
    ssh.force(node[8], "exec /no/such/python -m ncclcheck remote")
    one = ended(node[1], ssh, "preflight", "--hosts", "node[1-8],nowhere")
    assert one.code == 3, str(one.finished)
    assert one.report is not None
    reported = {each["host"] for each in one.report["nodes"] if each["status"] == "reported"}
    assert reported == {"node1", "node2"}
    said = {found["hosts"][0]: found["summary"] for found in one.findings("host-unreachable")}
    assert set(said) == {*(f"node{number}" for number in range(3, 9)), "nowhere"}
    assert "Host key verification failed" in said["node3"]
    assert "Permission denied (publickey" in said["node4"]
    assert "No module named ncclcheck" in said["node5"]
    assert "No route to host" in said["node6"]
    assert "Connection refused" in said["node7"]
    assert "/no/such/python: not found" in said["node8"]
    assert "Could not resolve hostname" in said["nowhere"]
    assert one.findings("node-silent") == []
    assert one.finished.seconds < 40


@pytest.mark.further
def test_the_hosts_of_an_allocation_are_those_that_slurm_gave(
    lab: LabOf, site: SiteOf, slurm: Callable[[Lab], Slurm]
) -> None:
    three = lab(3)
    cluster, ssh = slurm(three), site(three)
    words = command(three["switch"], "preflight", "--hosts", "slurm", "--ssh", ssh.ssh)
    given = ["salloc", "-N2", "--exclude=node2", *words]
    one = read(three["switch"], three["switch"].start(given, job_environment(cluster.env)).wait(120))
    assert one.code == 0, str(one.finished)
    assert one.report is not None
    assert [node["host"] for node in one.report["nodes"]] == ["node1", "node3"]
    assert one.outcome("peer-filtered") == "passed"
    assert three.leftovers() == ()


def test_what_ends_here_ends_there_too(lab: LabOf, site: SiteOf) -> None:
    two = lab(2)
    ssh = site(two)
    for number in (signal.SIGINT, signal.SIGKILL):
        running = begin(two["switch"], ssh, "preflight", "--hosts", "node[1-2],10.78.0.77")
        wait_until(lambda: all(of_ncclcheck(node) for node in two.nodes), 90)
        running.signal(number)
        one = read(two["switch"], running.wait(15))
        assert not one.finished.timed_out
        if number == signal.SIGINT:
            assert one.code == 130, str(one.finished)
            assert one.report is not None
        wait_until(lambda: not any(of_ncclcheck(node) for node in two.nodes), 8)


def of_ncclcheck(node: Node) -> list[str]:
    """What runs of ncclcheck on a node, its sshd's children included."""
    found = []
    for pid in namespaces.pids(node.namespace):
        with suppress(FileNotFoundError, ProcessLookupError):
            line = (
                Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            found += [line] if "-m ncclcheck" in line or "ncclcheck." in line else []
    return found


def wait_until(reached: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
