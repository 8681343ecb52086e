"""NC940 uneven-inputs: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_one_is_done() -> None:
    text = (
        "[rank0]: epoch 3 step 90\n"
        "[rank3]: epoch 3 finished, exiting\n"
        "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:55"
        "44\n"
    )
    assert_cause(text, "uneven-inputs", {"rank 3"})


def test_lengths() -> None:
    text = (
        "0: len(train_loader): 501\n"
        "1: len(train_loader): 498\n"
        "0: [rank0]:[E1 00:00:00.1 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operati"
        "on timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=500, NumelOut=500, Timeout(ms)=600000"
        ") ran for 600001 milliseconds before timing out.\n"
    )
    assert_cause(text, "uneven-inputs", {"rank 1"})
