"""topology-differs of matrix."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ncclcheck.model.bench_demands import BenchDemands
from ncclcheck.model.benchmarks.site_topology import SiteSwitch, SiteTopology
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from tests.builders import with_facts
from tests.checks.running import run
from tests.matrix_builders import HOSTS, HUNG_NODE, LEAVES, two_leaves, with_matrix

SIX = (("a", "b", "c"), ("d", "e", "f"))


def against(snapshot: Snapshot, topology: Fact[SiteTopology] | Mapping[str, tuple[str, ...]]) -> Snapshot:
    if isinstance(topology, Mapping):
        switches = tuple(SiteSwitch(name, hosts) for name, hosts in topology.items())
        topology = SiteTopology("topology.yaml", switches)
    return replace(snapshot, bench_demands=BenchDemands(topology=topology))


def measured() -> Snapshot:
    return replace(with_matrix(), matrix=two_leaves())


def six() -> Snapshot:
    return replace(with_matrix(), matrix=replace(two_leaves(), leaves=SIX))


def test_the_same_leaves_pass_whatever_they_are_called() -> None:
    assert (
        run("topology-differs", against(measured(), {"s2": HOSTS[:2], "s1": HOSTS[2:]})).outcome == "passed"
    )
    found = run("topology-differs", measured())
    assert found.outcome == "not_applicable"
    assert "no topology of the site" in found.reason
    assert run("topology-differs", with_matrix(is_finished=False)).outcome == "unknown"


def test_each_node_that_is_elsewhere_is_named_with_both_places() -> None:
    found = run("topology-differs", against(six(), {"s1": ("a", "b", "d"), "s2": ("c", "e", "f")}))
    assert [finding.hosts for finding in found.findings] == [("d",), ("c",)]
    assert {finding.severity for finding in found.findings} == {"warning"}
    assert found.findings[0].summary == (
        "d is behind s1 in topology.yaml, but measured in leaf02, with the nodes of s2; most nodes of s1 are in leaf01"
    )


def test_a_node_that_the_file_does_not_have_is_named() -> None:
    found = run("topology-differs", against(six(), {"s1": ("a", "b", "c"), "s2": ("e", "f")}))
    assert [finding.summary for finding in found.findings] == ["d is behind no switch of topology.yaml"]
    strange = run("topology-differs", against(six(), {"s1": ("x",)}))
    assert strange.outcome == "unknown"
    assert "none of these nodes" in strange.reason


def test_names_with_a_domain_and_names_of_slurm_are_the_same_nodes() -> None:
    far = replace(two_leaves(), leaves=(("a.x.org", "b.x.org"), SIX[1]))
    snapshot = replace(with_matrix(), matrix=far)
    topology = {"s1": ("a", "b"), "s2": ("d", "e", "f")}
    assert run("topology-differs", against(snapshot, topology)).outcome == "passed"
    renamed = with_facts(measured(), "node01", environment={"SLURMD_NODENAME": "n1"})
    topology = {"s1": ("n1", "node02"), "s2": HOSTS[2:]}
    assert run("topology-differs", against(renamed, topology)).outcome == "passed"


def test_a_flat_network_does_not_show_several_switches() -> None:
    found = run("topology-differs", against(with_matrix(), {"s1": HOSTS[:2], "s2": HOSTS[2:]}))
    assert found.outcome == "unknown"
    assert "the 2 switches of topology.yaml do not show" in found.reason
    assert run("topology-differs", against(with_matrix(), {"s1": HOSTS})).outcome == "passed"


def test_lost_nodes_and_files_that_could_not_be_read_are_unknown() -> None:
    topology = {"s1": HOSTS[:2], "s2": HOSTS[2:]}
    lost = replace(two_leaves(), nodes=(HUNG_NODE,), leaves=(LEAVES[0], HOSTS[2:3]))
    found = run("topology-differs", against(replace(with_matrix(), matrix=lost), topology))
    assert found.outcome == "unknown"
    assert "node04 belongs to no leaf" in found.reason
    found = run("topology-differs", against(measured(), Missing("error", "/etc/slurm/topology.yaml: line 3")))
    assert found.outcome == "unknown"
    assert "line 3" in found.reason


def test_the_addresses_that_slurm_gave_are_compared() -> None:
    snapshot = measured()
    for host, switch in zip(HOSTS, ("s1", "s1", "s2", "s1"), strict=True):
        environment = {
            "SLURM_TOPOLOGY_ADDR": f"spine.{switch}.{host}.x",
            "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.node",
        }
        snapshot = with_facts(snapshot, host, environment=environment)
    found = run("topology-differs", snapshot)
    assert [finding.hosts for finding in found.findings] == [("node04",)]
    assert "behind s1 in SLURM_TOPOLOGY_ADDR, but measured in leaf02;" in found.findings[0].summary
    assert "most nodes of s1 are in leaf01" in found.findings[0].summary
    flat = measured()
    for host in HOSTS:
        environment = {"SLURM_TOPOLOGY_ADDR": host, "SLURM_TOPOLOGY_ADDR_PATTERN": "node"}
        flat = with_facts(flat, host, environment=environment)
    assert run("topology-differs", flat).outcome == "not_applicable"
