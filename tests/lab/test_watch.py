"""`ncclcheck watch` on the nodes of a real DDP job: the watchers meet, and node 0 names the culprit of any node."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ncclcheck.facts.job.rank_stacks import py_spy
from tests.lab.faults import shape
from tests.lab.launched import job_environment
from tests.lab.nodes import PYTHON, Lab
from tests.lab.process import wait_all
from tests.lab.test_hosts import wait_until
from tests.lab.watch_cases import CASES, OF, end, judge, said_by_all, start

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(py_spy() is None or os.geteuid() != 0, reason="needs py-spy, and root for it"),
]
LabOf = Callable[..., Lab]
_HOLDS = (
    "import socket, time\nheld = socket.create_server(('', 4711))\nprint('held', flush=True)\ntime.sleep(60)"
)
QUICK = ("sleep",)


@pytest.mark.parametrize(
    "name",
    [pytest.param(case.name, marks=() if case.name in QUICK else pytest.mark.further) for case in CASES],
)
def test_node_0_names_who_it_is_and_alarms_for_no_pause(lab: LabOf, name: str) -> None:
    four = lab(4)
    running = start(four, OF[name])
    try:
        outcome = judge(four, running, OF[name])
        assert outcome.is_right, f"{outcome.said}\n{said_by_all(running)}"
    finally:
        end(running)


@pytest.mark.further
def test_without_torch_the_first_rank_that_ended_is_named_and_the_job_is_not_held_up(lab: LabOf) -> None:
    two = lab(2)
    met = two.folder / "met"
    script = f"until test -e {met}; do sleep 0.1; done; test $RANK != 1 || kill -9 $$; sleep 4; exit 7"
    words = {}
    for node in two.nodes:
        place = ["--nnodes", "2", "--node-rank", str(node.rank), "--master-addr", two.nodes[0].address]
        watch = [PYTHON, "-m", "ncclcheck", "watch", "--dir", "kept", *place]
        words[node] = [*watch, "--", "env", f"RANK={node.rank}", "LOCAL_RANK=0", "sh", "-c", script]
    running = two.start_all(words, {}, fresh=True)
    wait_until(lambda: all(_follows_node_0(node.folder / "home" / "kept") for node in two.nodes), 60)
    met.touch()
    first, second = wait_all([running["node1"], running["node2"]], 60)
    assert (first.returncode, second.returncode) == (7, -9)
    assert "rank 1 on node2" in first.stderr, str(first)
    assert "was killed by SIGKILL" in first.stderr
    assert "rank 0" not in first.stderr.replace("rank 0 failed after it", ""), str(first)
    (file,) = (two.nodes[0].folder / "home" / "kept").glob("*/report.json")
    watch_of = json.loads(file.read_text())["watch"]
    assert [rank["host"] for rank in watch_of["culprits"]] == ["node2"]


def _follows_node_0(kept: Path) -> bool:
    told = [json.loads(file.read_text()) for file in kept.glob("*/status.json")]
    return bool(told) and all(status["led"] and status["ranks"] for status in told)


@pytest.mark.further
def test_a_watcher_that_cannot_meet_goes_on_alone_and_says_so(lab: LabOf) -> None:
    first, second = lab(2).nodes
    watch = [PYTHON, "-m", "ncclcheck", "watch", "--nnodes", "2", "--master-addr", first.address]
    held = [PYTHON, "-c", _HOLDS]
    job = ["--meet-port", "4711", "--", "sh", "-c", "sleep 3; echo on; exit 5"]
    with first.service(held) as holder:
        holder.wait_for("held", 30)
        ended = [
            node.start([*watch, "--node-rank", str(node.rank), *job], fresh=True) for node in (first, second)
        ]
        one, two = wait_all(ended, 60)
    assert (one.returncode, two.returncode) == (5, 5), f"{one}\n{two}"
    assert (one.stdout, two.stdout) == ("on\n", "on\n")
    assert "each by itself: node 0 cannot serve them" in one.stderr, str(one)


@pytest.mark.further
def test_on_hang_stop_ends_the_job_on_all_nodes_after_the_evidence_and_isolate_tests_them(lab: LabOf) -> None:
    four = lab(4)
    for node in four.nodes:  # without, a pair moves hundreds of MB as fast as the two cores of all nodes can
        shape(node, "100mbit")
    running = start(four, OF["sleep"], "--on-hang", "stop", "--isolate")
    try:
        outcome = judge(four, running, OF["sleep"])
        assert outcome.is_right, outcome.said
        ended = wait_all(list(running.values()), 200)
    finally:
        end(running)
    assert not [finished.node for finished in ended if finished.timed_out]
    assert [finished.returncode for finished in ended] == [4, 4, 4, 4], said_by_all(running)
    kept = four["node3"].folder / "home" / "kept"
    assert list(kept.glob("*/look-1/rank-5.stacks.json"))
    (file,) = (four["node1"].folder / "home" / "kept").glob("*/isolate.json")
    report = json.loads(file.read_text())
    assert {node["host"] for node in report["nodes"]} == {node.name for node in four.nodes}
    outcomes = [pair["outcome"] for tests in report["isolation"]["rounds"] for pair in tests["pairs"]]
    assert "ok" in outcomes, outcomes


@pytest.mark.further
def test_after_a_failure_pairs_of_nodes_are_tested_and_the_bad_one_can_be_excluded(lab: LabOf) -> None:
    four = lab(4)
    for node in four.nodes:
        shape(node, "100mbit" if node.name != "node3" else "50mbit")
    words = {}
    for node in four.nodes:
        place = ["--nnodes", "4", "--node-rank", str(node.rank), "--master-addr", four.nodes[0].address]
        watch = [PYTHON, "-m", "ncclcheck", "watch", "--isolate", "--dir", "kept", *place]
        words[node] = [
            *watch,
            "--",
            "env",
            f"RANK={node.rank}",
            "LOCAL_RANK=0",
            "sh",
            "-c",
            "sleep 3; exit 7",
        ]
    ended = wait_all(list(four.start_all(words, job_environment({}), fresh=True).values()), 200)
    assert [finished.returncode for finished in ended] == [7, 7, 7, 7], "\n".join(map(str, ended))
    said = ended[0].stderr
    assert "watch: --isolate: testing pairs" in said
    assert "--exclude=node3" in said.replace("--exclude node3", "--exclude=node3"), said
    (file,) = (four.nodes[0].folder / "home" / "kept").glob("*/isolate.json")
    found = json.loads(file.read_text())["isolation"]
    assert [node["host"] for node in found["nodes"]] == ["node3"]
    assert four.leftovers() == ()
