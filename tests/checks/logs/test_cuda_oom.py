"""NC926 cuda-oom: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_torch_2_1() -> None:
    text = (
        "[rank7]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 7; 79"
        ".15 GiB total capacity; 70.00 GiB already allocated)\n"
        "[rank0]: RuntimeError: NCCL communicator was aborted on rank 0.\n"
    )
    assert_cause(text, "cuda-oom", {"rank 7"})


def test_inside_nccl() -> None:
    text = (
        "l1:4:5 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer l2<4077"
        "5>\n"
        "l2:6:7 [1] include/alloc.h:200 NCCL WARN Cuda failure 2 'out of memory'\n"
    )
    assert_cause(text, "cuda-oom", {"l2"})
