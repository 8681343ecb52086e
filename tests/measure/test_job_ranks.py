"""How many ranks a node is judged for."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.measure.job_ranks import has_gpus, ranks_of_job, ranks_on, ranks_sharing_cpus
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import LaunchSource
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, node, with_facts, with_silent
from tests.fact_builders import GONE, launch


def started(source: LaunchSource, local_world_size: int, nproc: int | None = None) -> Snapshot:
    said = replace(launch(0, 2, local_world_size=local_world_size), source=source, nproc_per_node=nproc)
    return with_facts(cluster(2), "node01", launch=said)


def ranks(snapshot: Snapshot) -> int:
    return ranks_on(snapshot, node(snapshot, "node01"))


def test_the_launcher_knows_best_then_the_gpus() -> None:
    assert ranks(started("flags", 1, 4)) == 4
    assert ranks(started("torchrun", 2)) == 2
    assert ranks(started("flags", 1)) == 8
    assert ranks(with_facts(cluster(2), "node01", launch=GONE, gpus=GONE)) == 1
    assert (
        ranks(replace(with_facts(cluster(2), "node01", launch=GONE, gpus=()), expected_gpus_per_node=4)) == 4
    )


def test_without_nvml_the_gpus_that_torch_sees_count() -> None:
    absent = Missing("absent", "libnvidia-ml.so.1 is not there")
    blind = with_facts(cluster(2), "node01", launch=GONE, gpus=absent)
    assert (ranks(blind), has_gpus(node(blind, "node01"))) == (8, True)
    none = with_facts(blind, "node01", torch_gpus=absent)
    assert (ranks(none), has_gpus(node(none, "node01"))) == (1, False)


def test_a_launcher_that_binds_gives_each_rank_cpus_of_its_own() -> None:
    for source, shared in (("slurm", 1), ("openmpi", 1), ("jsm", 1), ("torchrun", 8)):
        snapshot = started(source, 8, 8)
        assert ranks_sharing_cpus(snapshot, node(snapshot, "node01")) == shared


def test_a_silent_node_has_ranks_too() -> None:
    assert ranks_of_job(cluster(4)) == 32
    assert ranks_of_job(with_silent(cluster(4), "node03")) == 32


def test_gpus_are_there_where_they_are_listed() -> None:
    snapshot = with_facts(cluster(2), "node02", gpus=GONE)
    assert [has_gpus(one) for one in snapshot.nodes] == [True, False]
