"""NC502 nccl-differs."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from tests.builders import cluster, everywhere, with_software, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import LIBRARY, software


def test_one_version_is_silent() -> None:
    assert is_silent("nccl-differs", cluster(4))


def test_the_odd_node_is_named_with_the_library_it_loads() -> None:
    found = finding("nccl-differs", with_software(cluster(4), "node03", nccl="2.21.5"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "2.21.5 on node03, 2.27.5 on node01, node02 and node04" in found.summary
    assert found.evidence[-1].source == LIBRARY


def test_of_two_nodes_nobody_is_the_odd_one() -> None:
    found = finding("nccl-differs", with_software(cluster(2), "node02", nccl="2.21.5"))
    assert found.hosts == ("node01", "node02")
    assert "no majority" in found.summary


def test_a_node_without_nccl_differs_from_those_that_have_it() -> None:
    found = finding(
        "nccl-differs", with_software(cluster(4), "node03", nccl=Missing("absent", "no libnccl.so.2"))
    )
    assert found.hosts == ("node03",)
    assert "no NCCL on node03" in found.summary


def test_what_could_not_be_read_is_unknown() -> None:
    assert run("nccl-differs", without(cluster(4), "node03", "software")).outcome == "unknown"
    assert (
        run("nccl-differs", with_software(cluster(4), "node03", nccl=Missing("timeout"))).outcome == "unknown"
    )
    nowhere = everywhere(cluster(4), software=software(nccl=Missing("absent", "no libnccl.so.2")))
    assert run("nccl-differs", nowhere).outcome == "unknown"
