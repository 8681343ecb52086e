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


def test_a_warning_is_no_rank_that_ended_unless_a_traceback_ends_with_it() -> None:
    warned = "2025-08-29 18:02:41 WARNING deprecation.py:50 -- DeprecationWarning: `LLMRouter` has been deprecated.\n"
    assert first(f"{_STEPS}{warned}Training finished\n")[0] == "healthy"
    raised = 'Traceback (most recent call last):\n  File "t.py", line 3, in main\nUserWarning: bad label\n'
    assert first(raised)[0] == "rank-exception"


def test_an_assertion_without_words_is_told_by_what_it_asserts() -> None:
    log = (
        'Traceback (most recent call last):\n  File "t.py", line 3, in next\n    assert {}\nAssertionError\n'
    )
    found = explain(log.format("len(batch) == 8"))
    assert "assert len(batch) == 8" in found.findings[0].summary
    assert first(log.format("self._shared_tcp_store_server is not None"))[0] == "nccl-or-driver-bug"


def test_a_request_that_does_not_fit_is_no_failed_port() -> None:
    event = "h1:1:2 [0] net_ib.cc:154 NCCL WARN NET/IB : mlx5_1:1 async fatal event{}\n"
    assert first(event.format(": local catastrophic error"))[0] == "ib-link-or-fabric"
    assert first(event.format(" on QP (0x73): invalid request local work queue error"))[0] == "undetermined"


def test_nodes_that_all_use_sockets_meet_although_one_says_why() -> None:
    said = "a:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\na:1:1 [0] NCCL INFO Using network Socket\n"
    other = "b:2:2 [0] NCCL INFO Using network {}\n^C\n"
    assert first(said + other.format("IB"))[0] == "stale-config"
    assert first(said + other.format("Socket"))[0] == "undetermined"


def test_two_runs_with_the_same_ranks_are_not_two_tasks_of_one() -> None:
    ranks = "".join(
        f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/2\n" for rank in (0, 1)
    )
    run = "me@box:~$ python train.py\n" + ranks
    assert first(run + ranks + "^C\n")[0] == "world-size-mismatch"
    assert first(
        run + "me@box:~$ python train.py --again\n" + ranks + "RuntimeError: Address already in use\n"
    )[0] != ("world-size-mismatch")


def test_two_hosts_that_say_the_same_number_of_a_node_do_not_meet() -> None:
    node = (
        "root@{0}:~# NNODES=2 llamafactory-cli train\nMulti-node training enabled: num nodes: 2, node rank: {1}\n"
        "torch.distributed.DistStoreError: Socket Timeout\n"
    )
    assert first(node.format("gpu-a", 0) + node.format("gpu-b", 0)) == (
        "world-size-mismatch",
        ("gpu-b", "gpu-a"),
    )
    assert first(node.format("gpu-a", 0) + node.format("gpu-b", 1))[0] == "undetermined"


def test_gpudirect_on_one_host_only_is_a_cause_and_on_none_it_is_not() -> None:
    line = "{0}:{1}:9 [0] NCCL INFO Channel 00/0 : {2}[0] -> {3}[0] [send] via NET/IB/0{4}\n"
    table = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 2.2\n"
    with_it, without = line.format("a", 1, 0, 1, "/GDRDMA"), line.format("b", 2, 1, 0, "")
    assert first(with_it + without + table) == ("gdr-unavailable", ("b",))
    assert first(line.format("a", 1, 0, 1, "") + without + table)[0] == "healthy"


def test_ranks_that_say_they_use_one_gpu_are_a_cause_where_nccl_refuses_it() -> None:
    refused = "[NCCL ERROR]: invalid usage\n"
    assert first(f" MPI rank 0 uses GPU #0\n MPI rank 1 uses GPU #0\n{refused}")[0] == "duplicate-gpu"
    assert first(f" MPI rank 0 uses GPU #0\n MPI rank 1 uses GPU #1\n{refused}")[0] != "duplicate-gpu"


def test_hosts_of_one_name_are_told_apart_by_what_they_could_not_share() -> None:
    start = "localhost:{0}:1 [0] NCCL INFO Bootstrap : Using {1}:10.7.7.{0}<0>\n"
    hosts = start.format(1, "em1") + start.format(2, "eno1")
    shared = "localhost:1:1 [0] transport/p2p.cu:526 NCCL WARN failed to open CUDA IPC handle : 11 invalid argument\n"
    assert first(hosts + shared)[0] == "host-hash-collision"


