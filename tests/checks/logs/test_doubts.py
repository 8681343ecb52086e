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
    assert "does not sound like work" in found.findings[0].summary
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


POD = "bert-worker-0:7:8 [0] NCCL INFO comm 0x1 rank 0 nranks 1 cudaDev 0 busId 1e0 - Init COMPLETE\n"
ODD = "moru tibano feke\n"


def test_pods_that_completed_end_the_job_and_one_that_failed_raises_a_doubt() -> None:
    row = "$ kubectl get pods\nbert-worker-0   0/1   {}   0   41m\n"
    assert outcome(POD + STEPS + ODD + row.format("Completed")) == "healthy"
    assert outcome(POD + STEPS + ODD + row.format("Running")) == "undetermined"
    assert outcome(POD + STEPS + END + row.format("Error")) == "undetermined"
    assert outcome(POD + STEPS + ODD + row.format("Completed") + "feke moru\n") == "undetermined"
    # without its heading a row is no words, but leaves open how the job ended
    assert outcome(STEPS + "bert-worker-0   0/1   Error   0   41m\n") == "undetermined"


@pytest.mark.parametrize(
    "asked", ["$ echo $?\n{}\n", '$ echo "exit: $?"\nexit: {}\n', "$ echo ${{PIPESTATUS[0]}}\n{}\n"]
)
def test_exit_status_0_ends_the_job_and_another_one_is_a_failure(asked: str) -> None:
    assert outcome(f"$ torchrun t.py\n{STEPS}{ODD}" + asked.format(0)) == "healthy"
    assert outcome(f"$ torchrun t.py\n{STEPS}{ODD}" + asked.format(1)) == "undetermined"


def test_exit_status_0_of_another_command_ends_no_job() -> None:
    assert outcome(f"$ torchrun t.py | tee log\n{STEPS}{ODD}$ echo $?\n0\n") == "undetermined"
    assert outcome(f"$ torchrun t.py\n{STEPS}{ODD}$ cat log\n$ echo $?\n0\n") == "undetermined"


def test_a_look_at_the_machine_after_exit_status_0_is_a_question() -> None:
    ended = f"$ torchrun t.py\n{STEPS}$ echo $?\n0\n"
    assert outcome(ended) == "healthy"
    assert outcome(f"{ended}$ dmesg -T | tail -n 4\n") == "undetermined"
    assert outcome(f"{ended}$ ibstat mlx5_0\n") == "undetermined"
    assert outcome(f"{STEPS}{END}$ dmesg -T | tail -n 4\n") == "undetermined"


RUN = "wandb: Run summary:\nwandb:     acc 0.9\nwandb: Synced 5 W&B file(s)\n"
COMET = "COMET INFO: Comet.ml Experiment Summary\nCOMET INFO:   Data:\nCOMET INFO: Uploading 3 metrics\n"
MLFLOW = "View run elk at: http://mlflow/#/runs/0b\n"


@pytest.mark.parametrize("closing", [RUN, COMET, MLFLOW])
def test_a_tracker_that_closes_its_run_after_the_work_raises_no_doubt(closing: str) -> None:
    assert outcome(STEPS + closing) == "healthy"
    # it hides no words of the program, and is printed too where the program left early
    assert outcome(STEPS + ODD + closing) == "undetermined"
    assert outcome(f"{STEPS} 38%|###  | 38/100 [01:00<01:30, 1.66s/it]\n{closing}") == "undetermined"
    assert outcome(f"step 100/3000 loss 1.9\n{STEPS}step 600/3000 loss 1.8\n{closing}") == "undetermined"


def test_a_tracker_that_does_not_close_its_run_leaves_it_open() -> None:
    assert outcome(f"{STEPS}wandb: Waiting for W&B process to finish... \n") == "undetermined"


@pytest.mark.parametrize(
    ("well", "badly"),
    [
        ("wandb: Program ended successfully.\n", "wandb: Program failed with code 1.\n"),
        (
            "wandb: Waiting for W&B process to finish... (success).\n",
            "wandb: Waiting for W&B process to finish... (failed 1).\n",
        ),
        (
            "INFO mlflow.projects: === Run (ID '0b6c2f') succeeded ===\n",
            "ERROR mlflow.cli: === Run (ID '0b6c2f') failed ===\n",
        ),
        ("2 passed, 1 warning in 87.20s (0:01:27)\n", "1 failed, 1 passed in 87.20s (0:01:27)\n"),
    ],
)
def test_who_started_or_watched_the_program_says_how_it_ended(well: str, badly: str) -> None:
    assert outcome(STEPS + ODD + well) == "healthy"
    assert outcome(STEPS + ODD + badly) == "undetermined"


