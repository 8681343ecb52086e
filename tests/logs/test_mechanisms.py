"""What explain does with lines that no table knows: by class, errno, words, labels, and how a job ended."""

from __future__ import annotations

import pytest

from tests.logs.rounds import explain

TIMEOUT = (
    "[rank1]:[E ProcessGroupNCCL.cpp:1] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
)


def first(log: str) -> tuple[str, tuple[str, ...]]:
    found = explain("job.log", log.encode())
    return (found.findings[0].slug if found.outcome == "named" else found.outcome), (
        found.findings[0].hosts if found.findings else ()
    )


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("OSError: [Errno 116] Stale file handle: '/nfs/train.idx'", "data-or-file-missing"),
        ("OSError: Incorrect path_or_model_id: '/mnt/models/llama'. Please provide", "data-or-file-missing"),
        ("OSError: [Errno 24] Too many open files: '/proc/cpuinfo'", "fd-limit"),
        ("OSError: [Errno 28] No space left on device: '/psm_2bd8c3f1'", "shm-too-small"),
        ("ValueError: connect to 10.31.2.9:36789 timed out (errno 110)", "firewall-blocked-ports"),
        ("dial tcp 10.0.0.3:6379: connect: no route to host", "firewall-blocked-ports"),
        ("E: connect(fd=48, dest_addr=172.17.0.1:42887) failed: Connection refused", "wrong-interface"),
        ("socket.gaierror: [Errno -2] Name or service not known", "hostname-resolution"),
        ("AssertionError: Expected at least 4 GPUs but only 1 is visible", "gpu-visibility"),
        ("x.cpp:1] slice failed on mlx5_1: transport retry counter exceeded", "ib-link-or-fabric"),
        ("h:1:2 [0] x.h:3 WARN Call to connect failed : Connection timed out", "firewall-blocked-ports"),
    ],
)
def test_a_class_or_number_tells_the_cause(line: str, cause: str) -> None:
    assert first(f"step 1\n{line}\n")[0] == cause


def test_torchs_own_out_of_memory_error_is_of_the_gpu_alone() -> None:
    line = (
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 37.25 GiB. GPU 1 is full.\n"
    )
    assert [finding.slug for finding in explain("job.log", line.encode()).findings] == ["cuda-oom"]


@pytest.mark.parametrize(
    "line", ["the run hangs here", "peer gpu-3 is not responding", "mpirun: killing job...", "it crashed"]
)
def test_a_log_that_ends_with_trouble_is_not_called_fine(line: str) -> None:
    assert first(f"step 1\n{line}\n")[0] == "undetermined"
    assert first(f"step 1\n{line}\nstep 2\nTraining finished successfully\n")[0] == "healthy"


def test_a_job_that_its_launcher_saw_succeed_worked_and_nobody_is_blamed() -> None:
    log = (
        "[rank3]: RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n"
        "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM)\n"
    )
    assert first(f"{log}{{}}\n")[0] == "host-oom-kill"
    assert first(f"{log}Job 'raysubmit_9' succeeded\n") == ("healthy", ())


@pytest.mark.parametrize(
    "line",
    [
        "INFO Connecting to Redis at 10.0.0.5:6379 (timeout 30 s)",
        "INFO dial tcp 10.0.0.5:6379: dial timeout 5s",
        "HTTPConnectionPool(host='10.0.0.5', port=80): retries 3, timeout 10",
        "init_process_group: timeout 1800 s",
        "12 passed, 0 failed",
    ],
)
def test_a_setting_or_a_count_is_no_trouble(line: str) -> None:
    assert first(f"{line}\nstep 1 loss 3.1\nstep 2 loss 3.0\nstep 3 loss 2.9\n")[0] in ("healthy", "nothing")


def test_what_a_model_was_asked_is_no_error_of_the_job() -> None:
    log = "Received request 1: prompt: 'torch.cuda.OutOfMemoryError: CUDA out of memory'\nTraining finished\n"
    assert first(log) == ("healthy", ())


