"""NC701 shm-small."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.checks.host.shm_small import BUFFER_KIB
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import DevShm
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_environment, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, limits


def shm(size_mib: int, free_mib: int | None = None, nodes: int = 2, **sections: Any) -> Snapshot:
    free = size_mib if free_mib is None else free_mib
    return with_facts(
        cluster(nodes),
        "node02",
        limits=limits(dev_shm=DevShm("tmpfs", size_mib << 10, free << 10)),
        **sections,
    )


def test_one_connection_takes_what_nccl_says_when_it_fails() -> None:
    assert BUFFER_KIB * 1024 == 9637888  # "failed to extend /dev/shm/nccl-... to 9637888 bytes"


def test_dockers_default_is_named_with_what_eight_ranks_need() -> None:
    found = finding("shm-small", shm(64))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "/dev/shm of node02 holds 64 MiB, docker's default" in found.summary
    assert "8 ranks that share memory need 294 MiB (8 x 4 channels x 9.2 MiB)" in found.summary
    assert "--shm-size=1g" in found.fixes[0].commands[0]


def test_where_shared_memory_is_the_only_way_it_is_an_error() -> None:
    assert finding("shm-small", with_environment(shm(64), "node02", NCCL_P2P_DISABLE="1")).severity == "error"


def test_dockers_default_is_too_small_for_data_loaders_of_one_rank() -> None:
    found = finding("shm-small", shm(64, gpus=(), nodes=2))
    assert "workers of one DataLoader" in found.summary


@pytest.mark.parametrize("size_mib", [1024, 65536])
def test_enough_is_silent(size_mib: int) -> None:
    assert is_silent("shm-small", shm(size_mib))
    assert is_silent("shm-small", shm(128, gpus=()))


def test_a_large_but_full_one_is_called_full() -> None:
    found = finding("shm-small", shm(65536, 3))
    assert "is full: 3 MiB of 64.0 GiB are free" in found.summary
    assert found.evidence[0].subject == "free in /dev/shm"


@pytest.mark.parametrize("damaged", [GONE, DevShm("tmpfs", Missing("absent", "no size option"))])
def test_what_could_not_be_read_is_not_passed(damaged: Fact[DevShm]) -> None:
    result = run("shm-small", with_facts(cluster(2), "node02", limits=limits(dev_shm=damaged)))
    assert (result.outcome, "node02" in result.reason) == ("unknown", True)
