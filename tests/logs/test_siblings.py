"""The same trouble in the words of several front ends: what explain says follows from a mechanism, not from one text."""

from __future__ import annotations

import pytest

from tests.logs.rounds import explain

INIT = "NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 1000 - Init COMPLETE\n"
WORKED = "".join(f"step {step} loss 2.1\n" for step in (1, 2, 3))
STALL = (
    "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are "
    "waiting for remainder of ranks for more than 60 seconds. "
)


def answer(log: str) -> tuple[str, tuple[str, ...]]:
    found = explain("job.log", log.encode())
    cause = found.findings[0].slug if found.outcome == "named" else found.outcome
    return cause, found.findings[0].hosts if found.findings else ()


CAUSES = {
    "a peer's link-local address": (
        "wrong-interface",
        "h:1:2 [0] misc/socket.cc:441 NCCL WARN socketStartConnect: Connect to fe80::42:acff:fe11:2%7<41383> failed : "
        "Network is unreachable\n",
        "h:1:2 [0] misc/socket.cc:4 NCCL WARN Call to connect to 169.254.3.7<5000> failed : No route to host\n",
        "RuntimeError: Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:145] timed out connecting: "
        "SO_ERROR: No route to host, remote=[fe80::9a03:9bff:fe12:1]:36123\n",
    ),
    "Gloo's two address families": (
        "wrong-interface",
        "RuntimeError: [enforce fail at ../gloo/gloo/transport/tcp/device.cc:208] ss1.ss_family == ss2.ss_family. 2 vs 10\n",
        "[rank1]: RuntimeError: [enforce fail at /opt/gloo/transport/tcp/device.cc:1] ss1.ss_family == ss2.ss_family. 10 vs 2\n",
        "(RayWorker pid=3, ip=10.0.0.2) RuntimeError: [enforce fail at device.cc:2] ss1.ss_family == ss2.ss_family. 2 vs 10\n",
    ),
    "CUDA's hardware errors": (
        "gpu-hardware",
        "[rank5]: torch.AcceleratorError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error\n",
        "INTERNAL: CUDA_ERROR_CONTAINED: Invalid access of peer GPU memory over nvlink or a hardware error\n",
        "h:1:2 [0] enqueue.cc:1 NCCL WARN Cuda failure 'uncorrectable NVLink error detected during the execution'\n",
        "RuntimeError: CUDA error: hardware stack error\n",
    ),
    "a stack that ends in NCCL": (
        "nccl-or-driver-bug",
        "*** SIGSEGV received at time=1 on cpu 1 ***\nPC: @     0xf1a0c8bc7e10  (unknown)  ncclMnnvlCheck()\n",
        "Segmentation fault (core dumped)\n#0  0x00007f12ab34cd56 in ncclTopoComputePaths (comm=0x0) at graph/paths.cc:1\n",
        "*** Process received signal ***\nSignal: Segmentation fault (11)\n    @     0x7f1a2b3c4d5e        992  ncclProxyProgress()\n",
    ),
    "an import of another tray's memory": (
        "nvlink-fabric-service",
        "a:1:92 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/MNNVL\n"
        "a:1:92 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 101 'invalid device ordinal'\n",
        "a:1:92 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/MNNVL\n"
        "[2025-03-18 21:25:59] a:1:92 [0] transport/p2p.cc:301 NCCL WARN Cuda failure 1 'invalid argument'\n",
    ),
    "another MTU at the other end": (
        "mtu-mismatch",
        "a:1:2 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 3 mtu 5 LID 0\n"
        "b:1:2 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 2 mtu 3 LID 0\n"
        "b:1:9 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<9> with status=1 opcode=0\n",
        "[1,0]<stdout>:a:1:2 [0] NCCL INFO NET/IB: IbDev 0 Port 1 qpn 3 mtu 5 GID 3\n"
        "[1,1]<stdout>:b:1:2 [0] NCCL INFO NET/IB: IbDev 0 Port 1 qpn 2 mtu 4 GID 3\n"
        "[1,0]<stdout>:a:1:9 [0] transport/net_ib.cc:8 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<9> with "
        "status=IBV_WC_REM_INV_REQ_ERR(9) opcode=0\n",
    ),
    "two interfaces in one subnet": (
        "routing-asymmetric",
        "n1$ ip -4 -br addr show\nens6f0           UP             172.30.8.14/22\nens6f1           UP     172.30.8.114/22\n"
        "n1:1:9 [0] transport/net_ib.cc:839 NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129\n",
        "[root@n1 ~]# ip -br a\neth2@if3 UP 10.9.0.5/16 fe80::1/64\neth3 UP 10.9.1.5/16\n"
        "RuntimeError: connect() timed out. x\nh:1:2 [0] s.cc:1 NCCL WARN Call to connect to 10.9.0.6<5> failed : Connection timed out\n",
    ),
    "JAX's first barrier": (
        "world-size-mismatch",
        "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. "
        "Timed out task names:\n/job:jax_worker/replica:0/task:1\n",
        "E0101 coordination_service.cc:1] Barrier timed out. Id: [Init]Wait_for_all_tasks_to_register::0. The first task at "
        "the barrier: /job:jax_worker/replica:0/task:0\n",
        "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect. # of tasks that reached the barrier: 1/8.\n",
    ),
    "a sidecar before the master": (
        "k8s-dns-or-mesh",
        "istio-proxy warn Envoy proxy is NOT ready: config not received from Pilot\nTraceback (most recent call last):\n"
        '  File "rendezvous.py", line 9, in f\n    store = TCPStore(master_addr, master_port)\nRuntimeError: Connection timed out\n'
        "istio-proxy info Epoch 0 terminated with: signal: killed\n",
        "2021 linkerd-proxy WARN outbound: failed to proxy request\n[E socket.cpp:1] [c10d] The client socket has timed out "
        "after 60s while trying to connect to (train-master-0, 23456).\n",
    ),
    "RDMA asked for and not opened": (
        "rdma-userspace-missing",
        "a:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.\na:1:2 [0] misc/ibvwrap.cc:2 NCCL WARN Call to "
        f"ibv_open_device failed\na:1:2 [0] NCCL INFO NET/IB : No device found.\na:1:2 [0] {INIT}",
        "a:1:2 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0:1\na:1:2 [0] NCCL INFO Failed to open libibverbs.so[.1]\n"
        "a:1:2 [0] NCCL INFO Using network Socket\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.52\n",
        "[1,0]<stdout>:a:1:2 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5\n[1,0]<stdout>:a:1:2 [0] NCCL INFO "
        "Failed to open libibverbs.so[.1]\n[1,0]<stdout>:a:1:2 [0] NCCL INFO Using network Socket\nonly 0.9 GB/s\n",
    ),
    "one name, two machines, NCCL 2.3": (
        "host-hash-collision",
        "gpu60:37:37 [0] INFO NET/Socket : Using [0]eth0:10.44.60.11<0>\ngpu60:22:22 [0] INFO NET/Socket : Using "
        "[0]eth0:10.45.60.11<0>\ngpu60:22:23 [2] transport/p2p.cu:526 WARN failed to open CUDA IPC handle : 30 unknown error\n",
        "[1,0]<stdout>:n:3:3 [0] INFO NET/Socket : Using [0]eth0:10.4.0.1<0>\n[1,1]<stdout>:n:4:4 [0] INFO NET/Socket : "
        "Using [0]eth0:10.5.0.1<0>\n[1,1]<stdout>:n:4:4 [0] transport/shm.cu:1 WARN failed to open shared memory\n",
    ),
}