def test_labels_of_docker_compose_name_the_host() -> None:
    log = "".join(f"worker-{n}  | step {s}\n" for s in range(3) for n in range(2))
    log += "worker-1  | Traceback (most recent call last):\nworker-1  | KeyError: 'x'\n"
    assert first(log) == ("rank-exception", ("worker-1",))


def test_a_traceback_without_labels_is_of_who_logged_the_error_above_it() -> None:
    log = (
        "[2025-05-01 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\nKeyError: 1\n'
    )
    assert first(log) == ("rank-exception", ("rank 3",))


def test_a_plugin_that_nccl_did_without_is_no_error() -> None:
    log = (
        "a:1:2 [7] sharp_plugin.c:320 NCCL WARN NET/IB : SHARP coll init error: Cannot create SHARP job(-11)\n"
        "a:1:2 [0] transport.cc:323 NCCL WARN Cannot initialize CollNet, using point-to-point network instead\n"
        "a:1:2 [0] NCCL INFO comm 0x55 rank 0 nranks 96 cudaDev 0 nvmlDev 0 busId 1000 commId 0x8 - Init COMPLETE\n"
        "iteration 100\n"
    )
    assert {finding.severity for finding in explain("a", log.encode()).findings} <= {"warning"}


def test_the_pods_previous_attempt_does_not_count_where_the_next_worked() -> None:
    failed = "$ kubectl logs w-0 --previous\nTraceback (most recent call last):\nValueError: host not found: Name or "
    failed += "service not known\n"
    assert first(failed)[0] == "k8s-dns-or-mesh"
    assert first(f"{failed}$ kubectl logs w-0\niter 1\ntarget iterations reached\n")[0] == "healthy"


def test_the_rank_that_the_kernel_holds_up_is_the_late_one() -> None:
    log = f"[rank0]: upload 162.3 GB / 611 GB (104 MB/s)\n{TIMEOUT}"
    assert first(log) == ("slow-rank-timeout", ("rank 0",))


def test_the_same_host_id_on_two_hosts_makes_nccl_take_them_for_one() -> None:
    log = "".join(f"w-{n}:{n}1:9 [0] NCCL INFO NCCL_HOSTID set by environment to rack7\n" for n in (1, 2))
    log += "w-1:11:9 [0] misc/shmutils.cc:1 NCCL WARN Error: failed to open shared memory segment /dev/shm/nccl-1\n"
    assert first(log)[0] == "host-hash-collision"


FAILED = (
    "[rank3]: Traceback (most recent call last):\n"
    '[rank3]:   File "t.py", line 9, in step\n'
    "[rank3]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network "
    "error\n"
    "E0101 10:00:01 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 3 (pid: 9)\n"
)


def test_a_job_that_goes_on_after_an_error_got_over_it() -> None:
    steps = [f"step {number} loss 2.0{number}\n" for number in range(4)]
    assert first(FAILED + "".join(steps))[0] == "healthy"
    assert first(FAILED + "".join(steps[:1]))[0] == "undetermined"
    assert first("".join(steps) + FAILED)[0] == "undetermined"
    assert first(FAILED + "".join(steps) + FAILED)[0] == "undetermined"


def test_what_a_kernel_says_of_a_gpu_stays_true_though_the_job_goes_on() -> None:
    log = "NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.\n" + "step 1 loss 2.0\n" * 4
    assert first(log)[0] == "gpu-hardware"


def test_a_log_that_shows_no_work_is_not_called_fine() -> None:
    start = (
        "n1:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
        "n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Init COMPLETE\nbuilding the model\n"
    )
    assert first(start)[0] == "undetermined"
    assert first(f"{start}step 1 loss 2.1\n")[0] == "healthy"


def test_the_answer_of_a_shell_is_how_the_job_ended() -> None:
    assert first("loading\n$ echo $?\n1\n")[0] == "undetermined"
    raised = "Traceback (most recent call last):\nKeyError: 1\n"
    assert first(raised + "retry: saved to /out\n$ echo $?\n0\n")[0] == "healthy"


