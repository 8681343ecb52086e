"""Which links a benchmark used and how fast they are."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.checks.bench._links import (
    gbit,
    measured_term,
    network_terms,
    network_used,
    switches_may_add,
)
from ncclcheck.measure.traffic import Term
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_result
from tests.builders import cluster, with_interfaces
from tests.checks.bench.nccl_runs import IB, SOCKET, node_log, with_nccl_bench
from tests.fact_builders import host_of, interface, some
from tests.hardware_builders import nic_of, rdma_cluster, roce_cluster, with_device, with_port
from tests.probe_builders import timed_probes

PLACES = {host_of(rank): ("eth0", f"10.0.0.{rank + 1}") for rank in range(4)}


def gloo(**changes: object) -> BenchResult:
    return replace(bench_result(), places=PLACES, **changes)


def terms(snapshot: Snapshot, bench: BenchResult) -> tuple[Term, ...]:
    found = network_terms(snapshot, bench)
    assert not isinstance(found, Missing), found
    return found


def nccl(snapshot: Snapshot, kind: dict[str, Any]) -> tuple[Snapshot, BenchResult]:
    logs = [
        node_log(one.host, rank, of=len(snapshot.nodes), **kind) for rank, one in enumerate(snapshot.nodes)
    ]
    measured = with_nccl_bench(snapshot, *logs, ranks=len(snapshot.nodes))
    return measured, some(measured.bench)


def test_gloo_by_the_speed_of_the_interface_it_is_bound_to_and_by_what_was_measured() -> None:
    by_speed, measured = terms(cluster(4), gloo())
    assert (by_speed.text, by_speed.gb_s, by_speed.spec_gb_s) == ("100 Gbit/s on eth0", 12.5, 12.5)
    assert (measured.source, measured.spec_gb_s) == ("measured", None)
    assert measured.text.startswith("9")
    assert measured.text.endswith(" (as measured)")


def test_the_slowest_node_is_named() -> None:
    slow = replace(interface("eth0", "10.0.0.3/24"), speed_mbps=1000)
    by_speed = terms(with_interfaces(cluster(4), "node03", slow), gloo())[0]
    assert by_speed.text == "1.0 Gbit/s on eth0 of node03"


def test_a_virtual_interface_has_no_speed_whatever_it_says() -> None:
    veth = replace(interface("eth0", "10.0.0.2/24", kind="virtual", tunnel="veth"), speed_mbps=10_000)
    snapshot = with_interfaces(cluster(4), "node02", veth)
    assert [term.source for term in terms(snapshot, gloo())] == ["measured"]
    unprobed = replace(snapshot, probes=Missing("absent", "no probes were made"))
    found = network_terms(unprobed, gloo())
    assert isinstance(found, Missing)
    assert (
        "eth0 of node02 is virtual (veth) and has no speed of its own, and no bandwidth was measured"
        in found.detail
    )


def test_what_the_cpu_limited_is_no_measure_of_the_link() -> None:
    probes = tuple(
        replace(probe, measured=replace(probe.measured, cpu_share=0.99)) if probe.measured else probe
        for probe in timed_probes(4)
    )
    assert measured_term(replace(cluster(4), probes=probes), gloo()) is None
    veth = interface("eth0", "10.0.0.2/24", kind="virtual", tunnel="veth")
    found = network_terms(replace(with_interfaces(cluster(4), "node02", veth), probes=probes), gloo())
    assert isinstance(found, Missing)
    assert "with the CPU as the bottleneck; the link may be faster" in found.detail


# A log that names the cards NCCL opened, and no connection through any: all of them count.
OPENED = {**IB, "via": "P2P/CUMEM"}


def test_nccl_by_the_rates_of_the_ports_in_its_log() -> None:
    snapshot, bench = nccl(rdma_cluster(2), OPENED)
    (term,) = terms(snapshot, bench)
    assert term.text.startswith("8 x 400 Gbit/s (mlx5_0, mlx5_1")
    assert (term.gb_s, term.parts) == (400.0, 8)
    assert network_used(snapshot.nodes[0], ()) == "IB"


def test_one_port_of_one_node_that_is_slow_binds() -> None:
    snapshot = with_port(rdma_cluster(2), "node02", "mlx5_3", rate_gbps=100.0)
    assert terms(*nccl(snapshot, OPENED))[0].text.endswith("of node02")
    assert terms(*nccl(snapshot, OPENED))[0].gb_s == pytest.approx(362.5)


def test_a_card_is_no_faster_than_its_pcie_link() -> None:
    snapshot = with_device(rdma_cluster(1), "node01", nic_of(0), link_speed_gt_s=8.0, link_width=8)
    bench = some(with_nccl_bench(snapshot, node_log("node01", 0, of=1, **OPENED)).bench)
    (term,) = terms(snapshot, bench)
    assert term.gb_s == pytest.approx(350 + 8 * 8 * 128 / 130 / 8)
    assert "limited by the PCIe links of the cards" in term.text


def test_ports_that_nccl_names_by_their_data_direct_function_are_those_of_the_card() -> None:
    direct = {**IB, "net": IB["net"].replace(":1/IB", "_dma:1/IB")}
    assert terms(*nccl(rdma_cluster(2), direct)) == terms(*nccl(rdma_cluster(2), IB))
    slow_slot = with_device(rdma_cluster(1), "node01", nic_of(0), link_speed_gt_s=8.0, link_width=8)
    logs = node_log("node01", 0, 1, of=2, **direct)
    (term,) = terms(slow_slot, some(with_nccl_bench(slow_slot, logs, ranks=2).bench))
    assert "limited" not in term.text


def test_nccl_over_sockets_by_the_interfaces_in_its_log() -> None:
    assert terms(*nccl(rdma_cluster(2), SOCKET))[0].text == "100 Gbit/s on eth0"


def test_a_rate_that_was_not_read_is_not_known() -> None:
    snapshot = with_port(rdma_cluster(2), "node02", "mlx5_3", rate_gbps=Missing("error", "EINVAL"))
    found = network_terms(*nccl(snapshot, IB))
    assert isinstance(found, Missing)
    assert "the rate of mlx5_3 of node02 was not read" in found.detail


def test_only_infiniband_switches_add() -> None:
    assert switches_may_add(*nccl(rdma_cluster(2), IB))
    assert not switches_may_add(*nccl(roce_cluster(2), IB))
    assert not switches_may_add(cluster(4), gloo())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.957, "0.96 Gbit/s"),
        (1.0, "1.0 Gbit/s"),
        (9.41, "9.4 Gbit/s"),
        (100.0, "100 Gbit/s"),
        (400.0, "400 Gbit/s"),
    ],
)
def test_rates_for_people(value: float, text: str) -> None:
    assert gbit(value) == text
