"""Logs that are a shell session: several commands of one person, their prompts, and what they looked up."""

from __future__ import annotations

from tests.logs.rounds import explain

PROMPT = "user@gpu7:~/nccl-tests$ "
RUN = f"{PROMPT}NCCL_DEBUG=VERSION ./build/all_reduce_perf -b 8 -e 16M -g 2\n"
RANK = "#  Rank  0 Group  0 Pid   9124 on      gpu7 device  0 [0000:17:00] NVIDIA L40S\n"
FAULT = (
    "gpu7: Test CUDA failure common.cu:413 'an illegal memory access was encountered'\n"
    " .. gpu7 pid 9124: Test failure common.cu:592\n"
)
GOOD = (
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 11.1609 \n#\n\n"
    "# Collective test concluded: all_reduce_perf\n"
)


def first(log: str) -> str:
    found = explain("job.log", log.encode())
    return found.findings[0].slug if found.outcome == "named" else found.outcome


def version(number: str) -> str:
    return f"NCCL version {number}+cuda12.2\n"


def test_a_command_that_ends_well_with_another_nccl_only_tells_of_a_defect() -> None:
    failed = RUN + RANK + version("2.26.2") + FAULT
    assert first(failed + RUN + RANK + version("2.28.9") + GOOD) == "nccl-or-driver-bug"
    assert first(failed + RUN + RANK + version("2.26.2") + GOOD) != "nccl-or-driver-bug"


def test_versions_of_commands_one_after_the_other_are_no_mismatch_and_those_of_one_command_are() -> None:
    one, other = (f"gpu{number}:1:2 [0] NCCL INFO {version(f'2.2{number}.3')}" for number in (6, 8))
    assert first(RUN + one + FAULT + RUN + other + FAULT) != "nccl-version-mismatch"
    assert first(RUN + one + other + FAULT) == "nccl-version-mismatch"


def test_a_look_at_the_machine_raises_no_doubt_where_the_last_run_after_it_ended_well() -> None:
    look = f"{PROMPT}ibdev2netdev\nmlx5_0 port 1 ==> ib0 (Up)\n"
    assert first(look + RUN + RANK + GOOD + PROMPT) == "healthy"
    assert first(RUN + RANK + GOOD + look + PROMPT) == "undetermined"
    assert first(look + RUN + RANK + GOOD + RUN + RANK) == "undetermined"


def test_a_bar_that_stands_before_its_end_when_the_shell_asks_for_a_command_was_left() -> None:
    steps = "".join(f"step {number} loss 2.{number}\n" for number in range(10, 15))
    log = f"{PROMPT}torchrun train.py\n{steps}{{0}}%|###  | {{0}}/100 [01:00<01:30, 1.66s/it]\n"
    assert first(log.format(38) + PROMPT) == "undetermined"
    assert first(log.format(100) + PROMPT) == "healthy"
    assert first(log.format(38)) == "healthy"
    assert first(log.format(38).rstrip() + PROMPT) == "undetermined"
    assert first(log.format(38) + "$ \n") == "undetermined"


def test_a_setting_that_was_tried_between_two_versions_may_be_what_helped() -> None:
    failed = RUN + RANK + version("2.26.2") + FAULT
    tried = f"{PROMPT}NCCL_P2P_DISABLE=1 ./build/all_reduce_perf -g 2\n{RANK}{version('2.26.2')}{FAULT}"
    fixed = RUN + RANK + version("2.28.3") + GOOD
    assert first(failed + fixed) == "nccl-or-driver-bug"
    assert first(failed + tried + fixed) != "nccl-or-driver-bug"


def test_a_prompt_after_the_work_is_no_word_of_the_program() -> None:
    steps = "".join(f"step {number} loss 2.{number}\n" for number in range(10, 15))
    assert first(f"{PROMPT}torchrun train.py\n{steps}{PROMPT}\n") == "healthy"
    assert first(f"{PROMPT}torchrun train.py\n{steps}Zwoosh kaput\n{PROMPT}\n") == "undetermined"


def test_what_a_person_asked_is_not_what_kept_a_rank_busy() -> None:
    late = (
        "[E x.cpp:1] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, "
        "Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    )
    asked = f"{PROMPT}nvidia-smi --query-gpu=index,name --format=csv\nindex, name\n0, NVIDIA L40S\n"
    assert first(late.format(0) + late.format(1) + asked) == "undetermined"


def test_the_lines_that_kubectl_shows_are_the_pods_and_not_those_of_the_machine_at_the_prompt() -> None:
    log = (
        "[root@k8s-admin ~]# kubectl -n train logs job-41-worker-1 | tail\n"
        "RuntimeError: DataLoader worker (pid 11) is killed by signal: Bus error.\n"
    )
    assert explain("job.log", log.encode()).findings[0].hosts == ("job-41-worker-1",)


def test_a_job_that_kubectl_calls_succeeded_did_not_fail() -> None:
    first_try = "$ kubectl logs bert-glue-worker-1 --previous\nRuntimeError: Socket Timeout\n"
    first_try += "$ kubectl logs bert-glue-worker-0\nepoch 1: {'accuracy': 0.7}\n"
    table = "$ kubectl get pytorchjob\nNAME         STATE       AGE\nbert-glue    {}   58m\n"
    assert first(first_try + table.format("Succeeded")) == "healthy"
    assert first(first_try + table.format("Failed   ")) != "healthy"


def test_a_step_of_slurm_that_failed_is_not_called_fine_for_what_ended_well_beside_it() -> None:
    rows = (
        "77         FAILED      1:0   00:01:58\n77.ex+  COMPLETED      0:0   00:01:58\n"
        "77.0       FAILED      1:0   00:01:12\n"
    )
    assert first(f"step 1 loss 2.0\nfoo\n{rows}") != "healthy"
    cut = "77.0+ train NODE_FAIL 0:0\n77.batch train COMPLETED 0:0\n77  train COMPLETED 0:0\n"
    assert first(f"RuntimeError: Socket Timeout\n{cut}") != "healthy"


def test_another_job_that_kubectl_calls_succeeded_says_nothing_of_one_that_failed() -> None:
    table = (
        "$ kubectl get pytorchjob\nNAME    STATE       AGE\nold-job    Succeeded   5d\nmy-job     {}   58m\n"
    )
    assert first("RuntimeError: Socket Timeout\n" + table.format("Failed   ")) != "healthy"
    assert first("RuntimeError: Socket Timeout\n" + table.format("Running  ")) != "healthy"


def test_a_job_that_hung_until_a_person_stopped_it_and_works_without_p2p_tells_of_p2p() -> None:
    stopped = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 51 got signal: 2\n"
    hung = f"{PROMPT}./train.sh\n{stopped}"
    steps = "".join(f"step {number} loss 2.{number}\n" for number in range(10, 15))
    assert first(f"{hung}{PROMPT}NCCL_P2P_DISABLE=1 ./train.sh\n{steps}") == "p2p-broken"
    assert first(f"{hung}{PROMPT}./train.sh\n{steps}") != "p2p-broken"
