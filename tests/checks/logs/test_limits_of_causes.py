"""Where a cause or a name stops: one line more in the log, and another answer is right."""

from __future__ import annotations

from tests.checks.logs.explaining import explain

_STEPS = "".join(f"step {number} loss 2.{number}\n" for number in range(10, 15))


def first(log: str) -> tuple[str, tuple[str, ...]]:
    found = explain(log)
    slug = found.findings[0].slug if found.outcome == "named" else found.outcome
    return slug, found.findings[0].hosts if found.findings else ()


def test_an_error_after_timeouts_is_of_another_rank_only_where_torchrun_numbers_the_first_node() -> None:
    late = (
        "[rank{0}]:[E1124 10:00:00.0 x.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=42, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    )
    error = (
        "Traceback (most recent call last):\nValueError: bad label\nE0101 10:00:00 1 torch/distributed/elastic/"
        "multiprocessing/api.py:833] failed (exitcode: 1) local_rank: 3 (pid: 12) of binary: /usr/bin/python\n"
    )
    assert first(late.format(1) + error)[0] == "rank-exception"
    assert first(late.format(11) + error)[0] == "undetermined"


def test_tensors_that_outlived_their_process_are_usual_after_the_end_and_a_question_before_it() -> None:
    outlived = "[W x.cpp:15] Producer process has been terminated before all shared CUDA tensors released.\n"
    assert first(f"{_STEPS}Training finished\n{outlived}")[0] == "healthy"
    assert first(f"{_STEPS}{outlived}")[0] == "undetermined"


def test_gids_that_changed_long_before_a_connection_broke_are_not_blamed() -> None:
    changed = "h1:1:2 [4] net_ib.cc:94 NCCL WARN NET/IB : mlx5_6:1 Got async event : GID table change\n"
    lost = (
        "h1:1:3 [4] net_ib.cc:1632 NCCL WARN NET/IB : Got completion from peer 10.6.4.12<38816> with status=12 "
        "opcode=0 len=0 vendor err 129 (Send) localGid ::ffff:10.6.4.17 remoteGids::ffff:10.6.4.12\n"
    )
    assert first(changed + lost)[0] == "roce-gid"
    assert first(changed + _STEPS + lost)[0] == "ib-link-or-fabric"


def test_the_same_fault_on_gpus_of_several_hosts_is_not_one_ranks_crash() -> None:
    fault = "h{}:1:2 [0] x.cc:1 NCCL WARN Cuda failure 'an illegal memory access was encountered'\n"
    assert first(fault.format(1))[0] == "rank-exception"
    assert first(fault.format(1) + fault.format(2))[0] == "undetermined"


def test_a_bridges_address_that_several_nodes_met_blames_none_of_them() -> None:
    refused = (
        "h{}:1:2 [0] misc/socket.cc:518 NCCL WARN socketPollConnect: connect to 172.17.0.1<42217> returned "
        "Connection refused, exceeded error retry count after 35 attempts\n"
    )
    assert first(refused.format(1)) == ("wrong-interface", ("172.17.0.1",))
    assert first(refused.format(1) + refused.format(2)) == ("wrong-interface", ())


def test_the_host_that_a_launcher_names_replaces_the_number_of_a_heading() -> None:
    log = (
        "=== node 0 ===\nstep 1\n=== node 1 ===\nTraceback (most recent call last):\nValueError: bad label\n"
    )
    assert first(log)[1] == ("1",)
    assert first(f"{log}srun: error: gpu7: task 1: Exited with exit code 1\n")[1] == ("gpu7", "rank 1")
