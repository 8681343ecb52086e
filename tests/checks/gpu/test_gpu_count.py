"""NC401 gpu-count."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import TorchGpus
from ncclcheck.model.hardware import Pci
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, node, with_environment, with_facts, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import launch, software, some
from tests.gpu_builders import with_all_gpus, with_gpu
from tests.hardware_builders import gpu_of, rdma_cluster

NO_DRIVER = Missing("absent", "NVML: no libnvidia-ml.so.1")


def with_gpus(snapshot: Snapshot, host: str, count: int, ranks: int | None = None) -> Snapshot:
    place = node(snapshot, host)
    gpus = some(place.facts.gpus)[:count]
    return with_facts(
        snapshot,
        host,
        gpus=gpus,
        launch=replace(launch(place.node_rank, snapshot.nnodes), nproc_per_node=ranks),
    )


def test_eight_everywhere_are_silent() -> None:
    assert is_silent("gpu-count", cluster(4))


def test_the_node_that_lost_one_is_named() -> None:
    found = finding("gpu-count", with_gpus(cluster(4), "node03", 7))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "7 on node03, 8 on node01, node02 and node04" in found.summary


def test_fewer_gpus_than_ranks_are_an_error() -> None:
    result = run("gpu-count", with_gpus(cluster(4), "node03", 7, ranks=8))
    assert [(found.severity, found.hosts) for found in result.findings] == [
        ("error", ("node03",)),
        ("warning", ("node03",)),
    ]


@pytest.mark.parametrize(
    ("switch", "nccl", "is_refused"),
    [("1", "2.30.3", False), ("1", "2.29.7", True), ("0", "2.30.3", True), (None, "2.30.3", True)],
)
def test_two_ranks_on_one_gpu_are_refused_unless_nccl_shares_it(
    switch: str | None, nccl: str, is_refused: bool
) -> None:
    snapshot = with_gpus(cluster(1), "node01", 1, ranks=2)
    environment = {} if switch is None else {"NCCL_MULTI_RANK_GPU_ENABLE": switch}
    snapshot = with_facts(snapshot, "node01", environment=environment, software=software(nccl=nccl))
    found = [finding.summary for finding in run("gpu-count", with_torch(snapshot, 1)).findings]
    assert any("1 GPU for 2 ranks: NCCL refuses" in summary for summary in found) is is_refused
    assert is_refused or found == []


def test_a_node_without_a_driver_among_gpu_nodes_differs() -> None:
    found = finding("gpu-count", with_facts(cluster(4), "node03", gpus=NO_DRIVER, torch_gpus=NO_DRIVER))
    assert found.hosts == ("node03",)
    assert "0 on node03" in found.summary


def test_a_cluster_without_gpus_is_unknown_with_the_reason() -> None:
    result = run("gpu-count", everywhere(cluster(2), gpus=NO_DRIVER, torch_gpus=NO_DRIVER))
    assert result.outcome == "unknown"
    assert "no libnvidia-ml.so.1" in result.reason


def test_without_nvml_what_torch_sees_is_the_number() -> None:
    """A container with CUDA's library and without libnvidia-ml; and it is not read where NVML says nothing else."""
    blind = everywhere(cluster(2), gpus=NO_DRIVER)
    assert run("gpu-count", demanded(blind, 8)).findings == ()
    fewer = with_facts(blind, "node02", torch_gpus=TorchGpus(7, ()))
    assert finding("gpu-count", demanded(fewer, 8)).summary == "node02 has 7 GPUs but 8 are required"


def test_a_driver_that_lists_nothing_is_unknown() -> None:
    assert run("gpu-count", everywhere(cluster(2), gpus=())).outcome == "unknown"


def test_a_node_that_could_not_be_asked_is_unknown() -> None:
    assert run("gpu-count", without(cluster(4), "node03", "gpus")).outcome == "unknown"


def demanded(snapshot: Snapshot, count: int) -> Snapshot:
    return replace(snapshot, expected_gpus_per_node=count)


def test_the_demanded_number_everywhere_is_silent() -> None:
    assert is_silent("gpu-count", demanded(cluster(4), 8))


