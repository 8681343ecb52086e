"""Whom explain names: the node that a sentence is about, in both forms of its name, not who spoke it."""

from __future__ import annotations

from tests.logs.rounds import explain


def hosts(log: str) -> tuple[str, ...]:
    return explain("job.log", log.encode()).findings[0].hosts


def test_a_node_that_ssh_does_not_find_is_named_with_and_without_its_service() -> None:
    log = "$ kubectl logs train-l-x7z\nssh: Could not resolve hostname w-4.train.ns.svc: Name or service not known\n"
    assert set(hosts(log)) == {"w-4", "w-4.train.ns.svc"}


def test_a_prompt_names_the_host_whoever_its_user_is() -> None:
    log = (
        "(env) jdoe@n042:~/runs/a  $ python train.py\n"
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch cgroup.\n"
    )
    assert hosts(log) == ("n042",)


def test_the_node_that_died_is_named_by_its_address() -> None:
    log = (
        "Traceback (most recent call last):\nray.exceptions.RayActorError: The actor died unexpectedly before "
        "finishing this task.\n\tclass_name: Worker\n\tpid: 9\n\tip: 10.8.0.4\n"
        "The actor is dead because its node has died. Node Id: 01ab\n"
    )
    told = log.replace("ray.exceptions", "(Worker pid=9, ip=10.8.0.4) ray.exceptions")
    assert "10.8.0.4" in hosts(
        told.replace("The actor is dead", "(Worker pid=9, ip=10.8.0.4) The actor is dead")
    )


def test_a_cuda_call_that_fails_concerns_the_host_that_says_so() -> None:
    failed = "{}:7:8 [0] init.cc:4 NCCL WARN Cuda failure 'operation not supported'\n"
    assert hosts(failed.format("n1")) == ("n1",)
    assert hosts(failed.format("n1") + failed.format("n2")) == ()


def test_a_failed_link_has_two_ends() -> None:
    log = (
        "n1:7:8 [0] x.c:1 NCCL WARN NET/IB : Got completion from peer 10.8.0.4<5> with status=12 opcode=0 len=0 vendor "
        "err 129 (Recv)\nn1 kernel: mlx5_core 0000:3b:00.0 eth1: Link down\n"
    )
    assert set(hosts(log)) >= {"n1", "10.8.0.4"}


def test_the_process_whose_traceback_mp_spawn_shows_is_named() -> None:
    log = (
        "x.cu:1: kernel: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
        "ProcessRaisedException: \n\n-- Process 2 terminated with the following error:\n"
        "Traceback (most recent call last):\n  x.backward()\nRuntimeError: CUDA error: device-side assert triggered\n"
    )
    assert hosts(log) == ("rank 2",)


def test_what_a_program_said_last_was_said_on_the_host_of_the_heading_above() -> None:
    timeout = (
        "[rank0]:[E x.cpp:1] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600042 milliseconds before timing out.\n"
    )
    log = (
        "=== node 0: gpu-b11 (10.25.117.28) ===\nLoading checkpoint shards: 100% Completed\nmodel is ready\n"
        f"{timeout}=== node 1: gpu-b12 (10.25.117.31) ===\nLoading checkpoint shards: 40% Completed\n"
    )
    assert hosts(log) == ("gpu-b12",)


def test_the_replica_before_a_line_of_vertex_is_its_host() -> None:
    line = "ERROR\t2024-06-03 14:21:24 +0000\tworkerpool1-0\t[rank11]: torch.OutOfMemoryError: CUDA out of memory.\n"
    assert set(hosts(line)) == {"workerpool1-0", "rank 11"}


def test_the_rank_that_failed_first_is_named_with_its_host() -> None:
    log = (
        "[u@n7 run]$ mpirun -n 2 python t.py\nError 2 cudaErrorMemoryAllocation: out of memory\n"
        "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 0.\n"
    )
    assert hosts(log) == ("n7", "rank 1")


def test_the_node_of_a_described_pod_is_named_where_the_machine_is_to_blame() -> None:
    log = "$ kubectl describe pod ddp-7\nName:           ddp-7\nNode:           gpu-07.example.edu/10.40.2.17\n{}\n"
    assert hosts(log.format("Message:  nvml: GPU is lost")) == ("gpu-07.example.edu", "ddp-7")
    assert hosts(log.format("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB")) == ("ddp-7",)


def test_a_pod_that_was_not_started_is_who_is_missing() -> None:
    rows = "train-w-1   1/1     Running   0   3h\ntrain-w-2   0/1     Pending   0   3h\n"
    late = (
        "(Worker pid=7, ip=10.0.0.1) torch.distributed.DistStoreError: Timed out after 601 seconds waiting for "
        "clients. 1/2 clients joined.\n"
    )
    assert hosts(rows + late) == ("train-w-2",)


def test_a_heading_names_a_host_by_its_address_too() -> None:
    log = "# worker on 10.20.4.17\n[LightGBM] [Fatal] Binding port 13001 failed\n"
    assert hosts(log) == ("10.20.4.17",)


def test_a_pod_of_another_job_is_not_who_is_missing() -> None:
    known = "llama-a-master-0:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
    late = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n"
    assert hosts(f"{known}{late}llama-a-worker-0   0/1   Pending   0   20m\n") == ("llama-a-worker-0",)
    assert "llama-b-worker-0" not in hosts(f"{known}{late}llama-b-worker-0   0/1   Pending   0   20m\n")


def test_a_file_of_an_address_is_of_that_host() -> None:
    log = "===== 10.0.0.6 =====\nstep 1 loss 2.0\n### 10.0.0.7:/var/log/train.log\n"
    log += "Traceback (most recent call last):\nValueError: bad label\n"
    assert hosts(log) == ("10.0.0.7",)
    assert hosts(log.replace("10.0.0.7:/var/log/train.log", "rank 1 @ 10.0.0.7")) == ("10.0.0.7",)


def test_where_only_one_rank_is_known_no_other_is_called_late() -> None:
    timeout = (
        "gpu1: [rank3]:[E1124 10:00:00.000000 x.cpp:616] [Rank 3] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=42, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    )
    assert hosts(timeout) == ()
