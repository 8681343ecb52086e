"""What keeps a log from being called fine though no line of it says that the job failed: exit 3, with the line."""

from __future__ import annotations

import pytest

from ncclcheck.checks.logs._doubts import _unfinished
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from tests.logs.rounds import explain

STEPS = "".join(f"step {number} loss 1.9\n" for number in range(1, 6))
END = "Training finished\n"
ON_SOCKETS = "w1:70:71 [0] NCCL INFO Using network Socket\n"
CLOSED_TO_GPUS = "w1:70:71 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
MEASURED = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 4.2\n"


def outcome(log: str) -> str:
    return explain("job.log", log.encode()).outcome


def test_words_after_the_work_that_are_like_none_before_them_leave_it_open() -> None:
    assert outcome(STEPS) == "healthy"
    assert outcome(f"{STEPS}moru tibano feke\n") == "undetermined"
    assert outcome(f"moru tibano feke\n{STEPS}") == "healthy"
    # what stands between the steps is part of the work, and its numbers do not matter
    assert outcome(f"bako 1 tiru\n{STEPS}bako 2 tiru\n") == "healthy"
    assert outcome(f"{STEPS}moru tibano feke\n{END}") == "healthy"
    assert outcome(f"{STEPS}{END}moru tibano feke\n") == "healthy"


def test_the_report_quotes_the_line_and_says_why() -> None:
    found = explain("job.log", f"{STEPS}moru tibano feke\n".encode())
    assert "“moru tibano feke”" in found.findings[0].summary
    assert "like none before it" in found.findings[0].summary
    assert {finding.severity for finding in found.findings} == {"warning"}


@pytest.mark.parametrize(
    "look",
    [
        "$ nvidia-smi topo -m",
        "[root@gpu07 ~]# ibstat mlx5_3",
        "ops@h100-b17:~/run$ sudo dmesg -T",
        "gpu07# ip link show ens6",
        "$ cat /sys/class/infiniband/mlx5_0/ports/1/rate",
        "(base) user@gpu07:~$ kubectl -n train describe pod w-0",
    ],
)
def test_who_looks_at_the_machine_has_a_question(look: str) -> None:
    assert outcome(f"{STEPS}{END}{look}\n") == "undetermined"
    assert outcome(f"{look}\n{STEPS}{END}") == "undetermined"


@pytest.mark.parametrize(
    "line", ["+ nvidia-smi", "$ echo $?\n0", "$ torchrun t.py", "the script calls nvidia-smi first"]
)
def test_a_script_that_shows_the_machine_asks_nothing(line: str) -> None:
    assert outcome(f"{line}\n{STEPS}{END}") == "healthy"


def test_sockets_where_rdma_was_asked_for_leave_it_open() -> None:
    asked = "w1:70:71 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0,mlx5_1\n"
    assert outcome(ON_SOCKETS + STEPS + END) == "healthy"
    assert outcome(asked + ON_SOCKETS + STEPS + END) == "undetermined"


def test_a_bandwidth_that_was_measured_past_the_gpus_is_slow_for_that_reason() -> None:
    assert outcome(CLOSED_TO_GPUS + MEASURED) == "named"
    assert outcome(CLOSED_TO_GPUS + STEPS + END) == "healthy"


def test_a_program_that_was_started_again_has_to_end_again() -> None:
    again = "[user@w1 run]$ mpirun -n 4 ./all_gather_perf\n"
    assert outcome(MEASURED + again) == "undetermined"
    assert outcome(MEASURED + again + MEASURED) == "healthy"
    assert outcome(MEASURED + again + STEPS) == "healthy"


def test_an_end_of_a_part_is_not_the_end_of_the_job() -> None:
    assert outcome("Downloading\nDone!\nmoru tibano feke\n") == "undetermined"
    pods = "p-master-0   0/2     Completed   0   19m\np-worker-0   0/2     Init:0/1    0   19m\n"
    assert outcome(f"{STEPS}$ kubectl get pods\n{pods}") == "undetermined"


def test_a_job_that_finished_in_another_file_was_not_started_again() -> None:
    collector = Collector()
    collector.read("rank0.log", batches([f"{STEPS}{END}".encode()]))
    collector.read("shell.log", batches([("\n" * 50 + "$ torchrun --nproc-per-node 8 train.py\n").encode()]))
    assert not _unfinished(collector.log())
