"""The node table of the page."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.report.html.html_nodes import nccl_groups, node_table
from tests.builders import cluster, with_choice, with_silent, with_software, without
from tests.report.reports import finding, report


def test_equal_nodes_are_one_group_and_what_they_share_is_said_once() -> None:
    table = node_table(report(), [])
    (group,) = table.groups
    assert (group.hosts, group.count, group.status, group.worst) == ("node[01-04]", 4, "reported", "")
    assert table.columns == ()
    assert ("torch", "2.9.0") in table.common
    assert ("GPUs", "8 x NVIDIA H100 80GB HBM3") in table.common
    assert [(row.host, row.node_rank, row.address) for row in table.rows][:2] == [
        ("node01", 0, "10.0.0.1"),
        ("node02", 1, "10.0.0.2"),
    ]


def test_a_column_is_there_where_nodes_differ() -> None:
    table = node_table(report(snapshot=with_software(cluster(4), "node03", torch="2.9.1")), [])
    assert table.columns == ("torch",)
    assert [(group.hosts, group.values) for group in table.groups] == [
        ("node03", ("2.9.1",)),
        ("node[01-02,04]", ("2.9.0",)),
    ]


def test_nodes_with_findings_and_silent_ones_come_first() -> None:
    found = [finding("mtu-differs", "node02"), finding("shm-small", "node02", "node03", severity="warning")]
    table = node_table(report(snapshot=with_silent(cluster(4), "node04")), found)
    assert [(group.hosts, group.status, group.findings, group.worst) for group in table.groups] == [
        ("node04", "silent", (), ""),
        ("node02", "reported", (0, 1), "error"),
        ("node03", "reported", (1,), "warning"),
        ("node01", "reported", (), ""),
    ]


def test_what_could_not_be_read_is_a_question_mark() -> None:
    snapshot = without(cluster(2), "node02", "gpus", Missing("timeout", "NVML"))
    table = node_table(report(snapshot=snapshot), [])
    assert table.columns == ("GPUs",)
    assert {group.values for group in table.groups} == {("?",), ("8 x NVIDIA H100 80GB HBM3",)}


def test_choices_that_fail_come_first() -> None:
    made = report(snapshot=with_choice(cluster(4), "node02", "lo", "127.0.0.1"))
    made = replace(made, nccl=tuple(replace(entry, fails=entry.host == "node04") for entry in made.nccl))
    groups = nccl_groups(made)
    assert groups[0].hosts == ("node04",)
    assert {group.interface for group in groups} == {"eth0", "lo"}
