"""Lists of the nodes that isolate named, to paste."""

from __future__ import annotations

import shlex

import pytest
from msgspec.structs import replace

from ncclcheck.model.benchmarks.isolation import BadNode
from ncclcheck.model.formats.choices import NODE_LISTS, NodeList
from ncclcheck.model.report import Report
from ncclcheck.report.node_lists import bad_nodes, node_list, unlisted
from tests.further import mostly_further
from tests.isolation_builders import HUNG, SLOW, isolate_report
from tests.report.hostile import NO_HOST_WORDS

LEFT_OUT = "# a node is left out: what it calls itself is no host name"


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


@pytest.mark.parametrize("name", mostly_further(NO_HOST_WORDS, 12))  # mark.further
@pytest.mark.parametrize("kind", NODE_LISTS)
def test_a_name_that_means_something_else_is_in_no_list(kind: NodeList, name: str) -> None:
    made = report(replace(SLOW, host=name), HUNG)
    made = replace(made, nodes=(*made.nodes, replace(made.nodes[0], host=name)))
    text = node_list(made, kind)
    usual = node_list(report(HUNG), kind)
    assert text in (usual, f"{LEFT_OUT}\n{usual}")
    assert unlisted(made) == (name,)


def namesakes(*addresses: str | None) -> Report:
    """Two nodes that both call themselves node, at these addresses; the second one is slow."""
    made = report(replace(SLOW, host="node#2"))
    first, second, third, _ = made.nodes
    nodes = (first, replace(second, host="node#1"), replace(third, host="node#2"))
    nccl = tuple(
        replace(entry, host=host, address=address)
        for entry, host, address in zip(made.nccl[1:3], ("node#1", "node#2"), addresses, strict=True)
    )
    return replace(made, nodes=nodes, nccl=nccl)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("exclude", "10.0.0.3\n"),
        ("hosts", "10.0.0.2,node01\n"),
        ("hostfile", "node01\n10.0.0.2\n"),
        (
            "cordon",
            "# a node is left out: node at 10.0.0.3, node rank 2: another node has the same name\n",
        ),
    ],
)
def test_of_nodes_with_one_name_the_address_is_listed(kind: NodeList, text: str) -> None:
    assert node_list(namesakes("10.0.0.2", "10.0.0.3"), kind) == text
    assert unlisted(namesakes("10.0.0.2", "10.0.0.3")) == ()


def test_a_namesake_without_a_known_address_is_in_no_list() -> None:
    assert node_list(namesakes("10.0.0.2", None), "exclude") == ""
    assert node_list(namesakes("10.0.0.2", "$(reboot)"), "exclude") == ""


@pytest.mark.parametrize("kind", NODE_LISTS)
def test_where_no_pairs_were_tested_no_node_is_listed(kind: NodeList) -> None:
    assert node_list(replace(report(SLOW), isolation=None), kind) == ""