@pytest.mark.parametrize(
    ("log", "is_certain"),
    [
        ("Traceback (most recent call last):\nKeyError: 'x'\n", True),
        ("Traceback (most recent call last):\nRuntimeError: the backend gave up\n", False),
        (
            "x:1:2 [0] init.cc:1 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000\n",
            True,
        ),
        (
            "x:1:2 [0] init.cc:1 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000\n"
            "OSError: [Errno 24] Too many open files: '/proc/cpuinfo'\n",
            False,
        ),
    ],
)
def test_a_cause_is_certain_only_where_its_line_states_it_and_no_rival_is_stated_too(
    log: str, is_certain: bool
) -> None:
    found = explain("job.log", log.encode())
    assert found.outcome == "named"
    assert ("The log says so directly." in found.findings[0].summary) is is_certain


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (  # the name of a host that is all digits is taken for an address
            "[E socket.cpp:753] [c10d] The client socket has failed to connect to any network address of "
            "(6841231, 47389).\n",
            "hostname-resolution",
        ),
        (
            "x:1:2 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 172.21.0.1<57093> failed : "
            "Connection refused\n",
            "wrong-interface",
        ),
        (
            "Last error:\nInvalid rank requested : 4/4\nRuntimeError: NCCL error in: x.cpp:1\n",
            "world-size-mismatch",
        ),
        (
            "".join(
                f"initializing ddp: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/2\n" for rank in (0, 0, 1, 1)
            ),
            "world-size-mismatch",
        ),
        (
            "x:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.7<0>\n# 10.9.9.3 is the security scanner\n"
            "x:1:2 [0] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote peer 10.9.9.3<36138>\n",
            "port-scanner",
        ),
        (
            "slurmstepd: task[0] on n3: max locked memory (kbytes, -l) 64\n"
            "n3:1:2 [4] ibvwrap.c:130 NCCL WARN Call to ibv_create_qp failed\n",
            "memlock-limit",
        ),
        (
            "[rank0]: RuntimeError: DataLoader worker (pid 9382) is killed by signal: Killed.\n",
            "host-oom-kill",
        ),
        ("RuntimeError: NIXL is not available\n", "python-env"),
        ("[rank1]: OSError: [Errno 12] Cannot allocate memory\n", "host-oom-kill"),
        ("[rank1]: OSError: [Errno 5] Input/output error\n", "rank-exception"),
        (
            "+ getent hosts head\nwaiting for head-0.train to resolve\nwaiting for head-0.train to resolve\n",
            "hostname-resolution",
        ),
    ],
)
def test_the_form_of_an_address_a_name_or_a_number_tells_the_cause(log: str, cause: str) -> None:
    assert first(log)[0] == cause


def test_a_rank_in_a_collective_that_another_has_behind_itself_is_out_of_step() -> None:
    def rank(number: int, sequence: int, enqueued: int) -> str:
        work = f"WorkNCCL(SeqNum={sequence}, OpType=ALLGATHER, NumelIn=1, NumelOut=4, Timeout(ms)=600000)"
        status = f"last enqueued work: {enqueued}, last completed work: {sequence - 1}"
        return (
            f"[rank{number}]:[E x.cpp:629] [Rank {number}] Watchdog caught collective operation timeout: {work} ran "
            f"for 600034 milliseconds before timing out.\n[rank{number}]:[E x.cpp:2168] [PG ID 0 PG GUID 0(default_pg) "
            f"Rank {number}] failure detected by watchdog at work sequence id: {sequence} PG status: {status}\n"
        )

    assert first(rank(0, 25, 32) + rank(3, 27, 30)) == ("collective-mismatch", ("rank 0",))
    assert first(rank(0, 25, 25) + rank(3, 27, 30))[0] == "collective-mismatch"
    assert first(rank(0, 25, 25) + rank(3, 26, 30))[0] != "collective-mismatch"


def test_what_a_job_got_over_is_not_why_it_failed_later() -> None:
    early = "x:1:2 [4] NCCL INFO P2P is disabled between connected GPUs 4 and 3\n"
    steps = "".join(f"iteration {number}/ 320000 | lm_loss: 2.4671\n" for number in range(100, 150, 10))
    late = "RuntimeError: NCCL error in: x.cpp:1269, internal error, NCCL version 2.14.3\n"
    assert first(early + late)[0] == "p2p-broken"
    assert first(early + steps + late)[0] == "undetermined"


