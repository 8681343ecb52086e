"""NC928 rank-exception: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_value_error() -> None:
    text = (
        "[1,5]<stderr>:Traceback (most recent call last):\n"
        '[1,5]<stderr>:  File "train.py", line 7, in <module>\n'
        "[1,5]<stderr>:    main()\n"
        "[1,5]<stderr>:ValueError: expected 4 values, got 3\n"
        "[1,0]<stderr>:torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, remote proc"
        "ess exited or there was a network error, NCCL version 2.20.5\n"
    )
    assert_cause(text, "rank-exception", {"rank 5"})


def test_assertion_on_the_device() -> None:
    text = (
        "[rank2]: ../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [0,0,0], "
        "thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
        "[rank2]: RuntimeError: CUDA error: device-side assert triggered\n"
    )
    assert_cause(text, "rank-exception", {"rank 2"})
