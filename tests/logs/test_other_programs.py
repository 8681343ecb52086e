"""What programs beside torch say of the same troubles: Horovod, DLRover, oneCCL, LightGBM, UCX, nccl-tests."""

from __future__ import annotations

import pytest

from tests.logs.rounds import explain

TRACE = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\n'


def first(log: str) -> str:
    found = explain("job.log", log.encode())
    return found.findings[0].slug if found.outcome == "named" else found.outcome


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: NCCL_ERROR: b'invalid usage'",
        "RuntimeError: oneCCL: atl_ofi_comm.cpp:232 init_transport: EXCEPTION: failed to initialize ATL",
        "RuntimeError: OPS function error: HcclAllreduce, error code is 6",
        "RuntimeError: the daemon failed to connect to bootstrap peers",
    ],
)
def test_what_a_communication_library_says_of_its_failure_is_no_exception_of_the_ranks_own(
    message: str,
) -> None:
    assert first(f"{TRACE}{message}\n") == "undetermined"
    assert first(f"{TRACE}RuntimeError: shapes do not fit\n") == "rank-exception"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("train.py: error: unrecognized arguments: --local-rank=1", "rank-exception"),
        ("RuntimeError: The local rank is larger than the number of available GPUs.", "gpu-visibility"),
        (
            "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/data/m'",
            "data-or-file-missing",
        ),
        ("[LightGBM] [Fatal] Binding port 13001 failed", "port-in-use"),
        ("|CCL_ERROR| atl_ofi.cpp:237 init: can't find suitable provider", "net-plugin-config"),
        ("[training.py:249:next_rendezvous] Timeout 5400s to complete rendezvous.", "world-size-mismatch"),
        (
            "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x62)",
            "gpu-hardware",
        ),
        (
            "[g:31:0:31] ib_mlx5_log.c:143  DCI QP 0x14e4: SEND [rmac aa:bb:cc:dd:ee:ff sgix 0 dgid fe80::526b]",
            "roce-gid",
        ),
        ("h:1:2 [0] transport/p2p.cc:298 NCCL WARN Cuda failure 'invalid argument'", "p2p-broken"),
        (
            "h:1:2 [2] NCCL INFO transport/shm.cc:101 -> 2\nRuntimeError: NCCL error: unhandled system error",
            "shm-too-small",
        ),
    ],
)
def test_the_cause_is_told_in_other_words(line: str, cause: str) -> None:
    assert first(f"step 1\n{line}\n") == cause


def test_a_worker_group_that_started_again_is_counted_with_what_is_left_of_the_first() -> None:
    counted = (
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: "
        "store_based_barrier_key:1 (world_size=2, worker_count=4, timeout=0:30:00)\n"
    )
    again = (
        "INFO:torch.distributed.elastic: Worker group FAILED. 3/3 attempts left; will restart worker group\n"
    )
    assert first(counted) == "world-size-mismatch"
    assert first(again + counted) != "world-size-mismatch"


def test_a_package_that_is_not_found_is_no_file_that_is_missing() -> None:
    message = "importlib.metadata.PackageNotFoundError: No package metadata was found for deepspeed\n"
    assert first(TRACE + message) == "python-env"


def test_an_extension_that_a_program_goes_on_without_is_no_cause() -> None:
    why = "ModuleNotFoundError(\"No module named 'vllm._C'\")"
    line = f"WARNING [_custom_ops.py:21] Failed to import from vllm._C with {why}\n"
    assert first(f"{line}{TRACE}KeyError: 'x'\n") == "rank-exception"


def test_gloos_warning_about_its_own_name_is_no_missing_interface() -> None:
    steps = "".join(f"step {number} loss 2.{number}\n" for number in range(10, 15))
    said = "Warning: Unable to find address for: (function operator())"
    warning = f"[rank0]:[W625 14:25:45.9 ProcessGroupGloo.cpp:531] {said}\n"
    assert first(f"{steps}Training completed\n{warning}") == "healthy"


def test_two_tables_of_ranks_are_told_apart_where_each_has_many_rows() -> None:
    def table(host: str, pid: int) -> str:
        row = "#  Rank  {} Group  0 Pid    {} on       {} device  {} [0x0f] NVIDIA H800\n"
        return "# Using devices\n" + "".join(row.format(rank, pid, host, rank) for rank in range(8))

    result = "  1073741824     268435456     float     sum      -1   8237.1  130.35  228.12      0\n"
    end = "# Out of bounds values : 0 OK\n"
    assert (
        first(table("hw21", 798) + table("hw22", 514) + result + result + end + end) == "world-size-mismatch"
    )
    assert first(table("hw21", 798) + result + end) == "healthy"


def test_an_endpoint_that_torchrun_does_not_read_is_a_wrong_master_address() -> None:
    start = "$ torchrun --nnodes=2 --node_rank=0 --rdzv_backend=c10d {} --master_addr GPU12 train.py\n"
    late = f"{TRACE}torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
    assert first(start.format("") + late) == "master-addr-wrong"
    assert first(start.format("--rdzv_endpoint=GPU12:29500") + late) != "master-addr-wrong"


def test_a_master_that_refuses_for_as_long_as_the_log_goes_does_not_listen() -> None:
    refused = (
        "(Worker pid={}, ip=10.0.6.{}) [c10d] The client socket has failed to connect to [head]:34177 "
        "(errno: 111 - Connection refused).\n"
    )
    log = "".join(refused.format(number, number) for number in range(11, 15))
    assert first(f"{log}KeyboardInterrupt\n") == "master-addr-wrong"
    steps = "".join(f"step {number} loss 2.{number}\n" for number in range(10, 15))
    assert first(log + steps) == "healthy"


def test_the_frames_of_a_native_stack_tell_no_cause() -> None:
    frame = " 8 0x0000000000017e2e uct_dc_mlx5_ep_handle_failure()  ???:0\n"
    assert first(f"==== backtrace (tid:  31180) ====\n{frame}Aborted (core dumped)\n") == "undetermined"


def test_a_stack_of_ipython_names_no_host() -> None:
    log = "--> 141         raise LightGBMError(_LIB.LGBM_GetLastError().decode('utf-8'))\n\n"
    log += "LightGBMError: Binding port 13001 failed\n"
    assert explain("job.log", log.encode()).findings[0].hosts == ()


def test_a_file_of_topology_is_to_blame_only_where_one_was_given() -> None:
    lacks = "w:75:95 [2] graph/xml.h:101 NCCL WARN Attribute busid of node nic not found\n"
    given = "w:75:95 [2] NCCL INFO NCCL_TOPO_FILE set by environment to /old/topo.xml\n"
    assert (first(given + lacks), first(lacks)) == ("stale-config", "undetermined")


def test_elastic_horovod_that_goes_on_without_a_host_and_succeeds_is_fine() -> None:
    log = (
        "Process 2 exit with status code 137.\nINFO:root:record state: worker-2[0] = FAILURE\n"
        + "".join(f"[0]<stdout>:Iter #{number}: 120.{number} img/sec per GPU\n" for number in range(5))
        + "INFO:root:record state: worker-0[0] = SUCCESS\n"
    )
    assert first(log) == "healthy"


@pytest.mark.parametrize(
    "said",
    [
        "Workload completed",
        "============ Serving Benchmark Result ============",
        "Total img/sec on 8 GPU(s): 1061.9 +-14.3",
    ],
)
def test_what_a_program_says_when_it_ended_well_is_its_end(said: str) -> None:
    log = f"step 1 loss 2.0\nstep 2 loss 1.9\nmoru tibano feke\n{said}\n"
    assert explain("job.log", log.encode()).outcome == "healthy"
