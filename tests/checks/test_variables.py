"""Which variables may differ."""

from __future__ import annotations

from ncclcheck.checks.variables import differs_by_nature, is_fatal


def test_places_differ_by_nature_and_the_master_does_not() -> None:
    assert differs_by_nature("LOCAL_RANK")
    assert differs_by_nature("SLURM_STEP_TASKS_PER_NODE")
    assert differs_by_nature("https_proxy")
    assert not differs_by_nature("MASTER_ADDR")
    assert not differs_by_nature("CUDA_VISIBLE_DEVICES")
    assert differs_by_nature("CUDA_VISIBLE_DEVICES", between_ranks=True)


def test_what_every_rank_decides_for_itself_is_fatal() -> None:
    assert is_fatal("NCCL_PROTO")
    assert is_fatal("NCCL_P2P_DISABLE")
    assert not is_fatal("NCCL_DEBUG")
    assert not is_fatal("NCCL_SOCKET_IFNAME")
