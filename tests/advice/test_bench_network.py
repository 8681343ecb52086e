"""What a benchmark runs on, decided from the snapshot alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.advice.bench_network import BenchWish, bench_network, compared_networks, no_group
from ncclcheck.advice.compared import AsIsAndAdvised, as_is_and_advised
from ncclcheck.facts.node_facts import compiled_nccl
from ncclcheck.model.bench import Comparison, ComparisonVerdict, Variant
from ncclcheck.model.bench_setup import BenchNetwork, BenchRequest
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import TorchGpus
from ncclcheck.model.snapshot import Node, Snapshot
from tests.advice.clusters import of_nodes, two_networks, unasked, with_bandwidth, with_probes
from tests.builders import cluster, everywhere, with_environment, with_facts, with_master
from tests.fact_builders import interface, launch, software, some
from tests.gpu_builders import with_gpu
from tests.hardware_builders import rdma_cluster

ABSENT = Missing("absent", "libnvidia-ml.so.1 is not there")
GLOO = BenchWish(BenchRequest(backend="gloo"))


def network(wish: BenchWish, snapshot: Snapshot) -> BenchNetwork:
    found = bench_network(wish, snapshot)
    assert not isinstance(found, Missing), found
    return found


def without_gpus(snapshot: Snapshot) -> Snapshot:
    none = Missing("absent", "no NVIDIA driver")
    nodes = [
        Node(one.host, one.node_rank, replace(one.facts, gpus=none, torch_gpus=none))
        for one in snapshot.nodes
    ]
    return replace(snapshot, nodes=tuple(nodes))


def test_gpus_everywhere_mean_nccl_with_a_rank_per_gpu_and_nothing_changed() -> None:
    found = network(BenchWish(BenchRequest()), cluster(2))
    assert found.backend == "nccl"
    assert set(found.ranks_of.values()) == {8}
    assert found.environment_of == {}


def test_without_gpus_gloo_is_bound_to_what_nccl_chooses_and_says_so() -> None:
    found = network(BenchWish(BenchRequest(), 1), without_gpus(cluster(2)))
    assert found.backend == "gloo"
    assert set(found.ranks_of.values()) == {1}
    assert set(map(str, found.environment_of.values())) == {"{'GLOO_SOCKET_IFNAME': 'eth0'}"}
    assert "GLOO_SOCKET_IFNAME=eth0" in found.transport


@pytest.mark.parametrize(("started", "ranks"), [(1, 1), (2, 2)])
def test_several_processes_that_a_launcher_started_on_a_node_are_as_many_ranks(
    started: int, ranks: int
) -> None:
    snapshot = cluster(2)
    for number, node in enumerate(snapshot.nodes):
        own = replace(launch(number, 2, local_world_size=started), source="openmpi", nproc_per_node=None)
        snapshot = with_facts(snapshot, node.host, launch=own)
    assert set(network(GLOO, snapshot).ranks_of.values()) == {ranks}


def test_nccl_that_was_asked_for_and_cannot_run_is_said_not_replaced() -> None:
    wish = BenchWish(BenchRequest(backend="nccl"))
    found = bench_network(wish, without_gpus(cluster(2)))
    assert isinstance(found, Missing)
    assert "no GPU on node01, node02" in found.detail


def test_a_torch_that_pins_no_nccl_package_and_has_nccl_runs_nccl() -> None:
    pinned = Missing("unsupported", "this torch pins no NCCL package, and asking torch would load it")
    answer = TorchGpus(8, ("sm_90",), "2.26.5")
    told = everywhere(cluster(2), software=software(torch_nccl=compiled_nccl(pinned, answer)))
    assert network(BenchWish(BenchRequest()), told).backend == "nccl"


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"gpus": Missing("timeout", "NVML: nvmlInit did not answer within 5 s")}, "has GPUs is not known"),
        ({"software": software(torch_nccl=Missing("timeout", "late"))}, "has NCCL is not known"),
        ({"software": software(torch_nccl=Missing("absent", "no CUDA"))}, "no NCCL in torch on node02"),
        ({"gpus": ABSENT, "torch_gpus": ABSENT}, "no GPU on node02"),
        ({"torch_gpus": TorchGpus(0, ())}, "torch sees none of 8 GPUs"),
    ],
)
def test_beside_gpus_nothing_falls_back_to_gloo(sections: dict[str, object], reason: str) -> None:
    found = bench_network(BenchWish(BenchRequest()), with_facts(cluster(2), "node02", **sections))
    assert isinstance(found, Missing)
    assert reason in found.detail
    assert "--backend gloo" in found.detail


def test_without_nvml_it_is_nccl_on_what_torch_sees_and_never_gloo() -> None:
    """Two nodes with eight GPUs each on the bus, in containers that were given CUDA without libnvidia-ml."""
    blind = everywhere(rdma_cluster(2), gpus=ABSENT, gpu_driver=ABSENT)
    found = network(BenchWish(BenchRequest()), blind)
    assert (found.backend, set(found.ranks_of.values())) == ("nccl", {8})
    for torch in (
        ABSENT,
        TorchGpus(0, ()),
        Missing("unsupported", "without CUDA"),
        Missing("timeout", "late"),
    ):
        unread = bench_network(BenchWish(BenchRequest()), everywhere(blind, torch_gpus=torch))
        assert isinstance(unread, Missing)
        assert "the PCI bus has 8, libnvidia-ml.so.1 is not there" in unread.detail
        assert "--backend gloo" in unread.detail


def test_there_are_as_many_ranks_as_gpus_that_torch_sees() -> None:
    narrowed = everywhere(
        cluster(2), torch_gpus=TorchGpus(1, ("sm_90",)), environment={"CUDA_VISIBLE_DEVICES": "1"}
    )
    for number, node in enumerate(narrowed.nodes):
        narrowed = with_facts(narrowed, node.host, launch=replace(launch(number, 2), nproc_per_node=None))
    assert set(network(BenchWish(BenchRequest()), narrowed).ranks_of.values()) == {1}


def tasks(snapshot: Snapshot, count: int, **sections: object) -> Snapshot:
    """On each node the launcher started so many processes, and the agent sees one GPU."""
    for number, node in enumerate(snapshot.nodes):
        own = replace(launch(number, 2, local_world_size=count), source="slurm", nproc_per_node=None)
        seen = {"torch_gpus": TorchGpus(1, ("sm_90",)), **sections}
        snapshot = with_facts(snapshot, node.host, launch=own, **seen)
    return snapshot


def test_tasks_with_a_gpu_each_are_as_many_ranks() -> None:
    found = network(BenchWish(BenchRequest()), tasks(cluster(2), 8))
    assert set(found.ranks_of.values()) == {8}


def test_more_ranks_than_gpus_need_nccls_switch_for_it() -> None:
    wish = BenchWish(BenchRequest(), nproc_per_node=2)
    found = bench_network(wish, tasks(cluster(2), 1))
    assert isinstance(found, Missing)
    assert "2 ranks on node01, which has 1 GPU for them" in found.detail
    assert "NCCL_MULTI_RANK_GPU_ENABLE=1" in found.detail
    knows = software(nccl="2.30.3")
    for value, of_node, is_allowed in (("1", knows, True), ("0", knows, False), ("1", software(), False)):
        switch = {"NCCL_MULTI_RANK_GPU_ENABLE": value}
        shared = tasks(cluster(2), 1, environment=switch, software=of_node)
        assert isinstance(bench_network(wish, shared), BenchNetwork) is is_allowed


@pytest.mark.parametrize(
    ("environment", "is_measured"),
    [({}, False), ({"NCCL_MULTI_RANK_GPU_ENABLE": "1"}, True), ({"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, True)],
)
def test_eight_processes_that_all_see_the_same_four_gpus_are_too_many(
    environment: dict[str, str], is_measured: bool
) -> None:
    """`mpirun -npernode 8`; Slurm gives GPUs to a task by CUDA_VISIBLE_DEVICES, and each task has its own."""
    seen = TorchGpus(4, ("sm_90",))
    crowded = tasks(cluster(2), 8, torch_gpus=seen, environment=environment, software=software(nccl="2.30.7"))
    found = bench_network(BenchWish(BenchRequest()), crowded)
    assert isinstance(found, BenchNetwork) is is_measured
    assert is_measured or "8 ranks on node01, which has 4 GPUs for them" in str(found)


def test_where_not_all_reach_each_other_nothing_is_measured() -> None:
    healthy = cluster(2)
    assert not isinstance(healthy.probes, Missing)
    broken = (replace(healthy.probes[0], outcome="filtered"), *healthy.probes[1:])
    found = bench_network(GLOO, replace(healthy, probes=broken))
    assert isinstance(found, Missing)
    assert "all nodes can connect" in found.detail


def test_without_probes_the_choice_is_used_and_called_unproven() -> None:
    found = network(GLOO, replace(cluster(2), probes=Missing("absent", "--no-preflight")))
    assert "not probed" in found.proof


def test_one_node_uses_two_ranks_on_loopback() -> None:
    found = network(GLOO, cluster(1))
    assert found.environment_of == {"node01": {"GLOO_SOCKET_IFNAME": "lo"}}
    assert "gloo" in found.transport


def test_where_nccls_choice_is_cut_off_the_network_that_the_advice_names_is_measured() -> None:
    found = network(GLOO, with_probes(two_networks(2), "filtered", interface="eth0"))
    assert {interface for interface, _ in found.binding.values()} == {"eth1"}
    assert "advised" in found.proof


def test_ipv4_here_and_ipv6_there_connects_in_nccl_and_not_in_gloo() -> None:
    first = unasked(interface("ib0", "fd00::1/64"), interface("eth0", "10.0.0.1/24", index=3))
    second = unasked(interface("eth0", "10.0.0.2/24"), interface("eth1", "fd00::2/64", index=3))
    mixed = of_nodes(first, second)
    assert interfaces_of(network(GLOO, mixed)) == {"eth0"}
    as_it_is = bench_network(AS_IS, mixed)
    assert isinstance(as_it_is, Missing)
    assert "IPv4 on some nodes and IPv6 on others, which Gloo, that runs here, cannot" in as_it_is.detail


def test_a_network_that_swallows_large_messages_is_not_measured() -> None:
    healthy = cluster(2)
    assert not isinstance(healthy.probes, Missing)
    stalled = replace(healthy.probes[0], kind="mtu", outcome="stalled")
    assert isinstance(bench_network(GLOO, replace(healthy, probes=(*healthy.probes, stalled))), Missing)


# as it is, and advised

AS_IS = BenchWish(BenchRequest(backend="gloo", under="as-is"))
ADVISED = BenchWish(BenchRequest(backend="gloo", under="advised"))


def slow_first() -> Snapshot:
    """Two nodes whose eth0, which NCCL chooses, was measured ten times slower than eth1."""
    return with_bandwidth(two_networks(2), eth0=1.0, eth1=10.0)


def interfaces_of(found: BenchNetwork) -> set[str]:
    return {name for name, _ in found.binding.values()}


def test_as_it_is_gloo_gets_the_interface_that_nccl_would_choose_even_one_that_is_unreachable() -> None:
    unreachable = with_probes(two_networks(2), "filtered", interface="eth0")
    found = network(AS_IS, unreachable)
    assert interfaces_of(found) == {"eth0"}
    assert found.environment_of == {host: {"GLOO_SOCKET_IFNAME": "eth0"} for host in ("node01", "node02")}
    assert "as it is, NCCL's own choice" in found.transport
    loopback = network(AS_IS, two_networks(2, NCCL_SOCKET_IFNAME="^eth"))
    assert interfaces_of(loopback) == {"lo"}


def test_as_it_is_needs_no_probes() -> None:
    unprobed = replace(two_networks(2), probes=Missing("absent", "no probes were made"))
    assert interfaces_of(network(AS_IS, unprobed)) == {"eth0"}


def test_as_it_is_nccl_gets_the_environment_unchanged() -> None:
    wish = BenchWish(BenchRequest(under="as-is"))
    found = network(wish, cluster(2))
    assert (found.backend, found.environment_of) == ("nccl", {})


def test_where_nccl_finds_nothing_as_it_is_every_such_host_is_at_fault() -> None:
    found = network(AS_IS, two_networks(2, NCCL_SOCKET_IFNAME="=nope"))
    assert set(found.fault) == {"node01", "node02"}
    assert "finds no interface" in found.fault["node01"]


def test_where_the_choice_is_not_known_nothing_is_measured_as_it_is() -> None:
    unknown = with_facts(two_networks(2), "node02", environment=Missing("timeout", "late"))
    found = bench_network(AS_IS, unknown)
    assert isinstance(found, Missing)
    assert "node02" in found.detail


def test_advised_is_what_the_advice_makes_nccl_choose_with_its_settings() -> None:
    found = network(ADVISED, slow_first())
    assert interfaces_of(found) == {"eth1"}
    environments = found.environment_of.values()
    assert all(one["GLOO_SOCKET_IFNAME"] == "eth1" and "NCCL_SOCKET_IFNAME" in one for one in environments)
    assert "the advised settings" in found.transport


def test_a_setting_that_is_taken_away_is_shown_as_unset() -> None:
    found = BenchNetwork(
        "nccl", {"a": 1}, {"a": ("eth0", "10.0.0.1")}, {"a": {"NCCL_SOCKET_IFNAME": None}}, "why"
    )
    assert found.transport == "nccl on eth0 (bound by NCCL_SOCKET_IFNAME unset: why)"


def test_where_nothing_is_advised_advised_is_as_it_is_and_says_so() -> None:
    found = network(ADVISED, two_networks(2))
    assert interfaces_of(found) == {"eth0"}
    assert "as it is: nothing is advised" in found.transport


@pytest.mark.parametrize(
    ("verdict", "interface"),
    [
        ("faster", "eth1"),
        ("as-is failed", "eth1"),
        ("no effect", "eth0"),
        ("slower", "eth0"),
        ("advised failed", "eth0"),
        ("not measured", "eth0"),
    ],
)
def test_bench_uses_nccl_interface_unless_another_proved_faster(
    verdict: ComparisonVerdict, interface: str
) -> None:
    snapshot = slow_first()
    made = Comparison(
        "gloo", "all_reduce", 1 << 20, 2, 8, Variant({}, {}), Variant({}, {}), 9.0, 8.0, 10.0, verdict
    )
    assert interfaces_of(network(GLOO, snapshot)) == {"eth0"}
    assert interfaces_of(network(GLOO, replace(snapshot, comparison=made))) == {interface}


def two_of(snapshot: Snapshot) -> AsIsAndAdvised:
    return some(as_is_and_advised(snapshot))


def test_the_two_sides_are_bound_to_their_own_interfaces_with_one_rank_per_node() -> None:
    snapshot = slow_first()
    wish = replace(GLOO, nproc_per_node=8)
    as_is, advised = some(compared_networks(wish, snapshot, two_of(snapshot)))
    assert (interfaces_of(as_is), interfaces_of(advised)) == ({"eth0"}, {"eth1"})
    assert set(as_is.ranks_of.values()) == set(advised.ranks_of.values()) == {1}
    assert as_is.environment_of["node01"] == {"GLOO_SOCKET_IFNAME": "eth0"}


def test_what_gloo_does_not_use_is_not_compared_with_gloo_and_what_nccl_does_not_with_nccl() -> None:
    snapshot = slow_first()
    same = two_of(snapshot)
    unchanged = AsIsAndAdvised({"node01": {"NCCL_IB_DISABLE": None}}, "NCCL", same.as_is, same.as_is)
    assert isinstance(compared_networks(GLOO, snapshot, unchanged), Missing)
    for_gloo = AsIsAndAdvised(same.changes, "Gloo", same.as_is, same.advised)
    assert isinstance(compared_networks(BenchWish(BenchRequest()), cluster(2), for_gloo), Missing)


def test_where_only_gloos_own_choice_is_to_change_it_chooses_by_itself_as_it_is() -> None:
    snapshot = slow_first()
    two = two_of(snapshot)
    changes: dict[str, dict[str, str | None]] = {host: {"GLOO_SOCKET_IFNAME": "eth1"} for host in two.advised}
    as_is, advised = some(
        compared_networks(GLOO, snapshot, AsIsAndAdvised(changes, "Gloo", two.as_is, two.advised))
    )
    assert as_is.environment_of == {}
    assert advised.environment_of == changes


def test_ranks_that_cannot_reach_the_master_address_are_not_started() -> None:
    assert no_group(cluster(2)) is None
    found = no_group(with_master(cluster(2), "node02", "filtered"))
    assert found is not None
    assert "node02 cannot reach" in found.detail


def test_two_sets_of_workers_do_not_share_gpus_that_take_one_process_only() -> None:
    snapshot = with_gpu(cluster(2), "node02", 3, compute_mode="exclusive-process")
    two = AsIsAndAdvised({}, "NCCL", {}, {})
    found = compared_networks(BenchWish(BenchRequest()), snapshot, two)
    assert isinstance(found, Missing)
    assert "GPUs of node02 take one process only" in found.detail


def test_nccl_runs_without_what_distorts_times_but_as_it_is() -> None:
    """Only where a node sets it, and gloo, which two of them slow down too, is left as it was."""
    slowed = with_environment(cluster(2), "node02", CUDA_LAUNCH_BLOCKING="1", TORCH_NCCL_NAN_CHECK="0")
    assert network(BenchWish(BenchRequest()), slowed).environment_of == {
        "node02": {"CUDA_LAUNCH_BLOCKING": None}
    }
    assert network(BenchWish(BenchRequest(under="as-is")), slowed).environment_of == {}
    gloo = network(GLOO, slowed).environment_of
    assert not any("CUDA_LAUNCH_BLOCKING" in environment for environment in gloo.values())
