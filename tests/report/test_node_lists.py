"""Lists of the nodes that isolate named, to paste."""

from __future__ import annotations

import shlex

import pytest
from msgspec.structs import replace

from ncclcheck.model.benchmarks.isolation import BadNode
from ncclcheck.model.report import Report
from ncclcheck.report.node_lists import NodeList, bad_nodes, node_list
from tests.isolation_builders import HUNG, SLOW, isolate_report


def report(*nodes: BadNode) -> Report:
    return isolate_report(nodes=nodes)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("exclude", "node[02-03]\n"),
        ("hosts", "node[01,04]\n"),
        ("hostfile", "node01\nnode04\n"),
        ("cordon", "kubectl cordon node03\nkubectl cordon node02\n"),
    ],
)
def test_the_bad_nodes_or_the_others(kind: NodeList, text: str) -> None:
    assert node_list(report(SLOW, HUNG), kind) == text


def test_a_drain_has_a_reason_that_a_shell_takes_as_one_word() -> None:
    words = shlex.split(node_list(report(SLOW), "drain-slurm"))
    assert words[:4] == ["scontrol", "update", "NodeName=node03", "State=DRAIN"]
    assert words[4] == "Reason=ncclcheck isolate: slow, sends 80% and receives 100% of usual"


def test_a_node_that_is_bad_at_times_is_not_left_out() -> None:
    assert bad_nodes(report(replace(SLOW, verdict="intermittent"))) == ()
    assert node_list(report(), "exclude") == ""


def test_a_hostile_name_is_one_word() -> None:
    evil = replace(SLOW, host="x;rm -rf /\x1b[2J")
    assert len(shlex.split(node_list(report(evil), "cordon"))) == 3
