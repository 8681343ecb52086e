"""NC306 rdma-no-device-files."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Pci, Rdma
from ncclcheck.model.snapshot import Snapshot
from tests.builders import everywhere, with_environment, with_facts
from tests.checks.running import finding, is_silent, run
from tests.hardware_builders import healthy_rdma, rdma_cluster, with_port, with_rdma
from tests.nccl.hardware import UNREAD, port

SLUG = "rdma-no-device-files"
FILES = tuple(f"uverbs{number}" for number in range(8))


def cpu_node(snapshot: Snapshot, host: str) -> Snapshot:
    return with_facts(snapshot, host, gpus=(), pci=Pci(()))


def test_a_container_without_any_is_an_error() -> None:
    found = finding(SLUG, with_rdma(rdma_cluster(3), "node02", device_files=()))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "no device file in /dev/infiniband" in found.summary
    assert any("--device=/dev/infiniband" in command for fix in found.fixes for command in fix.commands)


def test_on_a_node_without_gpus_it_is_a_warning() -> None:
    snapshot = cpu_node(with_rdma(rdma_cluster(1), "node01", device_files=()), "node01")
    assert finding(SLUG, snapshot).severity == "warning"


def test_the_device_whose_file_is_missing_is_named() -> None:
    found = finding(SLUG, with_rdma(rdma_cluster(3), "node03", device_files=FILES[:5] + FILES[6:]))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "mlx5_5 (uverbs5)" in found.summary


def test_a_subset_that_every_node_was_given_is_a_warning() -> None:
    snapshot = rdma_cluster(3)
    for node in snapshot.nodes:
        snapshot = with_rdma(snapshot, node.host, device_files=FILES[:4])
    found = finding(SLUG, snapshot)
    assert (found.severity, found.hosts) == ("warning", ("node01", "node02", "node03"))


def test_files_that_this_user_may_not_open_are_an_error() -> None:
    found = finding(SLUG, with_rdma(rdma_cluster(2), "node01", unusable_files=FILES))
    assert (found.severity, found.hosts) == ("error", ("node01",))
    assert "may not open" in found.summary


def test_efa_needs_its_files_too() -> None:
    efa = port("rdmap_0", link_layer="Unknown", driver="efa")
    snapshot = everywhere(rdma_cluster(2), rdma=healthy_rdma(efa))
    assert is_silent(SLUG, snapshot)
    assert finding(SLUG, with_rdma(snapshot, "node02", device_files=())).hosts == ("node02",)


def test_what_was_not_read_is_unknown() -> None:
    denied = Missing("denied", "/dev/infiniband")
    assert run(SLUG, with_rdma(rdma_cluster(2), "node02", device_files=denied)).outcome == "unknown"
    assert run(SLUG, with_rdma(rdma_cluster(2), "node02", unusable_files=denied)).outcome == "unknown"
    assert run(SLUG, with_port(rdma_cluster(2), "node02", "mlx5_0", uverbs=UNREAD)).outcome == "unknown"


def test_no_devices_and_rdma_switched_off_are_not_applicable() -> None:
    assert run(SLUG, everywhere(rdma_cluster(2), rdma=Rdma((), (), ()))).outcome == "not_applicable"
    off = with_rdma(rdma_cluster(1), "node01", device_files=())
    assert run(SLUG, with_environment(off, "node01", NCCL_IB_DISABLE="1")).outcome == "not_applicable"