@pytest.mark.parametrize(
    "ready",
    [
        "INFO text_generation_router::server: router/src/server.rs:2464: Connected",
        '{"level":"INFO","fields":{"message":"Connected"},"target":"text_generation_router"}',
        "[2025-10-08 10:04:17] Dummy health check server started in background thread at 0.0.0.0:30000",
        'I0412 10:11:12.431415 1 http_server.cc:320] "Started Metrics Service at 0.0.0.0:8002"',
        "INFO api.py:1224 -- Deployed app 'default' successfully.",
        "main: server is listening on http://127.0.0.1:8080 - starting the main loop",
    ],
)
def test_a_server_that_is_ready_works_until_it_says_something_new(ready: str) -> None:
    assert outcome(f"warming up\n{ready}\n") == "healthy"
    assert outcome(f"warming up\n{ready}\n{ODD}") == "undetermined"
    assert outcome("warming up\nConnected\n") != "healthy"


@pytest.mark.parametrize(
    "line",
    [
        "Save best model",
        "(trainer:272) INFO: There are no improvements in this epoch",
        '            "top5": 83.82166',
        "('Final validation metrics: ' \"{'score': 0.5321}\")",
    ],
)
def test_a_result_after_the_work_leaves_no_doubt_but_other_new_words_do(line: str) -> None:
    assert outcome(f"{STEPS}{line}\n") == "healthy"
    assert outcome(f"{STEPS}User program was canceled. Cancelling job...\n") == "undetermined"


@pytest.mark.parametrize(
    "line",
    [
        "rank 0: still waiting for validation results of rank 5 (1800 s)",
        "Validation results unavailable, giving up on this run",
        "best model is gone from disk, quitting early",
        "node3 lost: stopping all worker threads",
        '  "exit_code": 137',
        "Total img/sec on 8 GPU(s): 0.0 +-0.0\nworker 3 left",
    ],
)
def test_words_of_trouble_are_no_result(line: str) -> None:
    assert outcome(f"{STEPS}{line}\n") == "undetermined"


def test_whether_the_gpus_are_free_after_the_end_is_no_question_about_the_job() -> None:
    assert outcome(f"{STEPS}{END}$ nvidia-smi --query-gpu=memory.used --format=csv\n") == "healthy"
    assert outcome(f"{STEPS}$ nvidia-smi --query-gpu=memory.used --format=csv\n") == "undetermined"
    assert outcome(f"{STEPS}{END}$ nvidia-smi nvlink -s\n") == "undetermined"


@pytest.mark.parametrize(
    "line",
    [
        "Total wall time: 0:00:47",
        "[INFO:swift] End time of running main: 2025-05-21 07:49:01.550731",
        "INFO mlflow.store: uploaded outputs/model.pth",
        "result check OK",
        "861M outputs/model.pt.best",
        "-rw-r----- 1 ann lab 209M Nov 29 16:02 last.ckpt",
    ],
)
def test_a_total_or_what_was_kept_is_a_result(line: str) -> None:
    assert outcome(f"{STEPS}{line}\n") == "healthy"


@pytest.mark.parametrize("line", ["Total time left: 47", "uploaded 0 of 8, waiting", "result check not OK"])
def test_what_is_left_or_awaited_is_none(line: str) -> None:
    assert outcome(f"{STEPS}{line}\n") == "undetermined"


def test_a_command_that_hung_at_the_start_of_nccl_is_not_forgotten_for_one_that_worked() -> None:
    run = "ann@w1:~$ mpirun -np 2 ./all_reduce_perf -g 1\n"
    start = "w1:70:71 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1a commId 0x5 - Init START\n"
    complete = start.replace("Init START", "Init COMPLETE")
    assert outcome(f"{run}{start}^Cann@w1:~$ \n{run}{MEASURED}") == "undetermined"
    assert outcome(f"{run}{start}{complete}{MEASURED}^Cann@w1:~$ \n{run}{MEASURED}") == "healthy"


def test_a_warning_of_a_logger_is_got_over_with_the_next_line_of_work() -> None:
    warning = (
        "2021-06-02 13:20:41.002193: W tensorflow/core/auto_shard.cc:695] it failed to apply FILE sharding\n"
    )
    work = "79/79 [==============================] - 2s 6ms/step - loss: 0.0412 - accuracy: 0.9866\n"
    assert outcome(f"{work}{warning}{work}") == "healthy"
    assert outcome(f"{work}{warning}") == "undetermined"
    assert outcome(f"{work}{warning.replace(': W', ': E')}{work}") == "undetermined"
    assert outcome(f"{work}{warning.replace('failed to', 'is stuck, cannot')}{work}") == "undetermined"


