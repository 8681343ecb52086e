"""One set of processes of a trial: its environment, and what it shows."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.bench.trials.trial_set import TrialSet, seen, with_settings
from ncclcheck.model.bench import NodeLog
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.trials import CallChoice
from ncclcheck.model.fact import Missing
from tests.bench_builders import bench_point, bench_result
from tests.checks.logs.explaining import read
from tests.trial_builders import FAILURE

NETWORK = BenchNetwork(
    "gloo",
    {"node01": 1},
    {"node01": ("eth0", "10.0.0.1")},
    {"node01": {"GLOO_SOCKET_IFNAME": "eth0"}},
    "as it is",
)


def test_trial_settings_reach_every_node_and_replace_the_bound_interface() -> None:
    found = with_settings(NETWORK, {"GLOO_SOCKET_IFNAME": "eth1"})
    assert found.environment_of == {"node01": {"GLOO_SOCKET_IFNAME": "eth1"}}
    assert found.binding == {}
    assert with_settings(NETWORK, {}) == NETWORK


def test_a_set_shows_the_typical_time_of_each_point_and_what_it_is_bound_to() -> None:
    found = seen(NETWORK, bench_result())
    assert found.times_us == (1000.0, 1000.0, 1000.0)
    assert found.uses == ("interface eth0",)
    assert not found.failure


def test_failures_wrong_data_and_lack_of_time_are_told_apart() -> None:
    failed = seen(NETWORK, bench_result(failures=(FAILURE,)))
    assert (failed.hosts, failed.wrong, failed.late) == (("node02",), False, False)
    wrong = seen(
        NETWORK, bench_result(*[bench_point(1 << size, (0.0, 0.0), wrong=3) for size in (20, 21, 22)])
    )
    assert wrong.wrong
    assert "3 wrong elements" in wrong.failure
    late = seen(NETWORK, bench_result(bench_point(1 << 20, (0.0, 0.0)), unfinished="--timeout was over"))
    assert late.late
    assert seen(NETWORK, Missing("timeout", "3 s were left of --timeout")).late
    refused = seen(
        NETWORK, bench_result(bench_point(1 << 20, (0.0, 0.0)), unfinished="not supported", refused=2)
    )
    assert (refused.late, refused.failure) == (False, "not supported")
    assert seen(NETWORK, Missing("error", "no torch")).failure == "no torch"


# Written by hand, in the form of NCCL 2.27.3 on two nodes with InfiniBand, rank 0; from 2.24.3 on it says the channels.
LINES = """
node01:4711:4711 [0] NCCL INFO NCCL version 2.27.3+cuda12.8
node01:4711:4790 [0] NCCL INFO Using network IB
node01:4711:4790 [0] NCCL INFO Channel 00/0 : 1[1] -> 0[0] [receive] via NET/IB/0/GDRDMA
node01:4711:4790 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA
node01:4711:4790 [0] NCCL INFO 4 coll channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer
node01:4711:4711 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..3}
node01:4711:4711 [0] NCCL INFO AllReduce: 2097152 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}
node01:4711:4711 [0] NCCL INFO AllReduce: 64 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}
"""


def test_nccls_log_tells_the_transport_and_the_algorithm_of_each_call_of_the_plan() -> None:
    log = NodeLog("node01", read(LINES).processes)
    found = seen(replace(NETWORK, backend="nccl"), bench_result(logs=(log,)))
    assert "transports NET/IB/GDRDMA" in found.uses
    assert "network IB" in found.uses
    assert found.choices == (
        CallChoice("all_reduce", 1 << 20, "TREE", "LL", 4),
        CallChoice("all_reduce", 1 << 21, "RING", "SIMPLE", 8),
    )


def test_a_set_of_a_trial_measures_its_plan_and_nothing_beside_it() -> None:
    trial = TrialSet(NETWORK, bench_result().plan, "try-3")
    assert trial.is_trial
    said: list[str] = []
    trial.tell(said.append, "measuring")
    assert said == []
    assert not TrialSet(NETWORK, bench_result().plan).is_trial
