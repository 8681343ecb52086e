"""NC912 world-size-mismatch: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_twice_as_many() -> None:
    text = (
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 3, for key: "
        "store_based_barrier_key:1 (world_size=8, worker_count=16, timeout=0:30:00)\n"
    )
    assert_cause(text, "world-size-mismatch")


def test_a_rank_was_never_started() -> None:
    text = (
        "0: torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 3/4 clien"
        "ts joined.\n"
        "1: torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//0\n"
        "2: torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//0\n"
    )
    assert_cause(text, "world-size-mismatch", {"rank 3"})


def test_nccl_root_sees_a_double() -> None:
    text = "m:1:4 [0] bootstrap.cc:140 NCCL WARN Bootstrap Root : rank 5 of 8 ranks has already checked in\n"
    assert_cause(text, "world-size-mismatch", {"rank 5"})