def test_who_waits_in_a_collective_is_not_behind_the_number_that_others_had_queued() -> None:
    def status(rank: int, enqueued: int) -> str:
        at = f"[rank{rank}]:[E x.cpp:1] [PG ID 1 PG GUID 1 Rank {rank}]"
        return f"{at} at work: 85, last enqueued NCCL work: {enqueued}, last completed NCCL work: 84.\n"

    waits = (
        "[rank1]:[E x.cpp:1] [PG ID 1 PG GUID 1 Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=85, OpType=ALLGATHER, Timeout(ms)=600000) ran for 600034 milliseconds before timing out.\n"
    )
    assert first(status(0, 88) + status(2, 88) + status(1, 88) + waits)[0] == "undetermined"
    assert first(status(0, 88) + status(2, 88) + waits)[0] == "undetermined"
    assert first(status(0, 88) + status(2, 88) + status(1, 84)) == ("slow-rank-timeout", ("rank 1",))


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: cancelled",  # vLLM's workers, after one of them died
        "Error: ShardCannotStart",  # TGI, after a shard ended
    ],
)
def test_what_a_server_says_after_its_worker_ended_is_no_cause(line: str) -> None:
    assert first(f"ERROR worker 2 died unexpectedly\n{line}\n")[0] == "undetermined"


def test_a_corrected_error_of_pcie_says_nothing_of_shared_memory() -> None:
    line = "nvidia 0000:3b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n"
    assert first(line)[0] != "shm-too-small"
    assert first("DataLoader worker (pid 7) is killed by signal: Bus error.\n")[0] == "shm-too-small"


def test_an_exception_after_the_timeouts_comes_of_them_and_one_before_them_is_the_cause() -> None:
    raised = "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nKeyError: 'rng'\n"
    bar = "eval:  61%|######   | 7712/12640 [30:00<19:10,  4.28it/s]\n"
    assert (
        first(bar + TIMEOUT + TIMEOUT.replace("ank1", "ank2").replace("ank 1", "ank 2") + raised)[0]
        != "rank-exception"
    )
    assert first(raised + TIMEOUT)[0] == "rank-exception"


@pytest.mark.parametrize("address", ["255.255.0.0", "239.1.2.3"])
def test_a_master_address_that_no_machine_can_have_is_wrong(address: str) -> None:
    line = (
        "torch.distributed.DistNetworkError: The client socket has timed out after 900s while trying to connect to "
        f"({address}, 29500).\n"
    )
    assert first(line)[0] == "master-addr-wrong"
    assert first(line.replace(address, "10.1.2.3"))[0] != "master-addr-wrong"


def test_workers_of_several_machines_that_look_for_the_store_at_loopback_are_told_wrong() -> None:
    def worker(ip: str, rank: int) -> str:
        told = f"world_size=2 rank={rank} distributed_init_method=tcp://127.0.0.1:38429 backend=nccl"
        return f"(Worker pid={rank}, ip={ip}) {told}\n"

    late = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n"
    assert first(worker("10.0.0.1", 0) + worker("10.0.0.2", 1) + late)[0] == "master-addr-wrong"
    assert first(worker("10.0.0.1", 0) + worker("10.0.0.1", 1) + late)[0] == "world-size-mismatch"


def test_connections_lost_after_the_gids_of_an_adapter_changed_blame_the_gid() -> None:
    changed = "h1:1:2 [4] net_ib.cc:94 NCCL WARN NET/IB : mlx5_6:1 Got async event : GID table change\n"
    lost = (
        "h1:1:3 [4] net_ib.cc:1632 NCCL WARN NET/IB : Got completion from peer 10.6.4.12<38816> with status=12 "
        "opcode=0 len=0 vendor err 129 (Send) localGid ::ffff:10.6.4.17 remoteGids::ffff:10.6.4.12\n"
    )
    assert first(changed + lost) == ("roce-gid", ("h1",))
    assert first(lost)[0] == "ib-link-or-fabric"
    assert first(lost + changed)[0] != "roce-gid"