def test_a_job_that_slurm_preempted_and_started_again_is_at_work() -> None:
    again = "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4\n"
    ended = (
        "slurmstepd: error: *** JOB 47 ON w4 CANCELLED AT 2023-11-29T15:47:21 DUE TO PREEMPTION ***\n"
        "srun: error: w4: tasks 0-3: Killed\n"
    )
    assert outcome(f"{STEPS}{ended}{again}{STEPS}") == "healthy"
    assert outcome(f"{STEPS}{ended}{STEPS}") == "undetermined", "ranks go on while Slurm waits for them"
    assert outcome(f"{STEPS}{ended}") == "undetermined"
    assert outcome(f"{STEPS}{ended.replace('PREEMPTION', 'TIME LIMIT')}{again}{STEPS}") == "undetermined"


def test_a_command_that_was_stopped_by_hand_is_not_made_good_by_another_one() -> None:
    on_two = "root@w1:/run# horovodrun -np 4 -H a:2,b:2 python mnist.py\nLaunched horovodrun server.\n^C^C\n"
    on_one = f"root@w1:/run# horovodrun -np 2 -H localhost:2 python mnist.py\n{MEASURED}"
    assert outcome(on_two + on_one) == "undetermined"
    assert outcome(on_two + on_two.replace("^C^C\n", MEASURED)) == "healthy"


def test_a_server_that_became_ready_reached_what_it_had_waited_for() -> None:
    waited = "E gcs_rpc_client.h:554: Failed to connect to GCS at address head:6379 within 5 seconds.\n"
    ready = "INFO:     Application startup complete.\nINFO:     Uvicorn running on http://0.0.0.0:8080\n"
    assert outcome(waited) == "named"
    assert outcome(waited + ready) == "undetermined"


def test_none_that_failed_is_no_trouble() -> None:
    row = "│ Failed Requests │ {} │\n"
    assert outcome(STEPS + END + row.format(0)) == "healthy"
    assert outcome(STEPS + row.format(7)) == "undetermined"


def test_a_metric_that_is_called_an_error_is_progress() -> None:
    row = "Epoch: [1]  [   {}/7393]  eta: 14:20:31  lr: 0.000100  class_error: 80.00  loss: 17.9120\n"
    assert outcome("".join(row.format(number) for number in (0, 10, 20))) == "healthy"


@pytest.mark.parametrize(
    "end",
    [
        "ssh check node02: success",
        "Tokenizing dataset: all done!",
        "Compiling kernels: done in 35.2 s",
        "worker 3: done.",
        "Container finished successfully",
        "request returned 503 Service Unavailable",
        "TCPStore master now listening for connections on port 29500",
    ],
)
def test_no_word_of_a_part_ends_a_job_that_hangs_at_the_start_of_nccl(end: str) -> None:
    start = (
        "n1:1:{0} [0] NCCL INFO comm 0x1 rank {0} nranks 2 cudaDev {0} busId 1000 commId 0xabc - Init START\n"
    )
    assert outcome(f"{end}\n{start.format(0)}{start.format(1)}") == "undetermined"


@pytest.mark.parametrize(
    ("trouble", "end"),
    [
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
            "Log collection completed successfully.",
        ),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "=== done ==="),
        ("ModuleNotFoundError: No module named 'apex'", "copying logs: success"),
        ("RuntimeError: No CUDA GPUs are available", "artifact upload: Success"),
        ("Killed", "Data pipeline complete!"),
        ("ERROR node n2 unreachable, giving up", "Cleanup completed successfully."),
        ("INFO: Uvicorn running on http://0.0.0.0:8000", "Killed"),
    ],
)
def test_no_clean_up_makes_a_failed_job_fine(trouble: str, end: str) -> None:
    assert outcome(f"step 1 loss 2.1\n{trouble}\n{end}\n") != "healthy"


@pytest.mark.parametrize(
    "line",
    [
        "Elapsed time since last heartbeat of rank 3: 600 s",
        "Exceeded wall time 12:00:00",
        "Abnormal termination (return value 9), total run time: 600 s",
        "Job stopped at 2026-01-02 12:00:11",
        "-rw------- 1 ann ann 4123456789 Jan  2 12:00 core.12345",
        "Stored 12 chunks of stack traces",
        "Normal termination not reached",
        "request returned 503 Service Unavailable",
    ],
)
def test_last_words_that_tell_of_trouble_are_no_result(line: str) -> None:
    assert outcome(f"{STEPS}{line}\n") == "undetermined"


def test_a_look_at_what_slows_a_gpu_is_a_question_after_the_end_as_well() -> None:
    assert outcome(f"{STEPS}{END}$ nvidia-smi\n") == "healthy"
    assert outcome(f"{STEPS}{END}$ nvidia-smi --query-gpu=clocks_throttle_reasons.active --format=csv\n") == (
        "undetermined"
    )


def test_a_job_that_slurm_cancelled_for_no_told_reason_is_not_taken_for_a_preempted_one() -> None:
    ended = "slurmstepd: error: *** JOB 47 ON w4 CANCELLED AT 2023-11-29T15:47:21 ***\n"
    again = "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4\n"
    assert outcome(f"{STEPS}{ended}{again}{STEPS}") != "healthy"
