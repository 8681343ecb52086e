"""The leaves as files of other programs."""

from __future__ import annotations

from ncclcheck.report.formats import rendered
from ncclcheck.report.matrix.host_orders import host_order
from tests.matrix_builders import SLOW_NODE, fabric, matrix_report, two_leaves
from tests.report.reports import report


def test_the_hosts_leaf_by_leaf_without_bad_ones() -> None:
    assert rendered(matrix_report(two_leaves()), "hostfile") == "node01\nnode02\nnode03\nnode04\n"
    assert host_order(matrix_report(fabric(nodes=(SLOW_NODE,))), "hostfile") == "node01\nnode02\nnode04\n"


def test_slurm_and_labels() -> None:
    found = matrix_report(two_leaves())
    header, *tree = host_order(found, "slurm-tree").splitlines()
    assert header.startswith("# inferred from 6 tests of 6 pairs on 2026-11-22")
    assert tree == [
        "SwitchName=leaf01 Nodes=node[01-02]",
        "SwitchName=leaf02 Nodes=node[03-04]",
        "SwitchName=spine Switches=leaf[01-02]",
    ]
    assert host_order(found, "slurm-block").splitlines()[1] == "BlockName=leaf01 Nodes=node[01-02]"
    assert host_order(found, "labels").splitlines()[3] == "kubectl label node node04 ncclcheck/leaf=leaf02"


def test_a_flat_network_has_no_topology_and_another_report_nothing() -> None:
    assert host_order(matrix_report(fabric()), "slurm-tree").startswith("# flat")
    few = fabric(leaves=(("node01", "node02"),), flat=False, oversubscription=None)
    assert host_order(matrix_report(few), "slurm-tree").startswith("# leaves are not known")
    assert host_order(report(), "labels") == ""
