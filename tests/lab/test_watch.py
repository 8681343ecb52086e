"""`ncclcheck watch` on the nodes of a real DDP job: the watchers meet, and node 0 names the culprit of any node."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from ncclcheck.facts.job.rank_stacks import py_spy
from tests.lab.nodes import PYTHON, Lab
from tests.lab.process import wait_all
from tests.lab.watch_cases import CASES, OF, end, judge, said_by_all, start

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(py_spy() is None or os.geteuid() != 0, reason="needs py-spy, and root for it"),
]
LabOf = Callable[..., Lab]
QUICK = ("sleep", "kill")


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


def test_without_torch_the_first_rank_that_ended_is_named_and_the_job_is_not_held_up(lab: LabOf) -> None:
    two = lab(2)
    script = "sleep 4; test $RANK != 1 || kill -9 $$; sleep 4; exit 7"
    words = {}
    for node in two.nodes:
        place = ["--nnodes", "2", "--node-rank", str(node.rank), "--master-addr", two.nodes[0].address]
        watch = [PYTHON, "-m", "ncclcheck", "watch", "--dir", "kept", *place]
        words[node] = [*watch, "--", "env", f"RANK={node.rank}", "LOCAL_RANK=0", "sh", "-c", script]
    running = two.start_all(words, {}, fresh=True)
    first, second = wait_all([running["node1"], running["node2"]], 60)
    assert (first.returncode, second.returncode) == (7, -9)
    assert "rank 1 on node2" in first.stderr, str(first)
    assert "was killed by SIGKILL" in first.stderr
    assert "rank 0" not in first.stderr.replace("rank 0 failed after it", ""), str(first)
    (file,) = (two.nodes[0].folder / "home" / "kept").glob("*/report.json")
    watch_of = json.loads(file.read_text())["watch"]
    assert [rank["host"] for rank in watch_of["culprits"]] == ["node2"]


def test_a_watcher_that_cannot_meet_goes_on_alone_and_says_so(lab: LabOf) -> None:
    two = lab(2)
    node = two.nodes[1]
    place = ["--nnodes", "2", "--node-rank", "1", "--master-addr", two.nodes[0].address]
    words = [PYTHON, "-m", "ncclcheck", "watch", *place, "--", "sh", "-c", "echo on; exit 5"]
    ended = node.run(words, timeout_s=60)
    assert ended.returncode == 5
    assert ended.stdout == "on\n"