def test_nodes_with_another_number_than_demanded_are_an_error() -> None:
    result = run("gpu-count", demanded(with_gpus(cluster(3), "node02", 7), 8))
    assert [(found.severity, found.hosts) for found in result.findings] == [("error", ("node02",))]
    assert result.findings[0].summary == "node02 has 7 GPUs but 8 are required"
    everyone = finding("gpu-count", demanded(cluster(3), 4))
    assert everyone.hosts == ("node01", "node02", "node03")
    assert everyone.evidence[0].expected == "4"


def test_no_driver_is_no_gpu_and_what_could_not_be_counted_is_unknown() -> None:
    lone = finding("gpu-count", demanded(everywhere(cluster(1), gpus=NO_DRIVER, torch_gpus=NO_DRIVER), 8))
    assert lone.summary == "node01 has 0 GPUs (no NVIDIA driver is there) but 8 are required"
    none = demanded(everywhere(cluster(2), gpus=NO_DRIVER, torch_gpus=NO_DRIVER), 0)
    assert is_silent("gpu-count", everywhere(none, pci=Pci(())))
    unread = run("gpu-count", everywhere(none, pci=Missing("error", "/sys/bus/pci/devices")))
    assert (unread.outcome, "PCI bus" in unread.reason) == ("unknown", True)
    result = run("gpu-count", demanded(without(cluster(4), "node03", "gpus"), 8))
    assert (result.outcome, "node03" in result.reason) == ("unknown", True)


def wanting_nothing(snapshot: Snapshot, host: str, count: int) -> Snapshot:
    """The driver of that host lists so many of the eight GPUs, and nobody said how many the job needs."""
    return with_gpus(snapshot, host, count, ranks=None)


def test_a_gpu_that_the_bus_has_and_the_driver_lacks_is_named_by_address() -> None:
    result = run("gpu-count", wanting_nothing(rdma_cluster(4), "node03", 7))
    texts = [found.summary for found in result.findings if found.hosts == ("node03",)]
    assert any(gpu_of(7) in text and "fell off the bus" in text for text in texts)


def test_a_container_that_was_given_what_the_job_needs_is_not_blamed() -> None:
    half = demanded(rdma_cluster(2), 4)
    for host in ("node01", "node02"):
        half = with_gpus(half, host, 4, ranks=4)
    assert is_silent("gpu-count", with_torch(half, 4))


def with_torch(snapshot: Snapshot, count: int) -> Snapshot:
    return everywhere(snapshot, torch_gpus=TorchGpus(count, ("sm_90",)))


def test_a_bus_that_could_not_be_read_is_unknown_where_a_gpu_may_be_missing() -> None:
    blind = without(
        wanting_nothing(rdma_cluster(1), "node01", 7), "node01", "pci", Missing("denied", "no /sys")
    )
    assert run("gpu-count", with_torch(blind, 7)).outcome == "unknown"


def test_a_torch_that_sees_fewer_than_the_driver_is_an_error_unless_the_environment_hides_them() -> None:
    found = finding("gpu-count", with_torch(cluster(2), 0))
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert "sees 0 GPUs of 8" in found.summary
    hidden = with_torch(cluster(2), 2)
    for host in ("node01", "node02"):
        hidden = with_environment(hidden, host, CUDA_VISIBLE_DEVICES="0,1")
    assert is_silent("gpu-count", hidden)


def test_gpus_in_mig_mode_are_too_few_for_a_rank_each() -> None:
    sliced = with_torch(with_all_gpus(cluster(2), mig=True), 1)
    found = finding("gpu-count", sliced)
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert "sees 1 GPU for 8 ranks" in found.summary
    assert is_silent("gpu-count", with_torch(with_all_gpus(cluster(2), mig=True), 8))


def test_a_gpu_that_the_driver_counts_and_cannot_open_keeps_the_check_from_passing() -> None:
    lost = Missing("error", "NVML: GPU is lost")
    snapshot = with_gpu(cluster(2), "node02", 7, name=lost, uuid=lost, pci=lost, memory_bytes=lost)
    result = run("gpu-count", snapshot)
    assert result.outcome == "unknown"
    assert "node02: whether GPU 7 can be used" in result.reason


def test_gpus_on_the_bus_that_no_driver_tells_of_are_unknown_and_not_not_applicable() -> None:
    bare = everywhere(rdma_cluster(2), gpus=NO_DRIVER)
    assert run("gpu-ecc", bare).outcome == "unknown"