@pytest.mark.parametrize(
    ("cause", "log"),
    [
        pytest.param(texts[0], log, id=f"{name}-{number}")
        for name, texts in CAUSES.items()
        for number, log in enumerate(texts[1:])
    ],
)
def test_a_mechanism_tells_the_cause_in_any_front_end(cause: str, log: str) -> None:
    assert answer(WORKED + log)[0] == cause


@pytest.mark.parametrize(
    "end",
    [
        "#       size         count      type   redop    root     time   algbw   busbw #wrong\n^C\nuser@w:~$ nvidia-smi\n",
        "Using network Socket\n^CKilled by signal 2.\n",
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyboardInterrupt\n",
        "initializing ...\n^Z\n[1]+  Stopped                 mpirun -np 2 ./all_reduce_perf\n",
    ],
)
def test_what_a_person_had_to_stop_is_not_called_fine(end: str) -> None:
    assert answer(f"a:1:2 [0] {INIT}{end}")[0] == "undetermined"


@pytest.mark.parametrize(
    "log",
    [
        "E xla/service/rendezvous.cc:38] This thread has been waiting for `initialize clique` for 10 seconds and may be "
        "stuck. Expected 8 threads to join\nE xla/rendezvous.cc:44] This thread is unstuck: `initialize clique`\n"
        "step 20/20 loss 8.3\ntask-0 exited with code 0\n",
        f"{STALL}Stalled ops: a [ready ranks: 2]\n1\timages/sec: 198.9\n100\timages/sec: 198.0\ntotal images/sec: 791.90\n",
        f"{STALL}\nEpoch 1/2\nEpoch 2/2\nEpoch 2/2 - 288s - loss: 4.5\nTraining finished\n",
        "PASS\n[rank9]:[W423 05:40:18.7 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=72, addr=[a]:5, "
        "remote=[b]:29600): Connection reset by peer\nException raised from recvBytes at /pytorch/Utils.hpp:675\n"
        "gb-01: torchrun exit status 0\n",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.21GiB. The caller indicates that this is not a "
        "failure\nEpoch 2/2\nTest accuracy: 0.19\n+ echo 'job end'\njob end Mon May 11\n",
    ],
)
def test_what_a_job_recovered_from_is_no_failure(log: str) -> None:
    assert answer(log)[0] == "healthy"


