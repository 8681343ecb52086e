"""NC713 node-unexpected."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.checks.host.node_unexpected import READERS
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import DevShm
from ncclcheck.model.policy.policy import parse_policy
from ncclcheck.model.snapshot import Snapshot
from tests.builders import with_choice, with_facts, with_interfaces, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, interface, limits, some
from tests.hardware_builders import nic_of, rdma_cluster, with_device, with_port
from tests.policies import MET, with_policy

CHECK = "node-unexpected"
HOST = "node02"
# key -> what a policy may demand that the healthy cluster does not have, and what is then observed
OTHERWISE = {
    "versions.driver": ('driver = ">=580"', "570.86.15"),
    "versions.kernel": ('kernel = ">=6.9"', "6.8.0-45-generic"),
    "gpu.model": ('model = "*H200*"', "NVIDIA H100 80GB HBM3"),
    "gpu.memory": ('memory = "100G"', "80 GiB"),
    "gpu.compute_capability": ('compute_capability = "10.0"', "9.0"),
    "network.interface": ('interface = "ib0"', "eth0"),
    "network.subnet": ('subnet = "192.168.0.0/16"', "10.0.0.1"),
    "network.speed_gbit_s": ("speed_gbit_s = 200", "100 Gbit/s"),
    "network.mtu": ("mtu = 1500", "9000"),
    "rdma.rate_gbit_s": ("rate_gbit_s = 800", "400 Gbit/s"),
    "rdma.link_layer": ('link_layer = "Ethernet"', "InfiniBand"),
    "limits.memlock": ('memlock = "1G"', "64 MiB"),
    "limits.shm": ('shm = "1T"', "512 GiB"),
    "limits.nofile": ("nofile = 2000000", "1.04858e+06"),
}


def demanding(key: str, line: str, snapshot: Snapshot | None = None) -> Snapshot:
    section = f"[{key.partition('.')[0]}]\n" if "." in key else ""
    return with_policy(snapshot or rdma_cluster(1), section + line)


@pytest.mark.parametrize("key", OTHERWISE)
def test_every_demand_that_is_not_met_is_an_error_with_both_values(key: str) -> None:
    line, observed = OTHERWISE[key]
    snapshot = rdma_cluster(1)
    if key == "limits.memlock":
        snapshot = with_facts(snapshot, "node01", limits=limits(memlock_kib=65536))
    found = run(CHECK, demanding(key, line, snapshot)).findings
    assert {(one.severity, one.hosts) for one in found} == {("error", ("node01",))}
    assert {piece.observed for one in found for piece in one.evidence} == {observed}
    assert all(one.evidence[0].source.endswith("; site.toml, line 2") for one in found)


def test_what_is_met_is_silent_and_every_reader_is_tried() -> None:
    assert is_silent(CHECK, with_policy(rdma_cluster(3), MET))
    assert {key for key in READERS if not key.startswith(("pcie.", "gpus_", "rdma_"))} == set(OTHERWISE)


@pytest.mark.parametrize(
    "line", ["gpu_width = 32", "gpu_speed_gt_s = 64", "nic_width = 32", "nic_speed_gt_s = 64"]
)
def test_the_links_of_cards_are_judged_one_by_one(line: str) -> None:
    found = run(CHECK, demanding("pcie.x", line)).findings
    assert len(found) == 8


def test_one_slow_card_is_named() -> None:
    snapshot = with_device(rdma_cluster(2), HOST, nic_of(3), link_width=8)
    found = finding(CHECK, demanding("pcie.nic_width", "nic_width = 16", snapshot))
    assert found.hosts == (HOST,)
    assert nic_of(3) in found.summary
    assert found.evidence[0].observed == "8 lanes"


def test_active_rdma_ports_are_counted() -> None:
    snapshot = with_port(rdma_cluster(2), HOST, "mlx5_3", state="DOWN")
    found = finding(CHECK, demanding("", "rdma_ports_per_node = 8", snapshot))
    assert (found.hosts, found.evidence[0].observed, found.evidence[0].expected) == ((HOST,), "7", "8")
    unread = with_port(rdma_cluster(2), HOST, "mlx5_3", state=GONE)
    assert run(CHECK, demanding("", "rdma_ports_per_node = 8", unread)).outcome == "unknown"


def test_counts_of_gpus_differ_by_profile() -> None:
    text = 'gpus_per_node = 8\n[profile.small]\nhosts = "node02"\ngpus_per_node = 4\n'
    snapshot = with_policy(rdma_cluster(2), text)
    assert finding(CHECK, snapshot).hosts == (HOST,)
    four = some(snapshot.nodes[1].facts.gpus)[:4]
    assert is_silent(CHECK, with_facts(snapshot, HOST, gpus=four))


def test_a_profile_that_was_chosen_is_demanded_of_every_node() -> None:
    text = "[limits]\nnofile = 64\n[profile.large]\n[profile.large.limits]\nnofile = 2000000\n"
    snapshot = rdma_cluster(2)
    assert is_silent(CHECK, with_policy(snapshot, text))
    chosen = replace(snapshot, expected=parse_policy(text, "site.toml", "large").expected)
    found = finding(CHECK, chosen)
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert "limits.nofile, site.toml, line 5" in found.summary


@pytest.mark.parametrize(
    ("key", "line", "sections"),
    [
        ("gpu.model", 'model = "*"', {"gpus": Missing("absent", "no NVIDIA driver is installed")}),
        ("gpu.model", 'model = "*"', {"gpus": ()}),
    ],
)
def test_where_there_is_nothing_the_demand_is_not_met(key: str, line: str, sections: dict[str, Any]) -> None:
    found = finding(CHECK, demanding(key, line, with_facts(rdma_cluster(1), "node01", **sections)))
    assert found.evidence[0].observed.startswith("none")


@pytest.mark.parametrize(
    ("key", "section"),
    [
        ("versions.driver", "software"),
        ("gpu.model", "gpus"),
        ("network.mtu", "interfaces"),
        ("rdma.rate_gbit_s", "rdma"),
        ("pcie.nic_width", "pci"),
        ("limits.shm", "limits"),
    ],
)
def test_what_could_not_be_read_is_not_known(key: str, section: str) -> None:
    lines = {**{name: line for name, (line, _) in OTHERWISE.items()}, "pcie.nic_width": "nic_width = 16"}
    result = run(CHECK, demanding(key, lines[key], without(rdma_cluster(1), "node01", section)))
    assert (result.outcome, result.findings) == ("unknown", ())
    assert f"{key} (site.toml, line 2)" in result.reason


def test_a_limit_without_end_is_enough_and_an_unread_one_is_not_known() -> None:
    snapshot = demanding("limits.nofile", "nofile = 100")
    assert is_silent(CHECK, with_facts(snapshot, "node01", limits=limits(nofile=None)))
    assert run(CHECK, with_facts(snapshot, "node01", limits=limits(nofile=GONE))).outcome == "unknown"
    shm = with_facts(rdma_cluster(1), "node01", limits=limits(dev_shm=DevShm("tmpfs", GONE)))
    assert run(CHECK, demanding("limits.shm", 'shm = "1G"', shm)).outcome == "unknown"


def test_the_network_is_that_of_the_interface_nccl_chooses() -> None:
    slow = replace(interface("eth1", "10.1.0.1/24"), speed_mbps=1000)
    snapshot = with_interfaces(rdma_cluster(1), "node01", interface("eth0", "10.0.0.1/24"), slow)
    snapshot = demanding("network.speed_gbit_s", "speed_gbit_s = 100", snapshot)
    assert is_silent(CHECK, snapshot)
    found = finding(CHECK, with_choice(snapshot, "node01", "eth1", "10.1.0.1"))
    assert "the speed of eth1 on node01 is 1 Gbit/s" in found.summary
