"""The node that a line is about, which is not the one that speaks it."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.named_nodes import node_named_in


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("Memory on the node (IP: 10.0.0.7, ID: 47) where the task was running was 9GB / 9GB", "10.0.0.7"),
        ("2 Workers killed due to memory pressure (OOM) at node (ID: abd4, IP: 10.0.0.7) over", "10.0.0.7"),
        ("Lease ID: 4b Worker ID: bf Node ID: 4b Worker IP address: 10.0.0.7 Worker port: 1", "10.0.0.7"),
        ("srun: error: Task launch for StepId=36.0 failed on node n7: Job credential expired", "n7"),
        ("srun: error: Node failure on n7", "n7"),
        ("4m09s  Warning   Failed    pod/worker-2   Error: failed to create containerd task", "worker-2"),
    ],
)
def test_the_node_is_named(text: str, node: str) -> None:
    assert node_named_in(text) == node


@pytest.mark.parametrize("text", ["", "node failure", "loss on node n7 is 2.1", "see pod/worker-2 for more"])
def test_other_lines_name_none(text: str) -> None:
    assert node_named_in(text) == ""