def test_processes_of_an_old_nccl_tests_that_measured_apart_are_seen_by_their_ranks() -> None:
    device = "#   Rank  0 Pid  {0} on  v100-{0} device  0 [0x3b] Tesla V100-PCIE-32GB\n"
    end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0\n"
    assert first(device.format(1) + device.format(2) + end + end)[0] == "world-size-mismatch"
    assert first(device.format(1) + end + device.format(2) + end)[0] == "healthy"


def test_what_rank_0_warned_of_before_all_timed_out_is_not_what_kept_it() -> None:
    late = (
        "[rank1]:[E1124 10:00:00.0 x.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=42, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    )
    assert first("Saving checkpoint to /ckpt/7\n" + late)[0] == "slow-rank-timeout"
    assert first("WARNING: tokenizer package is required to load metrics\n" + late)[0] == "undetermined"


def test_a_call_that_no_signature_fits_is_of_the_installation_only_inside_torch() -> None:
    raised = (
        'Traceback (most recent call last):\n  File "{}", line 62, in next_rendezvous\n    multi_tenant=True,\n'
        "TypeError: __init__(): incompatible constructor arguments. The following argument types are supported:\n"
    )
    assert first(raised.format("/env/lib/python3.6/site-packages/torch/distributed/x.py"))[0] == "python-env"
    assert first(raised.format("/home/me/train.py"))[0] == "rank-exception"


def test_agents_of_several_hosts_that_meet_each_at_its_own_machine_meet_nobody() -> None:
    told = (
        "srun: error: {0}: task {1}: Exited with exit code 1\n"
        "{1}: I0904 19:40:12.9 7 torch/distributed/launcher/api.py:208]   rdzv_endpoint      : {2}:15213\n"
        "{1}: torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
    )
    assert (
        first(told.format("n07", 0, "localhost") + told.format("n09", 1, "localhost"))[0]
        == "master-addr-wrong"
    )
    assert first(told.format("n07", 0, "n07") + told.format("n09", 1, "n07"))[0] != "master-addr-wrong"


def test_an_adapter_that_cannot_be_opened_slows_no_job_of_one_node() -> None:
    started = "+ torchrun --nproc_per_node=4 {} train.py\n"
    unopened = "h:1:2 [0] transport/net_ib.cc:240 NCCL WARN NET/IB : Unable to open device mlx5_3\n"
    rest = f"{unopened}{_STEPS}Training completed\n"
    assert first(started.format("--standalone") + rest)[0] == "healthy"
    assert first(started.format("--nnodes=2 --rdzv-endpoint=h:1") + rest)[0] == "rdma-userspace-missing"


def test_a_request_that_an_engine_puts_back_is_no_preempted_job() -> None:
    served = 'INFO: Uvicorn running on http://0.0.0.0:8000\nINFO: 10.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    put_back = (
        "WARNING 07-20 17:31:41 scheduler.py:1089] group cmpl-6c is preempted by PreemptionMode.RECOMPUTE\n"
    )
    assert first(served + put_back + served)[0] == "healthy"
    assert first(served + "job 17 was preempted\n")[0] == "undetermined"


def test_a_switch_in_the_kernels_log_is_no_host() -> None:
    log = "root@h6:~# dmesg\n[Mon Feb  2 22:52:45 2026] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 12028, Fatal\n"
    assert first(log) == ("gpu-hardware", ("h6",))


def test_what_one_process_of_a_node_writes_behind_its_label_is_its_exception() -> None:
    log = "h-017:0 err: Traceback (most recent call last):\nh-017:0 err: RuntimeError: Triton Error: bad context\n"
    slug, hosts = first(log)
    assert (slug, hosts[0]) == ("rank-exception", "h-017")


def test_a_server_that_a_node_does_not_reach_is_the_cause_of_the_timeouts_above_it() -> None:
    raised = (
        "Traceback (most recent call last):\nsocket.timeout: timed out\n\nDuring handling of the above exception, "
        "another exception occurred:\n\nTraceback (most recent call last):\nrequests.exceptions.ConnectionError: "
        "HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /api/models/x\n"
    )
    assert first(raised)[0] == "data-or-file-missing"
    assert first(f"{raised}retrying\n{_STEPS}Training completed\n")[0] == "healthy"


def test_a_setting_that_helped_tells_the_cause_also_where_it_was_tried_first() -> None:
    helped = "me@box:~$ NCCL_P2P_DISABLE=1 python a.py\ndone 4.81s\n"
    hung = "me@box:~$ {} python {}\nbox:1:1 [0] NCCL INFO Connected all rings\n^C\n"
    assert first(helped + hung.format("NCCL_DEBUG=INFO", "a.py"))[0] == "p2p-broken"
    assert first(helped + hung.format("NCCL_DEBUG=INFO", "b.py"))[0] == "undetermined"


