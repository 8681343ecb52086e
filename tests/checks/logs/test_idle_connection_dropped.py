"""NC902 idle-connection-dropped: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_after_a_long_evaluation() -> None:
    text = (
        "4: 2025-01-04 04:00:00 entering rollout phase, no communication for a while\n"
        "4: n2:44:90 [0] misc/socket.cc:53 NCCL WARN socketProgressOpt: Call to recv from 10.9.0.1<45011"
        "> failed : Connection timed out\n"
        "4: [rank4]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/N"
        "CCLUtils.hpp:275, unhandled system error, NCCL version 2.20.5\n"
    )
    assert_cause(text, "idle-connection-dropped")


def test_gloo_read_error() -> None:
    text = (
        "rank 0: offline phase, saving nothing\n"
        "[rank0]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] Read error [10.3.0."
        "9]:40112: Connection timed out\n"
    )
    assert_cause(text, "idle-connection-dropped")
