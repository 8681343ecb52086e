"""A setting that helped tells the cause, in a log with trouble."""

from __future__ import annotations

import pytest

from ncclcheck.checks.logs._remedies import remedies
from tests.checks.logs.explaining import read
from tests.logs.rounds import explain

HANGS = "x:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\nthe first all_reduce hangs\n"


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("with NCCL_P2P_DISABLE=1 it starts normally", "p2p-broken"),
        ("solved it by setting the `-x NCCL_IB_GID_INDEX=3`", "roce-gid"),
        ("after export NCCL_SHM_DISABLE=1 the run completes", "shm-too-small"),
        ("works with GLOO_SOCKET_IFNAME=ens3", "wrong-interface"),
        ("using NCCL_MNNVL_ENABLE=0: all ranks OK", "nvlink-fabric-service"),
    ],
)
def test_what_helped_tells_the_cause(words: str, cause: str) -> None:
    found = explain("job.log", f"{HANGS}{words}\n".encode())
    assert found.findings[0].slug == cause
    assert "This is the likely cause" in found.findings[0].summary


@pytest.mark.parametrize(
    "words", ["set NCCL_P2P_DISABLE=1", "NCCL_IB_GID_INDEX=3 does not help", "python train.py"]
)
def test_a_setting_alone_tells_nothing(words: str) -> None:
    assert explain("job.log", f"{HANGS}{words}\n".encode()).outcome == "undetermined"


def test_without_trouble_there_is_nothing_to_get_around() -> None:
    log = read("step 1 loss 2.0\nwith NCCL_P2P_DISABLE=1 it works too\nTraining finished\n")
    assert remedies(log, "p2p-broken") == ()