def test_hips_memory_of_another_gpu_that_cannot_be_opened_is_peer_access() -> None:
    failed = "h:1:2 [1] /x/src/transport/{} NCCL WARN hipIpcOpenMemHandle failed : invalid device pointer\n"
    assert first(failed.format("p2p.cc:264"))[0] == "p2p-broken"


def test_a_port_that_is_down_beside_one_that_is_up_is_no_cause_by_itself() -> None:
    error = "RuntimeError: NCCL error in: x.cpp:468, unhandled system error\n"
    port = "        Port {0}:\n                State: {1}\n                Physical state: {2}\n"
    down = port.format(1, "Down", "Polling") + port.format(2, "Down", "Polling")
    adapter = "me@n14:~$ ibstat\nCA 'mlx4_0'\n        CA type: MT4099\n"
    assert first(f"{error}{adapter}{down}")[0] == "ib-link-or-fabric"
    active = port.format(1, "Active", "LinkUp") + port.format(2, "Down", "Polling")
    assert first(f"{error}{adapter}{active}")[0] == "undetermined"


def test_an_engine_that_generates_nothing_is_not_busy() -> None:
    late = (
        "[rank1]:[E1124 10:00:00.0 x.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    )
    rate = (
        "INFO metrics.py:341] Avg prompt throughput: {0} tokens/s, Avg generation throughput: {0} tokens/s\n"
    )
    assert first(rate.format("0.0") + late)[0] == "undetermined"


def test_two_processes_on_one_gpu_are_a_cause_where_an_old_nccl_went_on_and_the_job_did_not() -> None:
    rank = (
        "h:{0}:9 [{1}] NCCL INFO comm 0x5{0} rank {2} nranks 4 cudaDev {1} nvmlDev {1} - Init COMPLETE\n"
        "h:{0}:9 [{1}] NCCL INFO Ring 00 : {2}[{1}] -> 0[0] via P2P/IPC\n"
    )
    slug, hosts = first(rank.format(11, 3, 1) + rank.format(12, 3, 2) + "^C\n")
    assert (slug, set(hosts)) == ("duplicate-gpu", {"h", "rank 1", "rank 2"})
    assert first(rank.format(11, 2, 1) + rank.format(12, 3, 2) + "^C\n")[0] != "duplicate-gpu"


def test_hosts_that_were_started_for_different_sizes_wait_for_ranks_that_never_come() -> None:
    command = "(d2) ann@gpuws{}:~/d2$ ./train_net.py --num-gpus {} --machine-rank {} --num-machines 2\n"
    hung = "^CTraceback (most recent call last):\nKeyboardInterrupt\n"
    assert first(command.format(12, 2, 0) + command.format(11, 1, 1) + hung) == ("world-size-mismatch", ())
    assert first(command.format(12, 2, 0) + command.format(11, 2, 1) + hung)[0] == "undetermined"
    ended = command.format(12, 2, 0) + command.format(11, 1, 1) + f"{_STEPS}Training finished\n"
    assert first(ended)[0] == "healthy"


def test_fewer_pods_than_nodes_are_too_few_where_ranks_waited_in_vain() -> None:
    def log(pods: int) -> str:
        rows = [f"lcf-worker-{number}   1/1   Running   0   31m\n" for number in range(pods - 1)]
        asked = "$ kubectl logs lcf-worker-0\ntorchrun --nproc_per_node 8 --nnodes 4 --node_rank 1 x.py\n"
        waited = "torch.distributed.DistStoreError: Socket Timeout\n"
        return "lcf-master-0   1/1   Running   0   31m\n" + "".join(rows) + asked + waited

    assert first(log(3))[0] == "world-size-mismatch"
    assert first(log(4))[0] == "undetermined"
    assert first("$ kubectl get pods | head -3\n" + log(3))[0] == "undetermined"


def test_the_node_of_a_pod_stands_in_a_wide_list() -> None:
    listed = "cuda-validator-vkfv6  0/1  Init:CrashLoopBackOff  9  23m  10.233.88.17  gx7-hgx1   <none>\n"
    asked = "[root@gx7-mgmt ~]# kubectl  logs  cuda-validator-vkfv6 -n operator -c validation\n"
    failed = "Failed to allocate device vector A (error code system not yet initialized)!\n"
    assert first(listed + asked + failed) == ("nvlink-fabric-service", ("gx7-hgx1", "cuda-validator-vkfv6"))


def test_a_run_that_hung_with_direct_access_and_worked_without_it_blames_the_access() -> None:
    channel = "b850:301:301 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via {}\n"
    waited = "INFO No available shared memory broadcast block found in 60 seconds.\n"
    hung = channel.format("P2P/CUMEM") + waited + "^C\n"
    off = "b850:297:297 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1\n" + channel.format(
        "SHM/direct/direct"
    )
    ready = "INFO:     Application startup complete.\n"
    assert first(hung + off + ready)[0] == "p2p-broken"
    assert first(
        hung + off.replace("DISABLE set by environment to 1", "LEVEL set by environment to LOC") + ready
    )[0] == ("p2p-broken")
    assert first(hung + off)[0] != "p2p-broken"
    assert first(ready + off + ready)[0] != "p2p-broken"
    assert first(hung.replace(waited, _STEPS) + off + ready)[0] != "p2p-broken"


def test_a_port_that_no_subnet_manager_set_up_is_why_a_job_that_asked_for_it_used_sockets() -> None:
    asked = "".join(
        f"w{number}:5:6 [0] NCCL INFO NCCL_IB_HCA set to mlx5_7\nw{number}:5:6 [0] NCCL INFO Using network Socket\n"
        for number in (1, 2)
    )
    measured = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.07\n"
    look = "root@w1:/# ibstat mlx5_7\n\t\tState: {}\n\t\tPhysical state: LinkUp\n"
    assert first(asked + measured + look.format("Initializing"))[0] == "ib-link-or-fabric"
    assert first(asked + measured + look.format("Active"))[0] == "undetermined"
    assert (
        first(asked + measured + look.format("Initializing").replace("mlx5_7", "mlx5_1"))[0] == "undetermined"
    )
    assert first(asked.replace("w2", "w1") + measured + look.format("Initializing"))[0] == "undetermined"


def test_the_address_of_a_tunnel_that_ip_lists_leads_to_no_other_node() -> None:
    failed = (
        "[w4][[9281,1],1][btl_tcp_endpoint.c:796] connect() to 192.168.118.0 failed: No route to host (113)\n"
    )
    listed = (
        "9: {}    inet 192.168.118.0/32 scope global {}\\       valid_lft forever preferred_lft forever\n"
    )
    assert first(failed + listed.format("tunl0", "tunl0"))[0] == "wrong-interface"
    assert first(failed + listed.format("eth0", "eth0"))[0] == "firewall-blocked-ports"


def test_the_mtu_of_loopback_differs_from_no_other() -> None:
    listed = "1: lo: <LOOPBACK,UP> mtu 65536 qdisc noqueue\n38: eth0@if39: <UP> mtu {} qdisc noqueue\n"
    failed = "RuntimeError: [enforce fail at gloo/pair.cc:588] connect [172.17.0.4]:34571: No route to host\n"
    assert first(listed.format(1500) + failed)[0] != "mtu-mismatch"


def test_a_job_that_was_stopped_when_nccl_was_ready_hung_in_its_first_collective_over_pcie() -> None:
    line = "ws:7:9 [{0}] NCCL INFO "
    few = line.format(0) + "2 coll channels, 2 p2p channels, 2 p2p channels per peer\n"
    ready = (
        few
        + "".join(
            line.format(rank) + f"Channel 00/0 : {rank}[{rank}] -> {1 - rank}[{1 - rank}] via P2P/IPC\n"
            for rank in (0, 1)
        )
        + "".join(
            line.format(rank)
            + f"comm 0x5 rank {rank} nranks 2 cudaDev {rank} busId {rank}000 - Init COMPLETE\n"
            for rank in (0, 1)
        )
    )
    assert first(f"{ready}^C\n")[0] == "p2p-broken"
    assert first(f"{ready}Terminated\n")[0] == "p2p-broken"
    assert first(f"{ready}{_STEPS}^C\n")[0] != "p2p-broken"
    assert first(f"{ready}ValueError: bad label\n^C\n")[0] != "p2p-broken"
    assert first(f"{ready}loading the data of rank 0 from s3\n^C\n")[0] != "p2p-broken"
    assert first(f"{ready}Killed\n")[0] != "p2p-broken"
    assert first(f"{_STEPS}{ready}^C\n")[0] != "p2p-broken"
    over_nvlink = ready.replace("2 coll channels", "24 coll channels")
    assert first(f"{over_nvlink}^C\n")[0] == "undetermined"
    assert first(f"{ready.removeprefix(few)}^C\n")[0] == "undetermined"
    assert first(ready.replace("P2P/IPC", "SHM/direct") + "^C\n")[0] == "undetermined"
