"""Which variables may differ."""

from __future__ import annotations

from ncclcheck.checks.environment._variables import (
    differs_by_nature,
    is_fatal,
    is_read_by_nobody,
    means_the_same,
)


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


def test_numbers_are_compared_as_nccl_reads_them() -> None:
    assert means_the_same("NCCL_IB_DISABLE", ("0", "no", "00", None, ""), "2.27.5")
    assert not means_the_same("NCCL_IB_DISABLE", ("0", "1"), "2.27.5")
    assert means_the_same("NCCL_BUFFSIZE", ("4194304", "0x400000"), "2.27.5")
    assert not means_the_same("NCCL_MIN_NCHANNELS", ("4", None), "2.27.5")  # decided at run time
    assert not means_the_same("NCCL_ALGO", ("Ring", "Ring"), "2.27.5")


def test_names_that_nobody_reads() -> None:
    assert is_read_by_nobody("NCCL_TIMEOUT")
    assert is_read_by_nobody("nccl_debug")
    assert not is_read_by_nobody("NCCL_DEBUG")
    assert not is_read_by_nobody("NCCL_BRAND_NEW_SETTING")
    assert not is_read_by_nobody("OMP_NUM_THREADS")
