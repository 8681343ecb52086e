"""Runs with a key, on real nodes: they are as runs without, and who lacks the key is named."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.lab.launched import Told, run
from tests.lab.launchers import with_torchrun
from tests.lab.nodes import PYTHON, Lab, Node
from tests.lab.slurm import Slurm

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]
PORTS = ("40000", "40999")
KEY = "0123456789abcdef0123456789abcdef"


def keyed(
    lab: Lab, *words: str, keys: Mapping[str, str] | None = None, master: str | None = None
) -> dict[str, Told]:
    """The run with these keys by node name; all have the same where none are given."""
    of_node = keys or {node.name: KEY for node in lab.nodes}
    own = {node: {"NCCLCHECK_KEY": of_node.get(node.name, "")} for node in lab.nodes}
    return run(lab, *words, env_by_node=own, master=master)


def test_a_run_with_a_key_says_so_and_shows_it_nowhere(lab: LabOf) -> None:
    three = lab(3)
    ended = keyed(three, "preflight", "--require", "authenticated")
    for outcome in ended.values():
        assert outcome.code == 0, str(outcome.finished)
        assert outcome.report is not None
        assert outcome.report["authentication"]["by"] == "NCCLCHECK_KEY"
        assert outcome.outcome("authenticated") == "passed"
        assert KEY not in json.dumps(outcome.report) + outcome.finished.stdout + outcome.finished.stderr
    assert "authenticated by NCCLCHECK_KEY" in ended["node1"].finished.stdout
    assert three.leftovers() == ()


@pytest.mark.further
def test_a_node_with_another_key_and_one_without_are_named_by_both_sides(lab: LabOf) -> None:
    three = lab(3)
    ended = keyed(three, "preflight", "--join-timeout", "8", keys={"node1": KEY, "node2": KEY[::-1]})
    assert [outcome.code for outcome in ended.values()] == [1, 1, 1], [
        str(one.finished) for one in ended.values()
    ]
    found = ended["node1"].finding("authenticated")
    # Without the key nobody can tell node 0 what a node is called: that is only quoted.
    assert sorted(found["hosts"]) == ["node-rank-1", "node-rank-2"]
    assert "processes that say they are these nodes have other keys" in found["summary"]
    assert {"node2 at", "node3 at"} <= {evidence["subject"][16:24] for evidence in found["evidence"]}
    assert ended["node1"].slugs == {"authenticated", "node-silent"}
    for name, word in (("node2", "another key"), ("node3", "has none")):
        assert ended[name].finding("authenticated")["hosts"] == [name]
        assert word in ended[name].finding("authenticated")["summary"]
        assert "master-foreign" not in ended[name].slugs
    assert three.leftovers() == ()


@pytest.mark.further
def test_a_node_with_a_key_is_named_where_node_0_has_none(lab: LabOf) -> None:
    three = lab(3)
    ended = keyed(three, "preflight", "--join-timeout", "25", keys={"node2": KEY, "node3": KEY})
    for name in ("node2", "node3"):
        assert "node 0 has no key" in ended[name].finding("authenticated")["summary"]
        assert ended[name].slugs == {"authenticated"}
    found = ended["node1"].finding("authenticated")  # by datagrams that need no key
    assert found["hosts"] == ["node2", "node3"]
    assert "node 0 has no key" in found["summary"]
    assert ended["node1"].finished.seconds < 25


@pytest.mark.further
def test_a_benchmark_with_a_key_measures(lab: LabOf) -> None:
    two = lab(2)
    words = ("run", "--backend", "gloo", "--ops", "all_reduce", "--sizes", "64K", "--budget", "3")
    ended = keyed(two, *words)
    for outcome in ended.values():
        assert outcome.report is not None
        assert outcome.report["bench"]["points"], str(outcome.finished)
    assert two.leftovers() == ()


@pytest.mark.further
def test_under_torchrun_the_launchers_store_holds_authenticated_values(lab: LabOf, tmp_path: Path) -> None:
    two = lab(2)
    words = ["-m", "ncclcheck", "preflight", "--output", str(tmp_path / "{node}.json")]
    ended = with_torchrun(two, words, env={"NCCLCHECK_KEY": KEY})
    assert [finished.returncode for finished in ended.values()] == [0, 0], [
        str(one) for one in ended.values()
    ]
    report = json.loads((tmp_path / "node1.json").read_text())
    assert report["nodes"][0]["facts"]["launch"]["shared_store"]
    assert report["authentication"]["by"] == "NCCLCHECK_KEY"


@pytest.mark.further
def test_under_slurm_the_key_is_from_munge(lab: LabOf, slurm: Callable[[Lab], Slurm], tmp_path: Path) -> None:
    two = lab(2)
    cluster = slurm(two)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("munge", "unmunge"):  # as on a cluster, where munged has its usual socket
        program = programs / name
        program.write_text(
            f'#!/bin/sh\nexec {shutil.which(name)} --socket={cluster.folder}/munge/socket "$@"\n'
        )
        program.chmod(0o755)
    words = [PYTHON, "-m", "ncclcheck", "preflight", "--require", "authenticated"]
    ended = cluster.srun(
        [*words, "--output", str(tmp_path / "report.json")], {"PATH": f"{programs}:{os.environ['PATH']}"}
    )
    assert ended.returncode == 0, str(ended)
    assert "authenticated by munge" in ended.stdout
    assert json.loads((tmp_path / "report.json").read_text())["authentication"]["by"] == "munge"


def few_ports(node: Node) -> None:
    """Let listeners of the node have one of few ports, all of which a stranger can try while a run lasts."""
    words = ["sysctl", "-q", "-w", f"net.ipv4.ip_local_port_range={' '.join(PORTS)}"]
    assert node.run(words, timeout_s=10).returncode == 0


def test_a_stranger_finds_no_store_of_the_ranks_to_write_into(lab: LabOf) -> None:
    three = lab(3)
    few_ports(three["node1"])
    program = str(Path(__file__).with_name("ranks_stranger.py"))
    with three.switch.service([PYTHON, program, three["node1"].address, *PORTS]) as stranger:
        stranger.wait_for("ready", 60)
        outcome = keyed(three, "matrix", "--size", "64K", "--timeout", "60")["node1"]
        assert "spoiled" not in stranger.stdout
    assert outcome.report is not None
    slugs = {finding["slug"] for finding in outcome.report["findings"] if finding["severity"] == "error"}
    assert slugs <= {"link-outlier"}, outcome.finished.stdout  # of a machine with two cores
    assert outcome.report["matrix"]["cells"]


@pytest.mark.further
@pytest.mark.parametrize("stranger_at", ["10.78.0.1", "fd78::1"])
def test_a_stranger_of_the_other_family_finds_no_store_of_the_ranks(lab: LabOf, stranger_at: str) -> None:
    three = lab(3, ipv6=True)
    few_ports(three["node1"])
    three.switch.ip("addr add fd78::fe/64 dev br-eth0 nodad")
    master = "10.78.0.1" if ":" in stranger_at else "fd78::1"
    program = str(Path(__file__).with_name("ranks_stranger.py"))
    with three.switch.service([PYTHON, program, stranger_at, *PORTS]) as stranger:
        stranger.wait_for("ready", 60)
        outcome = keyed(three, "matrix", "--size", "64K", "--timeout", "60", master=master)["node1"]
        assert "spoiled" not in stranger.stdout
    assert outcome.report is not None
    assert outcome.report["matrix"]["cells"]


@pytest.mark.further
def test_ranks_meet_where_the_masters_name_has_addresses_of_both_families(lab: LabOf) -> None:
    two = lab(2, ipv6=True)
    for node in two.nodes:
        file = Path("/etc/netns") / node.namespace / "hosts"
        file.write_text(f"{file.read_text()}fd78::1 node1\n")
    outcome = keyed(two, "matrix", "--size", "64K", "--timeout", "60", master="node1")["node1"]
    assert outcome.report is not None
    assert outcome.report["matrix"]["cells"], str(outcome.finished)


def test_a_stranger_on_a_node_who_writes_into_the_store_of_the_ranks_gets_nobody_blamed(lab: LabOf) -> None:
    three = lab(3)
    few_ports(three["node1"])
    program = str(Path(__file__).with_name("ranks_stranger.py"))
    with three["node3"].service([PYTHON, program, three["node1"].address, *PORTS]) as stranger:
        stranger.wait_for("ready", 60)
        outcome = keyed(three, "matrix", "--size", "64K", "--timeout", "60")["node1"]
        assert "spoiled" in stranger.stdout
    assert outcome.report is not None
    errors = [finding for finding in outcome.report["findings"] if finding["severity"] == "error"]
    assert not errors, str(outcome.finished)
    assert outcome.finding("store-changed")
    assert outcome.code == 3


def key_file(node: Node, text: str = f"{KEY}\n", mode: int = 0o600) -> tuple[str, str]:
    """The words that give a node its key in a file; nothing is written where the text is empty."""
    file = node.folder / "home" / "key"
    if text:
        file.write_text(text)
        file.chmod(mode)
    return "--key-file", str(file)


def test_who_refuses_a_readable_key_file_tells_node_0_at_once(lab: LabOf) -> None:
    two = lab(2)
    first, second = two.nodes
    own = {first: key_file(first), second: key_file(second, mode=0o644)}
    ended = run(two, "preflight", "--join-timeout", "40", "--timeout", "60", own_words=own)
    assert ended["node2"].code == 2
    assert "others may read it (mode 0644)" in ended["node2"].finished.stderr
    assert ended["node1"].code == 1
    found = ended["node1"].finding("authenticated")
    assert found["hosts"] == ["node2"]
    assert "others may read it (mode 0644)" in found["summary"]
    assert ended["node1"].finished.seconds < 40  # long before the join deadline
    assert two.leftovers() == ()


@pytest.mark.further
def test_who_cannot_read_its_key_file_is_quoted_and_ends_no_wait(lab: LabOf) -> None:
    two = lab(2)
    first, second = two.nodes
    own = {first: key_file(first), second: key_file(second, "")}
    ended = run(two, "preflight", "--join-timeout", "8", own_words=own)
    assert ended["node2"].code == 2
    assert ended["node2"].finished.seconds < 8
    said = ended["node1"].finished.stderr
    assert "says that it does not take part: this node does not use its key: --key-file" in said
    assert "may still join" in said
    found = ended["node1"].finding("authenticated")
    assert found["hosts"] == ["node-rank-1"]
    assert "there is no such file" in found["summary"]
    assert ended["node1"].finished.seconds > 8


@pytest.mark.further
@pytest.mark.parametrize("text", [KEY, ""])
def test_node_0_that_refuses_its_key_file_tells_the_others(lab: LabOf, text: str) -> None:
    two = lab(2)
    first, second = two.nodes
    own = {first: key_file(first, text, 0o644), second: key_file(second)}
    ended = run(two, "preflight", "--join-timeout", "15", own_words=own)
    assert ended["node1"].code == 2
    told = ended["node2"]
    assert told.code == 1
    found = told.finding("master-refused")
    assert ("others may read it" if text else "there is no such file") in found["summary"] + found[
        "evidence"
    ][0]["observed"]
    is_early = told.finished.seconds < 15
    assert is_early == bool(text)  # what nothing proves ends no wait
    assert text or "says, without the key of this run" in told.finished.stderr