def test_a_queue_pair_between_infiniband_and_roce_is_a_wrong_choice_of_adapters() -> None:
    uses = "h1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_2:1/{} ; OOB eth0:10.1.7.18<0>\n"
    fails = (
        "h1:1:2 [0] misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument\n"
    )
    assert first(uses.format("RoCE") + fails)[0] == "ib-hca-selection"
    assert first(uses.format("IB") + fails)[0] != "ib-hca-selection"


def test_a_library_of_amd_without_code_for_the_gpu_is_named_as_nvidias_is() -> None:
    line = "h:1:2 [0] src/enqueue.cc:2140 NCCL WARN {} failure 'invalid device function'\n"
    assert first(line.format("HIP"))[0] == first(line.format("Cuda"))[0] == "unsupported-gpu-arch"


def test_memory_of_a_gpu_that_ucx_cannot_register_is_gpudirect() -> None:
    line = "[1.7] [g:8:0] ib_md.c:349  UCX  ERROR ibv_reg_mr(address=0x7fd1, length=4096, access=0xf) failed: {}\n"
    assert first(line.format("Bad address"))[0] == "gdr-unavailable"
    assert first(line.format("Cannot allocate memory"))[0] == "memlock-limit"


def test_a_pod_that_was_evicted_for_memory_ran_out_of_it() -> None:
    event = (
        "44m  Warning  Evicted  pod/train-w-1   The node was low on resource: {}. Threshold quantity: 100Mi\n"
    )
    assert first(event.format("memory"))[0] == "host-oom-kill"
    assert first(event.format("ephemeral-storage"))[0] == "undetermined"


def test_sockets_that_fail_after_a_plugin_was_left_out_are_the_cause() -> None:
    plugin = "h:1:2 [0] NCCL INFO NET/OFI No eligible providers were found\n"
    sockets = "h:1:2 [0] NCCL INFO Using network Socket\n"
    refused = (
        "h:1:2 [0] misc/socket.cc:518 NCCL WARN socketPollConnect: connect to 169.254.170.23<42217> returned "
        "Connection refused, exceeded error retry count after 35 attempts\n"
    )
    assert first(plugin + sockets + refused)[0] == "wrong-interface"
    assert first(plugin + "x: NCCL error: unhandled system error\n")[0] == "net-plugin-config"


def test_a_gpu_that_is_busy_for_one_rank_of_many_is_not_well_and_one_that_two_took_is_shared() -> None:
    busy = "CUDA error: all CUDA-capable devices are busy or unavailable\n"
    others = "".join(f"srun: error: n{number}: task {number}: Terminated\n" for number in range(5))
    gone = "srun: error: n9: task 9: Exited with exit code 1\n"
    assert first(f"9: {busy}{gone}{others}")[0] == "gpu-hardware"
    assert (
        first(f"Using device 0: Tesla P100\nUsing device 0: Tesla P100\nERROR: {busy}")[0] == "duplicate-gpu"
    )


def test_connections_through_a_sidecar_in_a_job_that_does_not_get_on_blame_the_mesh() -> None:
    through = (
        "[I socket.cpp:276] [c10d] The server socket on [::]:23456 has accepted a connection from "
        "[::ffff:127.0.0.6]:5{}.\n"
    )
    log = "".join(through.format(number) for number in range(3))
    assert first(log)[0] == "k8s-dns-or-mesh"
    steps = "".join(f"step {number} loss 2.{number}\n" for number in range(10, 15))
    assert first(log + steps)[0] != "k8s-dns-or-mesh"
    assert first(log + "ValueError: no such column: label\n")[0] == "rank-exception"


def test_a_stall_of_horovod_ends_with_the_next_step() -> None:
    step = "{}/938 [=====>........] - ETA: 9:42 - loss: 0.2105 - acc: 0.9377\n"
    stall = "[2020-03-24 05:35:40: W stall_inspector.cc:105] some are waiting for remainder of ranks for 60 seconds.\n"
    before = "".join(step.format(number) for number in (10, 20, 30))
    assert first(before + stall + step.format(40))[0] == "healthy"
    assert first(before + stall + " 20%|#  | 20/100 [00:10<01:30, 1.0it/s]\n")[0] == "healthy"
    assert first(before + stall)[0] != "healthy"
