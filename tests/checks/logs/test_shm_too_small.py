"""NC922 shm-too-small: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_torch_workers() -> None:
    text = (
        "RuntimeError: DataLoader worker (pid 4411) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.\n"
    )
    assert_cause(text, "shm-too-small")


def test_nccl_2_27() -> None:
    text = (
        "t:1:2 [3] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-aBcDeF to 9637892"
        " bytes, error: No space left on device (28)\n"
    )
    assert_cause(text, "shm-too-small", {"t"})
