"""What the author of a log complains of: a slow job, a device that cannot be used, a hang after another test."""

from __future__ import annotations

import pytest

from tests.logs.rounds import explain

PROCESS = "w1:70:71 [0] NCCL INFO "
STEPS = "".join(f"step {number} loss 1.9\n" for number in range(1, 6))
CLOSED_TO_GPUS = f"{PROCESS}NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'\n"
TEST = "     1048576      262144     float     sum      -1    90.1   11.6   21.8      0    90.2   11.6   21.8      0\n"
MEASURED = f"{TEST}# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 21.81\n"


def first(log: str) -> str:
    found = explain("job.log", log.encode())
    return found.findings[0].slug if found.outcome == "named" else found.outcome


def named(log: str) -> set[str]:
    return {finding.slug for finding in explain("job.log", log.encode()).findings}


def is_certain(log: str) -> bool:
    return "The log says so directly." in explain("job.log", log.encode()).findings[0].summary


@pytest.mark.parametrize(
    "complaint",
    [
        "$ modinfo nvidia-peermem\n",
        "step 9 loss 1.8 samples/s 40 (target: 160)\n",
        "we expected at least 90 GB/s\n",
    ],
)
def test_a_job_that_went_through_host_memory_is_not_fine_where_someone_looks_for_the_reason(
    complaint: str,
) -> None:
    assert first(CLOSED_TO_GPUS + STEPS + complaint) == "gdr-unavailable"
    assert first(CLOSED_TO_GPUS + STEPS) == "healthy"


@pytest.mark.parametrize(
    ("device", "cause"), [("NVIDIA H100 80GB HBM3", "gdr-unavailable"), ("GeForce RTX 4090", "healthy")]
)
def test_a_measured_bandwidth_through_host_memory_counts_where_adapters_could_read_the_gpus(
    device: str, cause: str
) -> None:
    table = f"#  Rank  0 Group  0 Pid 70 on w1 device  0 [0x1b] {device}\n"
    assert first(table + CLOSED_TO_GPUS + MEASURED) == cause


def test_a_nic_too_far_from_a_gpu_is_not_why_a_job_is_slow_that_uses_gpudirect() -> None:
    far = f"{PROCESS}GPU Direct RDMA Disabled for GPU 1b000 / HCA 2 (distance 7 > 4)\n"
    near = f"{PROCESS}GPU Direct RDMA Enabled for GPU 1b000 / HCA 0 (distance 4 <= 4), read 0\n"
    channel = f"{PROCESS}Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0"
    complaint = "The bandwidth is very slow, only 12 GB/s busbw, expected 190 GB/s\n"
    timeout = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE)\n"
    for end in (complaint, timeout):
        assert "gdr-unavailable" not in named(far + near + end)
        assert "gdr-unavailable" not in named(far + channel + "/GDRDMA\n" + end)
        assert "gdr-unavailable" not in named(CLOSED_TO_GPUS + channel + "/GDRDMA\n" + end)
        assert "gdr-unavailable" in named(far + end)
        assert "gdr-unavailable" in named(far + channel + "\n" + end)
    assert "gdr-unavailable" not in named(
        "GPU Direct RDMA Disabled for GPU 1 / HCA 2 (distance 7 > 4)\n" + complaint
    )
    shown = explain("job.log", (near + CLOSED_TO_GPUS + complaint).encode()).findings[0].evidence[0].observed
    assert "Disabled for HCA 1" in shown


def test_a_device_that_is_there_and_cannot_be_opened_is_why_a_job_is_slow() -> None:
    closed = "w1:70:71 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : Unable to open device mlx5_3\n"
    assert first(closed + STEPS) == "rdma-userspace-missing"


def test_the_network_that_was_expected_is_a_complaint() -> None:
    log = f"{PROCESS}Failed to open libibverbs.so[.1]\n{STEPS}expected RoCE on mlx5_2, 200G\n"
    assert first(log) == "rdma-userspace-missing"


def test_the_end_of_one_command_is_not_the_end_of_the_next() -> None:
    small = f"root@w1:~# mpirun -n 2 ./all_reduce_perf -e 64\n{MEASURED}"
    large = "root@w1:~# mpirun -n 2 ./all_reduce_perf -b 1G\nno output for an hour\n^C\n"
    assert first(small) == "healthy"
    assert first(small + large) == "undetermined"
    link = "root@w{}:~# ip link\n2: eth1: <UP> mtu {} qdisc mq state UP\n"
    assert first(small + large + link.format(1, 9000) + link.format(2, 1500)) == "mtu-mismatch"