@pytest.mark.parametrize(
    ("host", "log"),
    [
        ("tf-worker-0.tf-worker", "ssh: Could not resolve hostname tf-worker-0.tf-worker: Name or service not known\n"),
        (
            "im-worker-0",
            "[W socket.cpp:601] [c10d] The IPv4 network addresses of (im-worker-0, 23456) cannot be retrieved (gai error: -2 "
            "- Name or service not known).\ntorch.distributed.elastic.rendezvous.api.RendezvousConnectionError: x\n",
        ),
        (
            "cn-0412.hpc",
            "MASTER_ADDR=cn-0412.hpc MASTER_PORT=2\ncn-0413: Traceback (most recent call last):\ncn-0413: "
            "ValueError: host not found: Name or service not known\n",
        ),
        (
            "10.244.3.19",
            "w-0:1:2 [0] misc/socket.cc:49 NCCL WARN socketProgress: Call to recv from 10.244.3.19<4> failed : Connection "
            "timed out\n",
        ),
        (
            "7.6.13.83",
            "h-a:2:3 [0] transport/net_ib.cc:1 NCCL WARN NET/IB: Got completion from peer 7.6.13.83<3> with status=12 "
            "opcode=3 len=3 vendor err 129 (Send)\n",
        ),
        (
            "gpu-c011",
            " + Leader  (0) runs on host            = gpu-c011\n + Follower     1 runs on host            = gpu-c011\n"
            " + Follower     3 runs on host            = gpu-c012\nERROR: CUDA driver version is insufficient for CUDA "
            "runtime version\nMPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n",
        ),
        (
            "cn-234",
            "zeyer@cn-234 ~ % nvidia-smi\nUnable to determine the device handle for GPU0000:03:00.0: Unknown Error\n",
        ),
        (
            "192.168.11.23",
            "Traceback (most recent call last):\nray.exceptions.RayTaskError: ray_My:train() (pid=30, host=192.168.11.23)\n"
            "ModuleNotFoundError: No module named 'mlp_policy'\n",
        ),
        ("rank 0", f"{STALL}\nStalled ops:\nHorovodBroadcast_w_0 [missing ranks: 0]\nHorovod has been shut down.\n"),
        (
            "rank 2",
            f"{STALL}Stalled ops: a [ready ranks: 1, 3, 0]\n{STALL}Stalled ops: a [ready ranks: 1, 3, 0]\n"
            "mpirun: abort is already in progress\n",
        ),
        (
            "10.10.1.3",
            "w:1:2 [0] NCCL INFO Bootstrap : Using bond0:10.10.1.44<0>\nw:1:2 [0] misc/socket.cc:71 NCCL WARN "
            "socketProgress: Connection closed by remote peer 10.10.1.3<36138>\nw:1:2 [0] NCCL INFO bootstrap.cc:701 -> 6\n",
        ),
    ],
)
def test_whom_the_log_itself_names(host: str, log: str) -> None:
    assert host in answer(WORKED + log)[1]
