"""NC413 gpu-peers."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import PeerAccess
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, node, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, some
from tests.gpu_builders import with_all_gpus, with_gpu

SLUG = "gpu-peers"


def peers(index: int, *closed: int, status: str = "chipset not supported") -> tuple[PeerAccess, ...]:
    """All other GPUs, of which those may not be read."""
    return tuple(PeerAccess(peer, status if peer in closed else "ok") for peer in range(8) if peer != index)


def split_in_two(snapshot: Snapshot, host: str) -> Snapshot:
    """Two sockets, across which there is no peer access."""
    for index in range(8):
        others = [peer for peer in range(8) if peer // 4 != index // 4]
        snapshot = with_gpu(snapshot, host, index, peers=peers(index, *others))
    return snapshot


def test_gpus_with_nvlink_must_reach_each_other() -> None:
    found = finding(SLUG, with_gpu(cluster(2), "node02", 3, peers=peers(3, 5)))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "3-5 (the driver says: chipset not supported)" in found.summary


def test_without_nvlink_what_all_nodes_lack_is_by_design() -> None:
    snapshot = with_all_gpus(cluster(2), nvlinks=())
    for host in ("node01", "node02"):
        snapshot = split_in_two(snapshot, host)
    found = finding(SLUG, snapshot)
    assert (found.severity, found.hosts) == ("info", ("node01", "node02"))


def test_without_nvlink_a_node_that_lacks_what_the_others_have_is_named() -> None:
    found = finding(SLUG, split_in_two(with_all_gpus(cluster(3), nvlinks=()), "node03"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))


def test_a_single_node_without_nvlink_is_only_mentioned() -> None:
    snapshot = split_in_two(with_all_gpus(cluster(1), nvlinks=()), "node01")
    assert finding(SLUG, snapshot).severity == "info"


def test_what_somebody_switched_off_is_a_warning() -> None:
    snapshot = with_all_gpus(cluster(1), nvlinks=())
    for index in range(8):
        closed = peers(index, *range(8), status="disabled by registry key")
        snapshot = with_gpu(snapshot, "node01", index, peers=closed)
    assert finding(SLUG, snapshot).severity == "warning"


def test_gpus_in_mig_mode_are_no_peers() -> None:
    assert is_silent(SLUG, with_gpu(cluster(1), "node01", 3, peers=peers(3, *range(8)), mig=True))


def test_a_single_gpu_has_no_peers() -> None:
    gpus = some(node(with_all_gpus(cluster(1), peers=()), "node01").facts.gpus)[:1]
    assert run(SLUG, with_facts(cluster(1), "node01", gpus=gpus)).outcome == "not_applicable"


@pytest.mark.parametrize("why", [GONE, Missing("unsupported", "old driver")])
def test_what_the_driver_does_not_tell_is_unknown(why: Missing) -> None:
    assert run(SLUG, with_gpu(cluster(2), "node02", 3, peers=why)).outcome == "unknown"
