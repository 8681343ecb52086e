"""NC704 cpus-few."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.facts import Cgroup
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, launch, limits, some

UNLIMITED = some(limits().cgroup)


def cpus(allowed: Any, quota: Any = None, **sections: Any) -> Snapshot:
    group = replace(UNLIMITED, cpu_quota=quota)
    return with_facts(cluster(2), "node02", limits=limits(cpus=allowed, cgroup=group), **sections)


def test_fewer_than_two_for_each_rank_with_a_gpu() -> None:
    found = finding("cpus-few", cpus(8))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "may run on 8 CPUs for 8 ranks with a GPU each" in found.summary
    assert found.evidence[0].expected == "at least 16: 2 for each of 8 ranks"
    assert is_silent("cpus-few", cpus(16))


def test_a_quota_counts_like_cpus() -> None:
    found = finding("cpus-few", cpus(96, 2.5))
    assert "has a CPU quota of 2.5 CPUs" in found.summary
    assert "cpu.max" in found.evidence[0].source
    assert is_silent("cpus-few", cpus(96, 16.0))


def test_a_rank_without_gpu_needs_one() -> None:
    eight = replace(launch(1, 2), nproc_per_node=8)
    assert is_silent("cpus-few", cpus(8, gpus=(), launch=eight))
    assert finding("cpus-few", cpus(7, gpus=(), launch=eight)).hosts == ("node02",)


def test_what_slurm_gave_one_task_is_for_one_rank() -> None:
    task = replace(launch(1, 2, local_world_size=8), source="slurm")
    assert is_silent("cpus-few", cpus(2, launch=task))
    assert "1 CPU for 1 rank" in finding("cpus-few", cpus(1, launch=task)).summary


@pytest.mark.parametrize("damaged", [cpus(GONE), cpus(96, GONE)])
def test_what_could_not_be_read_is_not_passed(damaged: Snapshot) -> None:
    assert run("cpus-few", damaged).outcome == "unknown"


def test_where_affinity_was_not_read_the_cpuset_tells_of_too_few() -> None:
    group = replace(UNLIMITED, cpuset_cpus=4)
    few = with_facts(cluster(2), "node02", limits=limits(cpus=GONE, cgroup=group))
    assert "may run on 4 CPUs" in finding("cpus-few", few).summary
    enough = with_facts(few, "node02", limits=limits(cpus=GONE, cgroup=replace(group, cpuset_cpus=64)))
    assert run("cpus-few", enough).outcome == "unknown"


def test_without_control_groups_the_quota_is_unknown() -> None:
    result = run("cpus-few", with_facts(cluster(2), "node02", limits=limits(cgroup=GONE)))
    assert (result.outcome, "node02: the CPU quota" in result.reason) == ("unknown", True)
    assert isinstance(UNLIMITED, Cgroup)