def test_what_ends_before_nccl_begins_is_not_the_job() -> None:
    download = "170498071it [00:03, 48123411.12it/s]\nDone!\n"
    sockets = "NET/Socket : Using [0]lo:127.0.0.1<0> [1]eth0:10.0.0.{}<0>\n"
    hosts = "".join(f"w{number}:7:8 [0] NCCL INFO {sockets.format(number)}" for number in (1, 2))
    assert first(download + hosts) == "loopback-interface"
    assert first(download + f"{PROCESS}Bootstrap : Using eth0:10.0.0.1<0>\n") == "undetermined"
    assert first(download + hosts + STEPS) == "healthy"


@pytest.mark.parametrize(
    "line",
    [
        "[WARNING] flash kernels only support Ampere GPUs or newer, using eager attention",
        '{"level":"WARN","fields":{"message":"fp8 is not supported on this GPU, falling back"},"span":{"rank":1}}',
    ],
)
def test_a_warning_about_a_kernel_that_is_left_out_fails_no_job(line: str) -> None:
    assert first(f"{line}\nShard ready in 12.0s\n") == "healthy"
    assert first("RuntimeError: CUDA error: no kernel image is available for execution on the device\n") == (
        "unsupported-gpu-arch"
    )


def test_a_message_that_names_several_causes_is_not_certain() -> None:
    sizes = (
        "w2:7:8 [0] transport/net_socket.cc:9 NCCL WARN NET/Socket : peer 10.0.0.1<5> message truncated : receiving 8 "
        "bytes instead of 4. If you believe your socket network is in healthy state, there may be a mismatch in "
        "collective sizes or environment settings\n"
    )
    assert first(sizes) == "collective-mismatch"
    assert not is_certain(sizes)
    versions = "[a1] NCCL version 2.27.3+cuda12.9\n[a2] NCCL version 2.21.5+cuda12.4\n"
    assert first(versions + sizes.replace("w2:", "[a2] a2:", 1)) == "nccl-version-mismatch"


def test_a_loopback_master_is_wrong_only_where_there_may_be_other_nodes() -> None:
    def waits(port: int) -> str:
        tried = f"while trying to connect to (localhost, {port})"
        return f"TimeoutError: The client socket has timed out after 900s {tried}.\n"

    assert first(waits(45123)) == "undetermined"  # a free port, as a launcher takes for its own machine
    assert first(waits(23456)) == "master-addr-wrong"
    assert not is_certain(waits(23456))
    assert is_certain("torchrun --nnodes 2 --rdzv-endpoint=localhost:23456 t.py\n" + waits(23456))


def test_memory_that_verbs_did_not_get_under_a_small_limit_is_the_limit() -> None:
    failed = "[1.2] [w1:7:0] x.c:1 UCX  ERROR ibv_create_cq(cqe=1024) failed: Cannot allocate memory\n"
    after = "[1.3] [w1:7:0] y.c:2 UCX  ERROR uct_iface_open(rc_mlx5/mlx5_1:1) failed: Input/output error\n"
    assert first(f"{failed}{after}$ ulimit -l\nmax locked memory (kbytes, -l) 8192\n") == "memlock-limit"


def test_a_segment_that_cuda_rejects_is_not_too_small() -> None:
    made = "w1:7:8 [0] x/shmutils.cc:9 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x (size 9)\n"
    rejected = "w1:7:8 [0] misc/shmutils.cc:5 NCCL WARN Cuda failure 'operation not supported'\n"
    assert first(made) == "shm-too-small"
    assert first(rejected + made) == "undetermined"


def test_a_pod_that_was_started_again_and_finished_did_not_fail() -> None:
    early = "ssh: Could not resolve hostname w-1.w: Name or service not known\nBack-off restarting failed container m\n"
    assert first(early) != "healthy"
    assert first(f"{early}{STEPS}total images/sec: 99.1\n") == "healthy"


def test_tests_that_passed_are_an_end() -> None:
    retried = f"{PROCESS}Call to connect returned Connection refused, retrying\n"
    assert first(f"{retried}==== 3 passed, 1 warning in 9.1s ====\n") == "healthy"
    assert first(f"{retried}==== 1 failed, 3 passed in 9.1s ====\n") == "undetermined"
